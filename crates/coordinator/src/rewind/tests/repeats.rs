//! The same rewind asked for again, one at the same time, and one that is given up.

use kohort_group::rewind::PENDING_MEMBER;
use kohort_wire::ErrorCode;

use super::*;
use crate::consumer::tests::{client::Client, world::World};

/// A group of one member that has committed 100 for all.
fn live_group() -> (World, Client) {
    let mut world = World::new();
    world.topic("orders", 3);
    let mut a = Client::new("a", &["orders"]);
    world.settle(&mut [&mut a]);
    for partition in 0..3 {
        let place = ("orders", partition, 100);
        assert_eq!(commit(&mut world, "a", a.epoch, place), ErrorCode::NONE);
    }
    (world, a)
}

const GOALS: [(&str, i32, i64); 2] = [("orders", 0, 5), ("orders", 1, 6)];

/// Rewinds, and has the new owner commit what it has read since.
fn rewound_and_read_on(world: &mut World, a: &mut Client) -> Token {
    let token = rewind(world, &GOALS);
    world.settle(&mut [a]);
    assert_eq!(
        commit(world, "a", a.epoch, ("orders", 0, 50)),
        ErrorCode::NONE
    );
    token
}

fn times_rewound(world: &World) -> usize {
    let events = world.events.iter().map(|event| event.what.to_string());
    events.filter(|text| text.starts_with("rewound ")).count()
}

#[test]
fn a_client_whose_answer_was_lost_may_ask_again_without_a_second_rewind() {
    let (mut world, mut a) = live_group();
    let lost = rewound_and_read_on(&mut world, &mut a);
    let epoch = a.epoch;
    world.shard.reply_lost(lost);
    let again = rewind(&mut world, &GOALS);
    assert!(is_done(&mut world, again), "at once");
    world.settle(&mut [&mut a]);
    assert_eq!(a.epoch, epoch, "nothing is taken away");
    assert_eq!(committed(&mut world, "orders", &[0, 1, 2]), [50, 6, 100]);
    assert_eq!(times_rewound(&world), 1);
    assert!(has_event(&world, "asks once more for the rewind"));
    // It can still be undone.
    assert_eq!(before(&mut world)[0].1, 100);
    // Now it has been told, and wants it again.
    let more = rewind(&mut world, &GOALS);
    world.settle(&mut [&mut a]);
    assert!(is_done(&mut world, more));
    assert_eq!(committed(&mut world, "orders", &[0, 1]), [5, 6]);
    assert_eq!(times_rewound(&world), 2);
}

#[test]
fn an_answer_that_a_dead_coordinator_owes_may_be_asked_for_again() {
    let (mut world, mut a) = live_group();
    rewound_and_read_on(&mut world, &mut a);
    world.restart();
    world.settle(&mut [&mut a]);
    let again = rewind(&mut world, &GOALS);
    assert!(is_done(&mut world, again));
    assert_eq!(committed(&mut world, "orders", &[0, 1]), [50, 6]);
    // Once.
    let more = rewind(&mut world, &GOALS);
    world.settle(&mut [&mut a]);
    assert!(is_done(&mut world, more));
    assert_eq!(committed(&mut world, "orders", &[0, 1]), [5, 6]);
}

#[test]
fn whoever_was_told_gets_what_it_asks_for_again_and_so_does_a_latecomer() {
    let (mut world, mut a) = live_group();
    rewound_and_read_on(&mut world, &mut a);
    let again = rewind(&mut world, &GOALS);
    world.settle(&mut [&mut a]);
    assert!(is_done(&mut world, again));
    assert_eq!(committed(&mut world, "orders", &[0, 1]), [5, 6]);
    // Nobody asks again for a lost answer after so long.
    world.shard.reply_lost(again);
    commit(&mut world, "a", a.epoch, ("orders", 0, 60));
    for _ in 0..100 {
        world.wait(1_000);
        a.beat(&mut world);
    }
    let late = rewind(&mut world, &GOALS);
    world.settle(&mut [&mut a]);
    assert!(is_done(&mut world, late));
    assert_eq!(committed(&mut world, "orders", &[0, 1]), [5, 6]);
    assert_eq!(times_rewound(&world), 3);
}

#[test]
fn other_goals_are_another_rewind_even_if_an_answer_was_lost() {
    let (mut world, mut a) = live_group();
    let lost = rewound_and_read_on(&mut world, &mut a);
    world.shard.reply_lost(lost);
    let other = rewind(&mut world, &GOALS[..1]);
    world.settle(&mut [&mut a]);
    assert!(is_done(&mut world, other));
    assert_eq!(committed(&mut world, "orders", &[0, 1]), [5, 6]);
    assert_eq!(times_rewound(&world), 2);
}

