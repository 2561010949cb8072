//! That a partition never has two owners.

use kohort_wire::ErrorCode;

use super::{
    client::{Client, assert_disjoint},
    world::World,
};

/// KAFKA-16147
#[test]
fn a_partition_is_never_owned_by_two_members_while_one_revokes_slowly_and_another_leaves() {
    let mut world = World::new();
    let topic = world.topic("orders", 6);
    let mut slow = Client::new("slow", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    let mut c = Client::new("c", &["orders"]);
    slow.beat(&mut world);
    world.wait(1_000);
    slow.keeps_all = true;
    b.beat(&mut world);
    slow.beat(&mut world);
    assert_eq!(slow.of(topic).len(), 6, "it has not let go of anything");
    world.wait(1_000);
    c.beat(&mut world);
    for _ in 0..3 {
        world.wait(2_000);
        slow.beat(&mut world);
        b.beat(&mut world);
        c.beat(&mut world);
        assert_disjoint([&slow, &b, &c]);
        world.check();
    }
    b.leave(&mut world, -1);
    for _ in 0..3 {
        world.wait(2_000);
        slow.beat(&mut world);
        c.beat(&mut world);
        assert_disjoint([&slow, &c]);
        world.check();
    }
    slow.keeps_all = false;
    slow.owned = slow.assigned.clone();
    world.settle(&mut [&mut slow, &mut c]);
    assert_disjoint([&slow, &c]);
    assert_eq!((slow.of(topic).len(), c.of(topic).len()), (3, 3));
}

/// KAFKA-19449
#[test]
fn a_members_own_pending_revocation_does_not_block_what_it_is_to_receive() {
    let mut world = World::new();
    let topic = world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    a.beat(&mut world);
    world.wait(1_000);
    a.keeps_all = true;
    b.beat(&mut world);
    a.beat(&mut world);
    // The other one leaves before `a` has let go: `a` gets back what it was to revoke.
    b.leave(&mut world, -1);
    world.wait(1_000);
    a.keeps_all = false;
    a.owned = a.assigned.clone();
    a.beat(&mut world);
    assert_eq!(a.of(topic), [0, 1, 2, 3]);
    assert_eq!(world.state("group"), "Stable");
    world.check();
}

/// KAFKA-19974
#[test]
fn two_members_never_own_one_partition_also_after_a_restart_in_the_middle_of_a_revocation() {
    for restart_at in 0..8 {
        let mut world = World::new();
        let topic = world.topic("orders", 4);
        let mut a = Client::new("a", &["orders"]);
        let mut b = Client::new("b", &["orders"]);
        let mut steps = 0;
        let mut step = |world: &mut World, a: &Client, b: &Client| {
            if steps == restart_at {
                world.restart();
            }
            steps += 1;
            assert_disjoint([a, b]);
            world.check();
            world.wait(1_000);
        };
        a.beat(&mut world);
        step(&mut world, &a, &b);
        b.beat(&mut world);
        step(&mut world, &a, &b);
        let revoke = a.beat(&mut world);
        assert!(revoke.assignment.is_some());
        step(&mut world, &a, &b);
        b.beat(&mut world);
        assert!(b.owned.is_empty(), "not acknowledged");
        step(&mut world, &a, &b);
        a.beat(&mut world);
        step(&mut world, &a, &b);
        b.beat(&mut world);
        step(&mut world, &a, &b);
        world.settle(&mut [&mut a, &mut b]);
        assert_disjoint([&a, &b]);
        assert_eq!((a.of(topic).len(), b.of(topic).len()), (2, 2));
    }
}

#[test]
fn a_member_that_never_acknowledges_is_fenced_and_the_others_go_on() {
    let mut world = World::new();
    let topic = world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    a.rebalance_timeout_ms = 30_000;
    a.beat(&mut world);
    world.wait(1_000);
    a.keeps_all = true;
    b.beat(&mut world);
    a.beat(&mut world);
    for _ in 0..5 {
        world.wait(5_000);
        assert_eq!(a.beat(&mut world).error_code, ErrorCode::NONE);
        b.beat(&mut world);
        assert_disjoint([&a, &b]);
        world.check();
    }
    assert!(b.owned.is_empty());
    world.wait(5_000);
    assert_eq!(a.beat(&mut world).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    b.beat(&mut world);
    assert_eq!(b.of(topic), [0, 1, 2, 3]);
    assert!(world.events.iter().any(|event| {
        let text = event.what.to_string();
        text.contains("did not revoke") && text.contains("the rebalance timeout, and was removed")
    }));
    world.check();
}

#[test]
fn who_revokes_in_time_is_not_fenced_later() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    a.rebalance_timeout_ms = 7_000;
    a.beat(&mut world);
    world.wait(1_000);
    b.beat(&mut world);
    world.settle(&mut [&mut a, &mut b]);
    for _ in 0..10 {
        world.wait(5_000);
        assert_eq!(a.beat(&mut world).error_code, ErrorCode::NONE);
        assert_eq!(b.beat(&mut world).error_code, ErrorCode::NONE);
    }
}
