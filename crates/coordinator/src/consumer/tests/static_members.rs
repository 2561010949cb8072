//! Static members.

use kohort_wire::ErrorCode;

use super::{
    client::{Client, assert_disjoint},
    world::World,
};

fn two_members() -> (World, Client, Client) {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]).instance("i1");
    let mut b = Client::new("b", &["orders"]).instance("i2");
    a.beat(&mut world);
    b.beat(&mut world);
    world.settle(&mut [&mut a, &mut b]);
    (world, a, b)
}

#[test]
fn a_static_member_that_restarts_gets_what_it_had_and_nothing_moves() {
    let (mut world, mut a, mut b) = two_members();
    let before = (a.owned.clone(), b.owned.clone());
    let epoch = world.group("group").epoch;
    a.leave(&mut world, -2);
    world.check();
    world.wait(10_000);
    assert!(b.beat(&mut world).assignment.is_none());
    let mut a = Client::new("a2", &["orders"]).instance("i1");
    a.beat(&mut world);
    assert_eq!(a.owned, before.0);
    assert_eq!(world.group("group").epoch, epoch);
    assert_eq!(world.group("group").len(), 2);
    world.settle(&mut [&mut a, &mut b]);
    assert_eq!((a.owned, b.owned), before);
    world.check();
}

#[test]
fn the_same_member_id_may_come_back_too() {
    let (mut world, mut a, _) = two_members();
    let before = a.owned.clone();
    a.leave(&mut world, -2);
    a.beat(&mut world);
    assert_eq!(a.owned, before);
    a.epoch = 0;
    assert_eq!(a.beat(&mut world).error_code, ErrorCode::NONE);
    world.check();
}

#[test]
fn who_does_not_come_back_is_fenced_when_the_session_ends() {
    let (mut world, mut a, mut b) = two_members();
    world.wait(1_000);
    a.leave(&mut world, -2);
    for _ in 0..8 {
        world.wait(5_000);
        b.beat(&mut world);
    }
    assert_eq!(world.group("group").len(), 2);
    world.wait(4_000);
    assert_eq!(world.group("group").len(), 1);
    world.settle(&mut [&mut b]);
    assert_eq!(b.owned.len(), 4);
}

#[test]
fn an_instance_in_use_is_not_given_away() {
    let (mut world, mut a, _) = two_members();
    let mut other = Client::new("c", &["orders"]).instance("i1");
    let response = world.heartbeat(1, other.request());
    assert_eq!(response.error_code, ErrorCode::UNRELEASED_INSTANCE_ID);
    a.leave(&mut world, -2);
    other.say_all();
    other.beat(&mut world);
    // The one before it learns that it is no longer wanted.
    let mut request = a.request();
    request.member_epoch = 3;
    let response = world.heartbeat(1, request);
    assert_eq!(response.error_code, ErrorCode::FENCED_INSTANCE_ID);
    world.check();
}

#[test]
fn a_static_member_may_leave_for_good() {
    let (mut world, mut a, mut b) = two_members();
    a.leave(&mut world, -1);
    world.settle(&mut [&mut b]);
    assert_eq!(b.owned.len(), 4);
    world.check();
}

/// KAFKA-20601
#[test]
fn a_static_member_of_a_full_group_may_rejoin() {
    let mut world = World::with(|config| config.consumer_max_size = 1);
    world.topic("orders", 1);
    let mut a = Client::new("a", &["orders"]).instance("i1");
    a.beat(&mut world);
    a.leave(&mut world, -2);
    let mut a = Client::new("a2", &["orders"]).instance("i1");
    assert_eq!(a.beat(&mut world).error_code, ErrorCode::NONE);
    assert_eq!(world.group("group").len(), 1);
    world.check();
}

#[test]
fn a_static_member_may_come_back_with_another_subscription() {
    let (mut world, mut a, mut b) = two_members();
    let orders = *a.owned.first().map(|(id, _)| id).expect("owns some");
    let payments = world.topic("payments", 2);
    a.leave(&mut world, -2);
    let mut a = Client::new("a2", &["payments"]).instance("i1");
    a.beat(&mut world);
    assert!(
        a.of(orders).is_empty(),
        "what it had is not in its subscription"
    );
    world.settle(&mut [&mut a, &mut b]);
    assert_eq!(a.of(payments), [0, 1]);
    assert_eq!(b.owned.len(), 4);
    assert_disjoint([&a, &b]);
}

/// confluent-kafka-go #494
#[test]
fn static_members_survive_a_coordinator_restart() {
    let (mut world, mut a, mut b) = two_members();
    a.leave(&mut world, -2);
    world.restart();
    let mut a = Client::new("a2", &["orders"]).instance("i1");
    assert_eq!(a.beat(&mut world).error_code, ErrorCode::NONE);
    assert_eq!(b.beat(&mut world).error_code, ErrorCode::NONE);
    world.settle(&mut [&mut a, &mut b]);
    assert_eq!((a.owned.len(), b.owned.len()), (2, 2));
}
