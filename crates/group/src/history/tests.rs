//! The schema of `__kohort_group_events`: each kind of event and cause as it is written. What stands
//! in `golden.jsonl` is a promise to readers, so lines there may be added, and never change.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::Id;

const GOLDEN: &str = include_str!("golden.jsonl");

fn who(name: &str) -> Who {
    Who {
        id: format!("{name}-id").into(),
        instance_id: None,
        client_id: name.into(),
        host: "/10.0.0.1".into(),
    }
}

fn fixed(name: &str) -> Who {
    Who {
        instance_id: Some(format!("{name}-instance").into()),
        ..who(name)
    }
}

fn admin() -> Who {
    Who {
        id: "".into(),
        ..who("admin")
    }
}

fn few<T, const N: usize>(all: [T; N]) -> Few<T> {
    all.into_iter().collect()
}

fn id(text: &str) -> Id {
    text.into()
}

fn offset() -> Offset {
    Offset {
        partition: "orders-0".to_owned(),
        from: Some(120),
        to: 0,
    }
}

fn partitions() -> Few<String> {
    few(["orders-0".to_owned(), "orders-1".to_owned()])
}

/// One of each kind.
fn causes() -> Vec<Cause> {
    let reason = || Some(id("because"));
    vec![
        Cause::MemberJoined {
            member: who("a"),
            reason: reason(),
        },
        Cause::MemberRejoined {
            member: who("a"),
            leads: true,
            reason: None,
        },
        Cause::MemberReturned {
            member: fixed("a"),
            old_member_id: id("old-id"),
            reason: None,
        },
        Cause::MemberLeft {
            member: who("a"),
            reason: reason(),
        },
        Cause::MemberPaused { member: fixed("a") },
        Cause::MemberRemoved {
            member: fixed("a"),
            by: admin(),
            reason: reason(),
        },
        Cause::SessionExpired {
            member: who("a"),
            timeout_ms: 45_000,
        },
        Cause::ConnectionLost {
            member: who("a"),
            grace_ms: 10_000,
        },
        Cause::FirstJoinExpired { member: who("a") },
        Cause::MemberIdUnused {
            member_id: id("a-id"),
        },
        Cause::MembersFenced {
            members: few([who("a"), who("b")]),
            failure: Failure::Rejoin,
            timeout_ms: 300_000,
            partitions: Few::default(),
        },
        Cause::MembersFenced {
            members: few([who("a")]),
            failure: Failure::Revoke,
            timeout_ms: 300_000,
            partitions: partitions(),
        },
        Cause::SubscriptionChanged {
            member: who("a"),
            topics: few([id("orders"), id("payments")]),
            regex: Some(id("audit.*")),
        },
        Cause::AssignorChanged {
            from: id("uniform"),
            to: id("range"),
        },
        Cause::TopicsChanged {
            topics: few([
                TopicChange {
                    topic: id("orders"),
                    change: Change::Grown,
                    partitions_before: 2,
                    partitions: 4,
                },
                TopicChange {
                    topic: id("payments"),
                    change: Change::Deleted,
                    partitions_before: 1,
                    partitions: 0,
                },
            ]),
        },
        Cause::RegexResolved {
            regex: id("audit.*"),
            topics: few([id("audit-eu"), id("audit-us")]),
        },
        Cause::Rewind {
            by: admin(),
            partitions: partitions(),
        },
        Cause::RewindEnded {
            partitions: partitions(),
        },
        Cause::PutOutForRewind { member: who("a") },
        Cause::RestartedAfterRewind,
        Cause::Other {
            text: "something else".to_owned(),
        },
    ]
}

/// One of each kind.
fn events() -> Vec<What> {
    let late = Late {
        member: who("b"),
        needs: Needs::Revoke,
        took_ms: 4_100,
    };
    let mut events: Vec<What> = causes().into_iter().map(What::from).collect();
    events.extend([
        What::RebalanceBegan {
            epoch: 4,
            causes: Cause::MemberLeft {
                member: who("a"),
                reason: None,
            }
            .into(),
            deadline_at: Some(1_700_000_300_000),
        },
        What::Waiting {
            epoch: 4,
            phase: Phase::Reconcile,
            since: 1_700_000_000_000,
            deadline_at: None,
            members: few([Waited {
                member: who("a"),
                needs: Needs::Revoke,
                partitions: partitions(),
                deadline_at: Some(1_700_000_300_000),
                blocks: few([who("b")]),
            }]),
        },
        What::JoinEnded {
            epoch: 5,
            members: 2,
            leader: who("a"),
            assignor: id("range"),
            took_ms: 2_900,
            last: Some(Late {
                needs: Needs::Rejoin,
                ..late.clone()
            }),
        },
        What::Assigned {
            epoch: 5,
            took_ms: 20,
            total_ms: 2_920,
        },
        What::TargetComputed {
            epoch: 5,
            assignor: id("uniform"),
            members: 3,
            members_changed: 2,
            partitions_moved: 1,
            took_ms: 12,
        },
        What::RevocationAsked {
            member: who("a"),
            partitions: partitions(),
            timeout_ms: 300_000,
            deadline_at: 1_700_000_300_000,
        },
        What::Stable {
            epoch: 5,
            total_ms: 4_212,
            took_ms: 4_200,
            last: Some(late),
        },
        What::Emptied { epoch: 6 },
        What::Converted {
            to: Protocol::Consumer,
            members: 2,
            epoch: 6,
            causes: Causes::default(),
        },
        What::Deleted {
            why: Deletion::Requested,
        },
        What::NewPartitions {
            offsets: few([Offset {
                from: None,
                ..offset()
            }]),
        },
        What::OffsetsExpired { count: 3 },
        What::OffsetsDeleted {
            partitions: partitions(),
        },
        What::OffsetsReset {
            by: admin(),
            offsets: few([offset()]),
        },
        What::RewindAsked {
            by: admin(),
            offsets: few([offset()]),
        },
        What::RewindRefused {
            by: admin(),
            why: "another rewind is going on".to_owned(),
        },
        What::Rewound {
            by: admin(),
            offsets: few([offset()]),
            took_ms: 310,
        },
        What::RewindGivenUp {
            by: admin(),
            why: "the group was deleted".to_owned(),
        },
        What::Loaded {
            protocol: Protocol::Classic,
            epoch: 6,
            members: 2,
        },
        What::Note {
            text: "something else".to_owned(),
        },
    ]);
    events
}

