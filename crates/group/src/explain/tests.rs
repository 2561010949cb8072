//! Stories of groups, and what is made of them.

use std::collections::BTreeSet;

use super::*;
use crate::{
    Id, Millis,
    history::{Cause, Event, Failure, Few, Late, Needs, Phase, Protocol, Waited, What, Who},
};

/// 14:00:00.
const START: Millis = 14 * 3_600_000;

fn clock(at: Millis) -> String {
    let seconds = at / 1_000;
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

fn who(name: &str) -> Who {
    Who {
        id: format!("{name}-1").into(),
        instance_id: None,
        client_id: name.into(),
        host: "/10.0.0.1".into(),
    }
}

fn joined(name: &str) -> Cause {
    Cause::MemberJoined {
        member: who(name),
        reason: None,
    }
}

fn at(seconds: i64, what: impl Into<What>) -> Event {
    Event {
        at: START + 1_000 * seconds,
        group_id: "billing".into(),
        what: what.into(),
    }
}

fn waited(name: &str, needs: Needs, until: i64) -> Waited {
    Waited {
        member: who(name),
        needs,
        partitions: Few::default(),
        deadline_at: Some(START + 1_000 * until),
        blocks: Few::default(),
    }
}

fn partitions(numbers: &[i32]) -> BTreeSet<(Id, i32)> {
    numbers
        .iter()
        .map(|&number| ("orders".into(), number))
        .collect()
}

fn member(name: &str, epoch: i32, has: &[i32], wants: &[i32]) -> MemberView {
    MemberView {
        who: who(name),
        epoch: Some(epoch),
        assignment: partitions(has),
        target: Some(partitions(wants)),
        topics: BTreeSet::from(["orders".into()]),
        regex: None,
    }
}

fn view(protocol: Protocol, state: &str, members: Vec<MemberView>) -> View {
    View {
        protocol,
        state: state.to_owned(),
        epoch: Some(3),
        assignment_epoch: Some(3),
        members,
    }
}

fn fold(events: &[Event]) -> Recent {
    let mut recent = Recent::default();
    events.iter().for_each(|event| recent.take(event));
    recent
}

fn text(view: &View, events: &[Event], lags: &[PartitionLag], now: i64) -> String {
    let now = START + 1_000 * now;
    explain("billing", view, &fold(events), lags, None, now, clock).to_string()
}

/// A classic group into which `new` came and in which `slow` does not rejoin.
fn slow_rejoiner() -> Vec<Event> {
    vec![
        at(
            0,
            What::RebalanceBegan {
                epoch: 4,
                causes: joined("new").into(),
                deadline_at: Some(START + 300_000),
            },
        ),
        at(
            1,
            What::Waiting {
                epoch: 4,
                phase: Phase::Join,
                since: START,
                deadline_at: Some(START + 300_000),
                members: [waited("slow", Needs::Rejoin, 300)].into_iter().collect(),
            },
        ),
    ]
}

#[test]
fn a_classic_group_that_waits_says_for_whom_how_long_still_and_what_to_do() {
    let members = vec![
        member("slow", 0, &[], &[]),
        member("fast", 0, &[], &[]),
        member("new", 0, &[], &[]),
    ];
    let view = view(Protocol::Classic, "PreparingRebalance", members);
    let text = text(&view, &slow_rejoiner(), &[], 48);
    let expected = "\
billing is PreparingRebalance, since 14:00:00 (48 s): 1 of 3 members has not rejoined, until 14:05:00 at the latest (4 min 12 s left); the others wait

Waiting for
  slow-1 (slow at 10.0.0.1) to rejoin, since 14:00:00 (48 s)
    removed in 4 min 12 s (14:05:00) unless it responds; the others then continue
  → it rejoins when its application calls poll() again";
    assert!(text.starts_with(expected), "{text}");
    assert!(
        text.ends_with("\nWhy it rebalances\n  member new-1 (new at 10.0.0.1) joined\n"),
        "{text}"
    );
}

#[test]
fn a_consumer_group_that_waits_says_what_is_to_be_revoked_and_whom_that_blocks() {
    let events = [
        at(
            0,
            What::RebalanceBegan {
                epoch: 3,
                causes: joined("new").into(),
                deadline_at: None,
            },
        ),
        at(
            0,
            What::TargetComputed {
                epoch: 3,
                assignor: "uniform".into(),
                members: 2,
                members_changed: 2,
                partitions_moved: 2,
                took_ms: 0,
            },
        ),
        at(
            1,
            What::RevocationAsked {
                member: who("slow"),
                partitions: ["orders-2".to_owned(), "orders-3".to_owned()]
                    .into_iter()
                    .collect(),
                timeout_ms: 300_000,
                deadline_at: START + 301_000,
            },
        ),
    ];
    let members = vec![
        member("slow", 2, &[0, 1, 2, 3], &[0, 1]),
        member("new", 3, &[], &[2, 3]),
    ];
    let view = view(Protocol::Consumer, "Reconciling", members);
    let expected = "\
billing is Reconciling, since 14:00:00 (31 s): 1 of 2 members has not applied the new assignment

Waiting for
  slow-1 (slow at 10.0.0.1) to revoke orders-2 and orders-3, since 14:00:00 (31 s)
    new-1 (new at 10.0.0.1) waits for that
    removed in 4 min 30 s (14:05:01) unless it responds; the others then continue
  → it releases them when its application calls poll() again";
    let with_history = text(&view, &events, &[], 31);
    assert!(with_history.starts_with(expected), "{with_history}");

    // The same of a cluster that keeps no history, as far as describing tells.
    let without = text(&view, &[], &[], 31);
    let expected = "\
billing is Reconciling: 1 of 2 members has not applied the new assignment

Waiting for
  slow-1 (slow at 10.0.0.1) to revoke orders-2 and orders-3
    new-1 (new at 10.0.0.1) waits for that
  → it releases them";
    assert!(without.starts_with(expected), "{without}");
}

#[test]
fn a_stable_group_says_when_and_why_it_last_rebalanced_and_who_was_late() {
    let mut events = slow_rejoiner();
    events.extend([
        at(
            120,
            What::JoinEnded {
                epoch: 5,
                members: 3,
                leader: who("fast"),
                assignor: "range".into(),
                took_ms: 120_000,
                last: Some(Late {
                    member: who("slow"),
                    needs: Needs::Rejoin,
                    took_ms: 120_000,
                }),
            },
        ),
        at(
            120,
            What::Assigned {
                epoch: 5,
                took_ms: 10,
                total_ms: 120_000,
            },
        ),
    ]);
    let members = vec![member("slow", 0, &[0], &[]), member("fast", 0, &[1], &[])];
    let view = view(Protocol::Classic, "Stable", members);
    let expected = "\
billing is Stable, since 14:02:00 (1 h): its 2 members share 2 partitions

The last rebalance began 14:00:00 and took 2 min
  member new-1 (new at 10.0.0.1) joined
  the last to join was slow-1 (slow at 10.0.0.1), after 2 min
";
    assert_eq!(text(&view, &events, &[], 3_720), expected);
}

#[test]
fn things_worth_knowing_of_a_stable_group_are_said() {
    let mut idle = member("idle", 3, &[], &[]);
    idle.topics = BTreeSet::from(["orders".into(), "ordres".into()]);
    let members = vec![member("busy", 3, &[0], &[0]), idle];
    let view = view(Protocol::Consumer, "Stable", members);
    let lag = |partition, committed, end| PartitionLag {
        topic: "orders".into(),
        partition,
        committed: Some(committed),
        start: Some(0),
        end: Some(end),
    };
    let fenced = || Cause::MembersFenced {
        members: [who("slow")].into_iter().collect(),
        failure: Failure::Rejoin,
        timeout_ms: 300_000,
        partitions: Few::default(),
    };
    let events: Vec<Event> = (0..6)
        .map(|index| {
            let causes = match index {
                0 => joined("busy").into(),
                _ => fenced().into(),
            };
            let began = What::RebalanceBegan {
                epoch: index,
                causes,
                deadline_at: None,
            };
            at(60 * i64::from(index), began)
        })
        .collect();
    let text = text(&view, &events, &[lag(0, 5, 9), lag(7, 5, 9)], 600);
    let notes = "\
Worth knowing
  1 of 2 members have no partitions: idle-1 (idle at 10.0.0.1); there is only 1 partition
    → more members do not help: add partitions or stop the idle members
  members subscribe to ordres, but no member has a partition of it
    → check that the topic exists and that its name is spelled correctly
  4 records are waiting in partitions that no member owns: orders-7
  6 rebalances in the last hour, 5 of them because members did not rejoin or revoke in time
    → they spend longer than max.poll.interval.ms between two polls";
    assert!(text.contains(notes), "{text}");
    // An hour later they are forgotten.
    let later = self::text(&view, &events, &[], 7_200);
    assert!(!later.contains("in the last hour"), "{later}");
}

#[test]
fn a_group_without_members_says_since_when() {
    let events = [at(5, What::Emptied { epoch: 4 })];
    let view = view(Protocol::Classic, "Empty", Vec::new());
    assert_eq!(
        text(&view, &events, &[], 65),
        "billing is Empty, since 14:00:05 (1 min): it has no members\n"
    );
}

#[test]
fn who_did_not_ask_for_its_assignment_is_named_although_the_group_is_stable() {
    let events = [at(
        3,
        What::Waiting {
            epoch: 4,
            phase: Phase::Sync,
            since: START,
            deadline_at: Some(START + 300_000),
            members: [waited("slow", Needs::Sync, 300)].into_iter().collect(),
        },
    )];
    let members = vec![member("slow", 0, &[0], &[]), member("fast", 0, &[1], &[])];
    let view = view(Protocol::Classic, "Stable", members);
    let text = text(&view, &events, &[], 60);
    assert!(
        text.contains("\n  slow-1 (slow at 10.0.0.1) to ask for its assignment, since 14:00:00"),
        "{text}"
    );
}

#[test]
fn the_phases_of_a_rebalance_stand_below_its_beginning() {
    let mut events = slow_rejoiner();
    events.extend([
        at(
            120,
            What::JoinEnded {
                epoch: 5,
                members: 3,
                leader: who("fast"),
                assignor: "range".into(),
                took_ms: 120_000,
                last: Some(Late {
                    member: who("slow"),
                    needs: Needs::Rejoin,
                    took_ms: 120_000,
                }),
            },
        ),
        at(
            121,
            What::Assigned {
                epoch: 5,
                took_ms: 1_000,
                total_ms: 121_000,
            },
        ),
        at(500, What::OffsetsExpired { count: 1 }),
    ]);
    let mut timeline = Timeline::new(clock);
    let lines: Vec<String> = events.iter().map(|event| timeline.line(event)).collect();
    assert_eq!(
        lines,
        [
            "14:00:00  rebalance of generation 4: member new-1 (new at 10.0.0.1) joined",
            "    +1 s  still waiting for slow-1 (slow at 10.0.0.1) to rejoin",
            "  +2 min  generation 5 has 3 members, joined in 2 min (the last to join was slow, after \
             2 min); fast-1 (fast at 10.0.0.1) assigns with range",
            "+2 min 1 s  generation 5 is assigned and stable, after 2 min 1 s in all, 1 s of it for \
             the leader",
            "14:08:20  1 committed offset expired",
        ]
    );
}

#[test]
fn short_names_are_used_only_while_they_are_nobody_elses() {
    let mut timeline = Timeline::new(clock);
    let mut other = who("app");
    other.id = "app-2".into();
    let mut left = |member: Who| {
        let reason = None;
        timeline.line(&at(0, Cause::MemberLeft { member, reason }))
    };
    assert!(left(who("app")).ends_with("member app-1 (app at 10.0.0.1) left"));
    assert!(left(who("app")).ends_with("member app left"));
    assert!(left(other).ends_with("member app-2 (app at 10.0.0.1) left"));
    assert!(left(who("app")).ends_with("member app-1 (app at 10.0.0.1) left"));
}

#[test]
fn from_outside_one_sees_who_comes_and_goes_and_for_whom_a_group_waits() {
    let mut observer = Observer::new("billing");
    let mut look = |seconds: i64, view: Option<View>| -> Vec<String> {
        let events = observer.look(view, START + 1_000 * seconds);
        events.iter().map(|event| event.what.to_string()).collect()
    };
    let stable = view(
        Protocol::Consumer,
        "Stable",
        vec![member("slow", 3, &[0, 1], &[0, 1])],
    );
    assert_eq!(
        look(0, Some(stable.clone())),
        ["Stable with 1 member at the first look"]
    );
    assert_eq!(look(1, Some(stable.clone())), [""; 0]);
    let mut reconciling = view(
        Protocol::Consumer,
        "Reconciling",
        vec![
            member("slow", 3, &[0, 1], &[0]),
            member("new", 4, &[], &[1]),
        ],
    );
    (reconciling.epoch, reconciling.assignment_epoch) = (Some(4), Some(4));
    assert_eq!(
        look(2, Some(reconciling.clone())),
        [
            "rebalance, epoch 4: member new-1 (new at 10.0.0.1) joined",
            "now Reconciling",
        ]
    );
    assert_eq!(
        look(3, Some(reconciling.clone())),
        [
            "still waiting for slow-1 (slow at 10.0.0.1) to revoke orders-1 (which new-1 (new at \
             10.0.0.1) waits for)"
        ]
    );
    assert_eq!(look(4, Some(reconciling)), [""; 0]);
    let mut done = view(
        Protocol::Consumer,
        "Stable",
        vec![member("slow", 4, &[0], &[0]), member("new", 4, &[1], &[1])],
    );
    (done.epoch, done.assignment_epoch) = (Some(4), Some(4));
    assert_eq!(look(5, Some(done.clone())), ["stable at epoch 4 after 3 s"]);
    done.members.remove(0);
    done.epoch = Some(5);
    assert_eq!(
        look(6, Some(done)),
        [
            "rebalance, epoch 5: member slow-1 (slow at 10.0.0.1) is gone: it left or was removed",
            "stable at epoch 5 after 0 ms",
        ]
    );
    assert_eq!(look(7, None), ["the group does not exist any more"]);
}

#[test]
fn a_rewind_that_waits_says_for_whom_and_how_to_give_it_up() {
    let members = vec![
        member("slow", 2, &[0, 1], &[0, 1]),
        member("fast", 3, &[2, 3], &[2, 3, 4]),
    ];
    let view = view(Protocol::Consumer, "Reconciling", members);
    let events = [
        at(
            0,
            What::RewindAsked {
                by: who("admin"),
                offsets: Few::default(),
            },
        ),
        at(
            0,
            What::RebalanceBegan {
                epoch: 3,
                causes: Cause::Rewind {
                    by: who("admin"),
                    partitions: ["orders-1".to_owned(), "orders-4".to_owned()]
                        .into_iter()
                        .collect(),
                }
                .into(),
                deadline_at: None,
            },
        ),
        at(
            1,
            What::RevocationAsked {
                member: who("slow"),
                partitions: ["orders-1".to_owned()].into_iter().collect(),
                timeout_ms: 300_000,
                deadline_at: START + 301_000,
            },
        ),
    ];
    let pending = PendingRewind {
        asked_at: START,
        partitions: partitions(&[1, 4]),
    };
    let (recent, now) = (fold(&events), START + 48_000);
    let explained = explain("billing", &view, &recent, &[], Some(&pending), now, clock);
    let text = explained.to_string();
    let waits = "\
Waiting for
  slow-1 (slow at 10.0.0.1) to revoke orders-1";
    assert!(text.contains(waits), "{text}");
    assert!(text.contains("removed in 4 min 13 s (14:05:01)"), "{text}");
    assert_eq!(
        explained.waits_for.len(),
        1,
        "not for who lacks what is withheld: {text}"
    );
    let rewind = "
A rewind of orders-1 and orders-4 is pending, requested by admin-1 (admin at 10.0.0.1) 14:00:00 (48 s ago)
  the partitions stay unassigned until their current owners release them; then the new offsets are committed
  slow-1 (slow at 10.0.0.1) still owns orders-1
  → it completes by itself once they release the partitions or are removed; to cancel it: kohort groups rewind billing --undo --execute
";
    assert!(text.contains(rewind), "{text}");
    let json = serde_json::to_value(&explained).expect("JSON");
    assert_eq!(
        json["rewind"]["held_by"]["first"][0]["partitions"]["first"][0],
        "orders-1"
    );
    assert_eq!(json["rewind"]["asked_at"], START);
}

#[test]
fn lag_counts_only_records_that_exist() {
    let lag = |committed, start, end| PartitionLag {
        topic: "orders".into(),
        partition: 0,
        committed,
        start,
        end,
    };
    for (committed, start, end, expected) in [
        // Retention has deleted what the group had not read.
        (Some(0), Some(90), Some(100), (Some(10), 90, 0)),
        (Some(95), Some(90), Some(100), (Some(5), 0, 0)),
        (Some(100), Some(100), Some(100), (Some(0), 0, 0)),
        // All of it is gone.
        (Some(40), Some(100), Some(100), (Some(0), 60, 0)),
        // Committed beyond the end, as after a topic was created again.
        (Some(120), Some(0), Some(100), (Some(0), 0, 20)),
        // No commit, or a partition whose leader does not answer, or a deleted topic.
        (None, Some(90), Some(100), (None, 0, 0)),
        (Some(7), None, None, (None, 0, 0)),
        (Some(7), None, Some(10), (Some(3), 0, 0)),
        (Some(i64::MAX), Some(0), Some(0), (Some(0), 0, i64::MAX)),
        (
            Some(-1),
            Some(i64::MAX),
            Some(i64::MAX),
            (Some(0), i64::MAX, 0),
        ),
    ] {
        let it = lag(committed, start, end);
        assert_eq!((it.lag(), it.gone(), it.ahead()), expected, "{it:?}");
    }
}

#[test]
fn records_that_are_gone_are_no_lag_and_are_said() {
    let view = view(Protocol::Classic, "Empty", Vec::new());
    let lag = |partition, committed| PartitionLag {
        topic: "orders".into(),
        partition,
        committed: Some(committed),
        start: Some(90),
        end: Some(100),
    };
    let text = text(&view, &[], &[lag(0, 0), lag(1, 120)], 0);
    for part in [
        "10 records are waiting in partitions that no member owns: orders-0",
        "90 records of orders-0 were deleted before the group read them",
        "the committed offset lies beyond the end of orders-1",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

/// What a hostile client may call itself.
const HOSTILE: &str = "\x1b[2J\x1b]0;owned\x07\nroot\u{202e}x\r";

#[test]
fn no_name_of_a_peer_leaves_its_line_or_changes_the_terminal() {
    let hostile = || Who {
        id: HOSTILE.into(),
        instance_id: Some(HOSTILE.into()),
        client_id: HOSTILE.repeat(20_000).into(),
        host: HOSTILE.into(),
    };
    let topics = BTreeSet::from([(HOSTILE.into(), 0)]);
    let group_member = MemberView {
        who: hostile(),
        epoch: Some(2),
        assignment: topics.clone(),
        target: Some(BTreeSet::new()),
        topics: BTreeSet::from([HOSTILE.into(), "other\n".into()]),
        regex: Some(HOSTILE.into()),
    };
    let mut waiter = member("new", 3, &[], &[]);
    waiter.target = Some(topics.clone());
    let lags = [PartitionLag {
        topic: HOSTILE.into(),
        partition: 0,
        committed: Some(0),
        start: Some(5),
        end: Some(9),
    }];
    let events = [at(
        0,
        What::RebalanceBegan {
            epoch: 3,
            causes: Cause::MemberLeft {
                member: hostile(),
                reason: Some(HOSTILE.into()),
            }
            .into(),
            deadline_at: None,
        },
    )];
    let pending = PendingRewind {
        asked_at: START,
        partitions: topics,
    };
    for state in ["Reconciling", "Stable", HOSTILE] {
        let members = vec![group_member.clone(), waiter.clone()];
        let view = view(Protocol::Consumer, state, members);
        let recent = fold(&events);
        let explained = explain(HOSTILE, &view, &recent, &lags, Some(&pending), START, clock);
        let text = explained.to_string();
        assert_eq!(
            crate::text::printable(&text.replace('\n', "")),
            text.replace('\n', "")
        );
        assert!(!text.lines().any(|line| line.starts_with("root")), "{text}");
        assert!(text.len() < 200_000, "{} bytes", text.len());
    }
    let line = Timeline::new(clock).line(&events[0]);
    assert_eq!(crate::text::printable(&line), line);
}
