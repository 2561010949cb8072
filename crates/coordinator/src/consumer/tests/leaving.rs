//! Members that leave.

use kohort_wire::ErrorCode;

use super::{client::Client, world::World};

#[test]
fn what_a_member_leaves_goes_to_the_others() {
    let mut world = World::new();
    let topic = world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    a.beat(&mut world);
    b.beat(&mut world);
    world.settle(&mut [&mut a, &mut b]);
    a.leave(&mut world, -1);
    world.wait(1_000);
    b.beat(&mut world);
    assert_eq!(b.of(topic), [0, 1, 2, 3]);
    world.check();
}

/// KAFKA-20442
#[test]
fn an_emptied_group_does_not_stay_with_its_epoch_ahead_of_its_assignment() {
    let mut world = World::new();
    let topic = world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    a.beat(&mut world);
    b.beat(&mut world);
    a.leave(&mut world, -1);
    b.leave(&mut world, -1);
    let group = world.group("group");
    assert_eq!(world.state("group"), "Empty");
    assert_eq!(group.epoch, group.assignment_epoch);
    assert_eq!(group.assignment_timestamp, 0);
    // The next member does not wait for the interval.
    a.beat(&mut world);
    assert_eq!(a.of(topic), [0, 1, 2, 3]);
    world.check();
}

#[test]
fn an_unknown_member_or_group_cannot_be_left() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    let mut request = a.request();
    request.member_epoch = -1;
    let response = world.heartbeat(1, request.clone());
    assert_eq!(response.error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    Client::new("b", &["orders"]).beat(&mut world);
    let response = world.heartbeat(1, request);
    assert_eq!(response.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(world.group("group").len(), 1);
}

#[test]
fn an_old_session_alarm_does_not_end_a_new_session_of_the_same_id() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    for _ in 0..10 {
        a.beat(&mut world);
        world.wait(4_000);
        a.leave(&mut world, -1);
        world.wait(1_000);
    }
    a.beat(&mut world);
    world.wait(44_000);
    assert_eq!(a.beat(&mut world).error_code, ErrorCode::NONE);
}