/// Names the kinds. Whoever adds one adds it here, and an example above.
fn is_known(what: &What) -> bool {
    match what {
        What::Changed { cause } => match cause {
            Cause::MemberJoined { .. }
            | Cause::MemberRejoined { .. }
            | Cause::MemberReturned { .. }
            | Cause::MemberLeft { .. }
            | Cause::MemberPaused { .. }
            | Cause::MemberRemoved { .. }
            | Cause::SessionExpired { .. }
            | Cause::ConnectionLost { .. }
            | Cause::FirstJoinExpired { .. }
            | Cause::MemberIdUnused { .. }
            | Cause::MembersFenced { .. }
            | Cause::SubscriptionChanged { .. }
            | Cause::AssignorChanged { .. }
            | Cause::TopicsChanged { .. }
            | Cause::RegexResolved { .. }
            | Cause::Rewind { .. }
            | Cause::RewindEnded { .. }
            | Cause::PutOutForRewind { .. }
            | Cause::RestartedAfterRewind
            | Cause::Other { .. } => true,
        },
        What::RebalanceBegan { .. }
        | What::Waiting { .. }
        | What::JoinEnded { .. }
        | What::Assigned { .. }
        | What::TargetComputed { .. }
        | What::RevocationAsked { .. }
        | What::Stable { .. }
        | What::Emptied { .. }
        | What::Converted { .. }
        | What::Deleted { .. }
        | What::NewPartitions { .. }
        | What::OffsetsExpired { .. }
        | What::OffsetsDeleted { .. }
        | What::OffsetsReset { .. }
        | What::RewindAsked { .. }
        | What::RewindRefused { .. }
        | What::Rewound { .. }
        | What::RewindGivenUp { .. }
        | What::Loaded { .. }
        | What::Note { .. } => true,
    }
}

fn event(what: What) -> Event {
    Event {
        at: 1_700_000_000_000,
        group_id: id("billing"),
        what,
    }
}

#[test]
fn each_kind_of_event_is_written_as_the_schema_says() {
    let written: Vec<String> = events()
        .into_iter()
        .inspect(|what| assert!(is_known(what)))
        .map(|what| event(what).to_json().to_string())
        .collect();
    if std::env::var_os("KOHORT_WRITE_GOLDEN").is_some() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src/coordinator/history/golden.jsonl"
        );
        std::fs::write(path, written.join("\n") + "\n").expect("written");
        return;
    }
    let promised: Vec<&str> = GOLDEN.lines().collect();
    assert_eq!(written, promised);
}

#[test]
fn each_kind_of_event_is_read_as_it_was_written() {
    for (line, what) in GOLDEN.lines().zip(events()) {
        assert_eq!(Event::from_json(line.as_bytes()).expect(line), event(what));
    }
}

#[test]
fn every_event_says_in_one_line_what_happened() {
    let mut lines = BTreeSet::new();
    for what in events() {
        let text = what.to_string();
        assert!(
            !text.is_empty() && !text.contains('\n') && !text.ends_with('.'),
            "{text}"
        );
        assert!(
            lines.insert(text.clone()) || text == "something else",
            "{text}"
        );
        assert_eq!(event(what).to_json()["text"], Value::from(text));
    }
}

#[test]
fn an_event_of_a_later_kind_or_version_is_read_as_its_words() {
    for json in [
        r#"{"version":1,"at":5,"group":"g","event":"teleported","text":"it moved"}"#,
        r#"{"version":1,"at":5,"group":"g","event":"changed","cause":{"kind":"new"},"text":"it moved"}"#,
        r#"{"version":2,"at":5,"group":"g","event":"emptied","text":"it moved"}"#,
    ] {
        let event = Event::from_json(json.as_bytes()).expect(json);
        assert_eq!((event.at, &*event.group_id), (5, "g"));
        assert_eq!(event.what, What::from("it moved"));
    }
    assert!(Event::from_json(b"{}").is_err());
    assert!(Event::from_json(b"nonsense").is_err());
}

#[test]
fn ids_are_shortened_where_they_are_random() {
    let name = |id: &str| {
        let who = Who {
            id: id.into(),
            ..who("app")
        };
        who.to_string()
    };
    assert_eq!(
        name("billing-10.0.0.1-7-0123456789abcdef0123456789abcdef"),
        "billing-10.0.0.1-7-012345… (app at 10.0.0.1)"
    );
    assert_eq!(
        name("app-9f5b1c2e-8a55-4c43-9d0f-3f3e6d0c1b2a"),
        "app-9f5b1c… (app at 10.0.0.1)"
    );
    assert_eq!(name("short"), "short (app at 10.0.0.1)");
    assert_eq!(admin().to_string(), "admin at 10.0.0.1");
}