#[test]
fn a_rewind_to_where_the_last_one_went_leaves_what_an_undo_goes_back_to() {
    let (mut world, mut a) = live_group();
    for _ in 0..2 {
        let token = rewind(&mut world, &GOALS);
        world.settle(&mut [&mut a]);
        assert!(is_done(&mut world, token));
        assert_eq!(
            (before(&mut world)[0].1, before(&mut world)[1].1),
            (100, 100)
        );
    }
    // What has been committed since is what the next one goes back to.
    commit(&mut world, "a", a.epoch, ("orders", 0, 70));
    let token = rewind(&mut world, &GOALS);
    world.settle(&mut [&mut a]);
    assert!(is_done(&mut world, token));
    assert_eq!(
        (before(&mut world)[0].1, before(&mut world)[1].1),
        (70, 100)
    );
}

#[test]
fn a_client_that_asks_for_another_one_again_and_again_is_told_of_once() {
    let (mut world, mut a) = live_group();
    let token = rewind(&mut world, &GOALS);
    for _ in 0..20 {
        let refused = rewind(&mut world, &[("orders", 2, 7)]);
        let code = ErrorCode::REBALANCE_IN_PROGRESS;
        assert_eq!(answer(&mut world, refused), Some(vec![code]));
    }
    let refusals = world.events.iter().map(|event| event.what.to_string());
    assert_eq!(
        refusals.filter(|text| text.contains("is refused")).count(),
        1
    );
    world.settle(&mut [&mut a]);
    assert!(is_done(&mut world, token));
}

#[test]
fn a_rewind_that_waits_can_be_seen_and_cancelled() {
    let (mut world, mut a) = live_group();
    assert_eq!(seen_by(&mut world, PENDING_MEMBER), []);
    let token = rewind(&mut world, &GOALS);
    a.beat(&mut world);
    commit(&mut world, "a", a.epoch - 1, ("orders", 0, 110));
    let pending = seen_by(&mut world, PENDING_MEMBER);
    assert_eq!((pending[0].0, pending[0].1), (0, 100));
    assert!(pending[0].2.ends_with(" to=5 metadata="), "{pending:?}");
    assert_eq!(seen_by(&mut world, BEFORE_MEMBER), []);

    // Only of its own partitions, so that nobody cancels what they do not mean.
    let wrong = send(
        &mut world,
        request(&[("orders", 2, 0)], "kohort:rewind cancel"),
    );
    let invalid = Some(vec![ErrorCode::INVALID_REQUEST]);
    assert_eq!(answer(&mut world, wrong), invalid);
    assert!(!world.shard.rewinding.is_empty());

    let cancel = request(&[("orders", 1, 6)], "kohort:rewind cancel");
    let cancelled = send(&mut world, cancel.clone());
    assert!(is_done(&mut world, cancelled));
    let given_up = vec![ErrorCode::OPERATION_NOT_ATTEMPTED; 2];
    assert_eq!(answer(&mut world, token), Some(given_up));
    assert!(has_event(&world, "cancelled it"));
    world.restart();
    world.settle(&mut [&mut a]);
    assert_eq!(a.owned.len(), 3, "what was taken away is handed out again");
    assert_eq!(committed(&mut world, "orders", &[0, 1, 2]), [100; 3]);
    assert_eq!(times_rewound(&world), 0);
    let nothing = send(&mut world, cancel);
    assert_eq!(answer(&mut world, nothing), invalid);
}

#[test]
fn part_of_a_request_cannot_cancel() {
    let (mut world, _) = live_group();
    rewind(&mut world, &GOALS);
    let mut partly = request(&GOALS, "kohort:rewind cancel");
    partly.topics[1].partitions[0].committed_metadata = Some(MARK.into());
    let token = send(&mut world, partly);
    let invalid = vec![ErrorCode::INVALID_REQUEST; 2];
    assert_eq!(answer(&mut world, token), Some(invalid));
    assert!(!world.shard.rewinding.is_empty());
}

#[test]
fn a_coordinator_that_takes_over_says_that_a_rewind_goes_on() {
    let (mut world, _) = live_group();
    rewind(&mut world, &GOALS);
    world.restart();
    let text = "the rewind of orders-0 and orders-1 that client at 127.0.0.1 asked for goes on";
    assert!(has_event(&world, text), "{:#?}", world.events);
}
