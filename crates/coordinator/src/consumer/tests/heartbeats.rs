//! Heartbeats and their answers.

use kohort_wire::ErrorCode;

use super::{client::Client, world::World};
use crate::GroupOverrides;

fn one_member() -> (World, Client) {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    a.beat(&mut world);
    a.beat(&mut world);
    (world, a)
}

#[test]
fn a_heartbeat_that_says_nothing_new_writes_nothing() {
    let (mut world, mut a) = one_member();
    let written = world.log.len();
    for _ in 0..10 {
        world.wait(5_000);
        let response = a.beat(&mut world);
        assert_eq!(response.error_code, ErrorCode::NONE);
        assert_eq!(response.assignment, None);
    }
    assert_eq!(world.log.len(), written);
}

/// KAFKA-16367
#[test]
fn a_full_heartbeat_is_always_answered_with_the_assignment() {
    let (mut world, mut a) = one_member();
    a.say_all();
    let response = a.beat(&mut world);
    assert_eq!(
        response.assignment.expect("assignment").topic_partitions[0].partitions,
        [0, 1]
    );
    assert!(a.beat(&mut world).assignment.is_none());
}

#[test]
fn a_heartbeat_whose_answer_was_lost_is_answered_again() {
    let (mut world, mut a) = one_member();
    let before = a.clone();
    world.topic("payments", 2);
    a.subscribe(&["orders", "payments"]);
    let request = a.request();
    world.wait(1_000);
    let lost = world.heartbeat(1, request.clone());
    assert_eq!(lost.error_code, ErrorCode::NONE);
    for _ in 0..3 {
        let again = world.heartbeat(1, request.clone());
        assert_eq!(again, lost);
    }
    // Who claims more than it has is fenced.
    let mut claims = request;
    claims.topic_partitions.as_mut().expect("owned")[0].partitions = vec![0, 1, 2];
    let response = world.heartbeat(1, claims);
    assert_eq!(response.error_code, ErrorCode::FENCED_MEMBER_EPOCH);
    // And so is who comes with an epoch that is neither the last nor the one before.
    let mut old = before;
    old.epoch -= 1;
    old.say_all();
    assert_eq!(
        old.beat(&mut world).error_code,
        ErrorCode::FENCED_MEMBER_EPOCH
    );
    world.check();
}

#[test]
fn a_silent_member_is_fenced_when_its_session_ends() {
    let (mut world, mut a) = one_member();
    world.wait(44_999);
    assert_eq!(world.group("group").len(), 1);
    a.beat(&mut world);
    world.wait(44_999);
    assert_eq!(world.group("group").len(), 1);
    world.wait(1);
    assert_eq!(world.state("group"), "Empty");
    assert_eq!(a.beat(&mut world).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(a.beat(&mut world).error_code, ErrorCode::NONE);
    world.check();
}

#[test]
fn a_group_may_have_timeouts_of_its_own() {
    let overrides = GroupOverrides {
        consumer_session_timeout_ms: Some(60_000),
        consumer_heartbeat_interval_ms: Some(7_000),
        consumer_shortest_heartbeat_interval_ms: Some(7_000),
        consumer_connection_grace_ms: None,
        new_partitions_from_start: None,
        consumer_assignment_interval_ms: Some(0),
    };
    let mut world = World::with(|config| {
        config.groups.insert("group".to_owned(), overrides);
    });
    world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    assert_eq!(a.beat(&mut world).heartbeat_interval_ms, 7_000);
    Client::new("b", &["orders"]).beat(&mut world);
    assert_eq!(
        world.group("group").assignment_epoch,
        world.group("group").epoch
    );
    world.wait(59_999);
    assert_eq!(world.group("group").len(), 2);
    world.wait(1);
    assert_eq!(world.group("group").len(), 0);
}

#[test]
fn sessions_begin_anew_when_a_coordinator_takes_over() {
    let (mut world, _) = one_member();
    world.wait(40_000);
    world.restart();
    world.wait(44_999);
    assert_eq!(world.group("group").len(), 1);
    world.wait(1);
    assert_eq!(world.group("group").len(), 0);
    world.check();
}

/// KAFKA-18688
#[test]
fn a_balanced_assignment_moves_nothing_when_recomputed() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    a.beat(&mut world);
    b.beat(&mut world);
    world.settle(&mut [&mut a, &mut b]);
    let before = (a.owned.clone(), b.owned.clone());
    // Nobody gets anything of it, but the group has a new target.
    let mut c = Client::new("c", &["absent"]);
    c.beat(&mut world);
    world.settle(&mut [&mut a, &mut b, &mut c]);
    assert_eq!((a.owned, b.owned), before);
}

/// KAFKA-19431
#[test]
fn an_assignment_never_holds_a_topic_that_the_member_no_longer_subscribes_to() {
    let mut world = World::new();
    let orders = world.topic("orders", 2);
    let payments = world.topic("payments", 2);
    let mut a = Client::new("a", &["orders", "payments"]);
    a.beat(&mut world);
    assert_eq!(a.owned.len(), 4);
    // Too early for a new target, and yet.
    a.subscribe(&["orders"]);
    let response = a.beat(&mut world);
    let assignment = response.assignment.expect("assignment");
    let topics: Vec<_> = assignment
        .topic_partitions
        .iter()
        .map(|t| t.topic_id)
        .collect();
    assert_eq!(topics, [orders]);
    world.settle(&mut [&mut a]);
    assert!(a.of(payments).is_empty());
    // Subscribed again before the target changes.
    a.subscribe(&["payments"]);
    a.beat(&mut world);
    a.subscribe(&["orders"]);
    a.beat(&mut world);
    assert!(a.of(payments).is_empty());
    world.settle(&mut [&mut a]);
    assert_eq!(a.of(orders), [0, 1]);
    world.check();
}
