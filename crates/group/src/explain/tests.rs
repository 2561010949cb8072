//! Stories of groups, and what is made of them.

use std::collections::BTreeSet;

use super::*;
use crate::coordinator::{
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
billing is PreparingRebalance, since 14:00:00 (48 s): 1 of its 3 members has not joined again, until 14:05:00 (4 min 12 s left) at the latest; the others wait

It waits for
  slow-1 (slow at 10.0.0.1) to rejoin, since 14:00:00 (48 s)
    4 min 12 s left: 14:05:00 it is put out, and the others go on
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
billing is Reconciling, since 14:00:00 (31 s): 1 of its 2 members has not done what the new assignment asks of them

It waits for
  slow-1 (slow at 10.0.0.1) to revoke orders-2 and orders-3, since 14:00:00 (31 s)
    new-1 (new at 10.0.0.1) waits for that
    4 min 30 s left: 14:05:01 it is put out, and the others go on
  → it gives them up when its application calls poll() again";
    let with_history = text(&view, &events, &[], 31);
    assert!(with_history.starts_with(expected), "{with_history}");

    // The same of a cluster that keeps no history, as far as describing tells.
    let without = text(&view, &[], &[], 31);
    let expected = "\
billing is Reconciling: 1 of its 2 members has not done what the new assignment asks of them

It waits for
  slow-1 (slow at 10.0.0.1) to revoke orders-2 and orders-3
    new-1 (new at 10.0.0.1) waits for that
  → it gives them up";
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
billing is Stable, since 14:02:00 (1 h): nothing to wait for: its 2 members share 2 partitions

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
    → more members do not help; add partitions, or stop those members
  members subscribe to ordres, of which nobody has a partition
    → look whether it exists, and whether the name is spelled right
  4 records wait in partitions that no member has: orders-7
  6 rebalances in the last hour, 5 of them because members did not rejoin or revoke in time
    → their work between two polls takes longer than max.poll.interval.ms";
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
        "billing is Empty, since 14:00:05 (1 min): it has no members: nobody consumes\n"
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
            "    +1 s  still waits for slow-1 (slow at 10.0.0.1) to rejoin",
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
            "still waits for slow-1 (slow at 10.0.0.1) to revoke orders-1 (which new-1 (new at \
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
            "rebalance, epoch 5: member slow-1 (slow at 10.0.0.1) is gone: it left, or was put out",
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
It waits for
  slow-1 (slow at 10.0.0.1) to revoke orders-1";
    assert!(text.contains(waits), "{text}");
    assert!(text.contains("4 min 13 s left"), "{text}");
    assert_eq!(
        explained.waits_for.len(),
        1,
        "not for who lacks what is withheld: {text}"
    );
    let rewind = "
A rewind of orders-1 and orders-4 is under way, asked for by admin-1 (admin at 10.0.0.1) 14:00:00 (48 s ago)
  until nobody has any of it, nobody is given it; then the new offsets are committed
  slow-1 (slow at 10.0.0.1) still has orders-1
  → it happens by itself once they have let go or are put out; to give it up instead: kohort groups rewind billing --undo --execute
";
    assert!(text.contains(rewind), "{text}");
    let json = serde_json::to_value(&explained).expect("JSON");
    assert_eq!(
        json["rewind"]["held_by"]["first"][0]["partitions"]["first"][0],
        "orders-1"
    );
    assert_eq!(json["rewind"]["asked_at"], START);
}
