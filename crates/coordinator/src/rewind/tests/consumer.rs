//! Rewinds of consumer groups.

use kohort_wire::{ErrorCode, Uuid};

use super::*;
use crate::{
    Millis,
    consumer::{
        LEAVE_STATIC_EPOCH,
        tests::{classic::Classic, client::Client, world::World},
    },
};

/// Two members with three partitions each, and the topic's id.
fn group_of_two() -> (World, Client, Client, Uuid) {
    let mut world = World::new();
    let topic = world.topic("orders", 6);
    let (mut a, mut b) = (Client::new("a", &["orders"]), Client::new("b", &["orders"]));
    world.settle(&mut [&mut a, &mut b]);
    assert_eq!((a.owned.len(), b.owned.len()), (3, 3));
    (world, a, b, topic)
}

#[test]
fn an_owner_lets_go_and_gets_the_partition_back_and_nobody_else_is_told_anything() {
    let (mut world, mut a, mut b, topic) = group_of_two();
    let (mine, others) = (a.of(topic), b.owned.clone());
    let old_epoch = a.epoch;
    let token = rewind(&mut world, &[("orders", mine[0], 5)]);
    assert!(b.beat(&mut world).assignment.is_none());
    assert_eq!(answer(&mut world, token), None);

    a.beat(&mut world);
    assert_eq!(a.of(topic), &mine[1..]);
    assert_eq!(a.epoch, old_epoch);
    assert_eq!(committed(&mut world, "orders", &[mine[0]]), [-1]);
    assert_eq!(answer(&mut world, token), None);

    // It says that it has let go: that is the moment.
    a.beat(&mut world);
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &[mine[0]]), [5]);
    assert!(b.beat(&mut world).assignment.is_none());
    world.check();

    a.beat(&mut world);
    assert_eq!(a.of(topic), mine);
    b.beat(&mut world);
    assert_eq!(b.owned, others);
    assert_eq!(world.state("group"), "Stable");
    world.check();
}

#[test]
fn an_owner_may_commit_until_it_has_let_go_and_nothing_of_that_is_left() {
    let (mut world, mut a, _, topic) = group_of_two();
    let partition = a.of(topic)[0];
    let token = rewind(&mut world, &[("orders", partition, 5)]);
    let (mut offset, old_epoch) = (100, a.epoch);
    for _ in 0..2 {
        let code = commit(&mut world, "a", old_epoch, ("orders", partition, offset));
        assert_eq!(code, ErrorCode::NONE);
        offset += 1;
        a.beat(&mut world);
    }
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &[partition]), [5]);
    // Late ones, from when it owned the partition, and from when it had just let go.
    let let_go_epoch = a.epoch;
    for epoch in [old_epoch, let_go_epoch] {
        let code = commit(&mut world, "a", epoch, ("orders", partition, 100));
        assert_eq!(code, ErrorCode::STALE_MEMBER_EPOCH);
    }
    // What was not rewound can be committed as before.
    let other = a.of(topic)[0];
    let code = commit(&mut world, "a", old_epoch, ("orders", other, 7));
    assert_eq!(code, ErrorCode::NONE);

    // It owns it again, and the old ones are refused as before.
    a.beat(&mut world);
    assert!(a.of(topic).contains(&partition));
    for epoch in [old_epoch, let_go_epoch] {
        let code = commit(&mut world, "a", epoch, ("orders", partition, 100));
        assert_eq!(code, ErrorCode::STALE_MEMBER_EPOCH);
    }
    assert_eq!(committed(&mut world, "orders", &[partition]), [5]);
    let code = commit(&mut world, "a", a.epoch, ("orders", partition, 6));
    assert_eq!(code, ErrorCode::NONE);
}

/// Kafka lets any member at its epoch commit any partition.
#[test]
fn a_member_at_its_epoch_cannot_commit_what_was_taken_from_it_and_rewound() {
    let (mut world, mut a, mut b, topic) = group_of_two();
    let partition = a.of(topic)[0];
    let token = rewind(&mut world, &[("orders", partition, 5)]);
    a.leave(&mut world, -1);
    assert!(is_done(&mut world, token));
    a.id = "a".to_owned();
    world.settle(&mut [&mut b]);
    assert!(b.of(topic).contains(&partition));
    world.settle(&mut [&mut a, &mut b]);
    let owner = if a.of(topic).contains(&partition) {
        &a
    } else {
        &b
    };
    let other = if a.of(topic).contains(&partition) {
        &b
    } else {
        &a
    };
    let code = commit(
        &mut world,
        &other.id,
        other.epoch,
        ("orders", partition, 100),
    );
    assert_eq!(code, ErrorCode::STALE_MEMBER_EPOCH);
    // Also by another coordinator.
    world.restart();
    let code = commit(
        &mut world,
        &other.id,
        other.epoch,
        ("orders", partition, 100),
    );
    assert_eq!(code, ErrorCode::STALE_MEMBER_EPOCH);
    let code = commit(&mut world, &owner.id, owner.epoch, ("orders", partition, 6));
    assert_eq!(code, ErrorCode::NONE);
    // And after a rewind of another partition.
    let elsewhere = other.of(topic)[0];
    rewind(&mut world, &[("orders", elsewhere, 0)]);
    world.settle(&mut [&mut a, &mut b]);
    let (owner, other) = if a.of(topic).contains(&partition) {
        (&a, &b)
    } else {
        (&b, &a)
    };
    let code = commit(
        &mut world,
        &other.id,
        other.epoch,
        ("orders", partition, 100),
    );
    assert_eq!(code, ErrorCode::STALE_MEMBER_EPOCH);
    let code = commit(&mut world, &owner.id, owner.epoch, ("orders", partition, 7));
    assert_eq!(code, ErrorCode::NONE);
}

#[test]
fn an_owner_that_never_lets_go_is_fenced_after_its_rebalance_timeout() {
    let (mut world, mut a, mut b, topic) = group_of_two();
    let mine = a.of(topic);
    let old_epoch = a.epoch;
    a.keeps_all = true;
    let token = rewind(
        &mut world,
        &[("orders", mine[0], 5), ("orders", mine[1], 6)],
    );
    let mut waited: Millis = 0;
    while !is_done(&mut world, token) {
        a.beat(&mut world);
        b.beat(&mut world);
        world.wait(5_000);
        waited += 5_000;
        assert!(
            waited <= 65_000,
            "it takes longer than the rebalance timeout"
        );
    }
    assert!(waited >= 60_000);
    let code = commit(&mut world, "a", old_epoch, ("orders", mine[0], 100));
    assert_eq!(code, ErrorCode::UNKNOWN_MEMBER_ID);
    a.keeps_all = false;
    // It learns that it was fenced, and rejoins.
    a.beat(&mut world);
    a.beat(&mut world);
    world.settle(&mut [&mut a, &mut b]);
    assert_eq!(a.owned.len() + b.owned.len(), 6);
    assert_eq!(committed(&mut world, "orders", &mine), [5, 6, -1]);
}

#[test]
fn a_dead_owner_is_waited_for_until_its_session_ends() {
    let (mut world, a, mut b, topic) = group_of_two();
    let partition = a.of(topic)[0];
    let token = rewind(&mut world, &[("orders", partition, 5)]);
    for _ in 0..9 {
        assert_eq!(answer(&mut world, token), None);
        world.wait(5_000);
        b.beat(&mut world);
    }
    assert!(is_done(&mut world, token));
    world.settle(&mut [&mut b]);
    assert_eq!(b.owned.len(), 6);
}

#[test]
fn a_static_member_that_is_away_is_not_waited_for_and_comes_back_to_the_new_offset() {
    let mut world = World::new();
    let topic = world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]).instance("i");
    let mut b = Client::new("b", &["orders"]).instance("j");
    world.settle(&mut [&mut a, &mut b]);
    let mine = a.of(topic);
    a.leave(&mut world, LEAVE_STATIC_EPOCH);
    let token = rewind(&mut world, &[("orders", mine[0], 5)]);
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &mine), [5, -1]);
    world.check();
    let mut a = Client::new("a2", &["orders"]).instance("i");
    world.settle(&mut [&mut a, &mut b]);
    assert_eq!(a.of(topic), mine);
    let code = commit(&mut world, "a2", a.epoch, ("orders", mine[0], 6));
    assert_eq!(code, ErrorCode::NONE);
}

#[test]
fn several_topics_and_owners_are_rewound_all_at_once_or_not_yet() {
    let (mut world, mut a, mut b, _) = group_of_two();
    world.topic("payments", 2);
    a.subscribe(&["orders", "payments"]);
    b.subscribe(&["orders", "payments"]);
    world.settle(&mut [&mut a, &mut b]);
    let all: Vec<(&str, i32, i64)> = (0..6)
        .map(|p| ("orders", p, 50 + i64::from(p)))
        .chain([("payments", 0, 8), ("payments", 1, 9)])
        .collect();
    let token = rewind(&mut world, &all);
    for _ in 0..2 {
        a.beat(&mut world);
    }
    assert!(a.owned.is_empty());
    // Where a topic starts that is younger than the group.
    assert_eq!(committed(&mut world, "payments", &[0, 1]), [0, 0]);
    for _ in 0..2 {
        b.beat(&mut world);
    }
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "payments", &[0, 1]), [8, 9]);
    let orders = committed(&mut world, "orders", &[0, 1, 2, 3, 4, 5]);
    assert_eq!(orders, [50, 51, 52, 53, 54, 55]);
    world.settle(&mut [&mut a, &mut b]);
    assert_eq!(a.owned.len() + b.owned.len(), 8);
}

#[test]
fn members_that_join_and_leave_meanwhile_are_given_the_rest_only() {
    let (mut world, mut a, mut b, topic) = group_of_two();
    let mine = a.of(topic);
    let token = rewind(
        &mut world,
        &[("orders", mine[0], 5), ("orders", mine[1], 5)],
    );
    a.beat(&mut world);
    // The owner hesitates; others come and go.
    let mut c = Client::new("c", &["orders"]);
    for _ in 0..5 {
        world.wait(1_000);
        c.beat(&mut world);
        b.beat(&mut world);
        world.check();
        for member in [&b, &c] {
            assert!(!member.of(topic).contains(&mine[0]));
        }
    }
    b.leave(&mut world, -1);
    for _ in 0..5 {
        world.wait(1_000);
        c.beat(&mut world);
        world.check();
    }
    assert_eq!(answer(&mut world, token), None);
    world.settle(&mut [&mut a, &mut c]);
    assert!(is_done(&mut world, token));
    assert_eq!(a.owned.len() + c.owned.len(), 6);
    assert_eq!(committed(&mut world, "orders", &mine), [5, 5, -1]);
}

#[test]
fn when_the_last_member_leaves_it_happens() {
    let (mut world, mut a, mut b, topic) = group_of_two();
    let partition = b.of(topic)[0];
    let token = rewind(&mut world, &[("orders", partition, 5)]);
    a.leave(&mut world, -1);
    assert_eq!(answer(&mut world, token), None);
    b.leave(&mut world, -1);
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &[partition]), [5]);
}

#[test]
fn a_partition_that_is_on_its_way_to_another_member_is_rewound_between_the_two() {
    let (mut world, mut a, mut b, topic) = group_of_two();
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    world.wait(1_000);
    c.beat(&mut world);
    let before = a.of(topic);
    a.beat(&mut world);
    let moving: Vec<i32> = before
        .into_iter()
        .filter(|p| !a.of(topic).contains(p))
        .collect();
    assert_eq!(moving.len(), 1);
    let token = rewind(&mut world, &[("orders", moving[0], 5)]);
    // It has let go, and the other is not given it before the new offset is there.
    a.beat(&mut world);
    assert!(is_done(&mut world, token));
    world.settle(&mut [&mut a, &mut b, &mut c]);
    assert_eq!(c.owned.len(), 2);
    assert_eq!(committed(&mut world, "orders", &moving), [5]);
}

#[test]
fn classic_members_of_a_consumer_group_are_rewound_too() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    world.wait(1_000);
    let mut a = Classic::new(&["orders"]);
    for _ in 0..6 {
        if a.id.is_empty() {
            assert_eq!(a.join(&mut world).error_code, ErrorCode::NONE);
            a.sync(&mut world);
        } else {
            a.beat(&mut world)
        }
        c.beat(&mut world);
        world.wait(1_000);
    }
    assert_eq!(a.owned.len(), 2);
    let mine: Vec<i32> = a.owned.iter().map(|(_, partition)| *partition).collect();
    let (member_id, old_generation) = (a.id.clone(), a.generation);
    let token = rewind(&mut world, &[("orders", mine[0], 5)]);
    let code = commit(
        &mut world,
        &member_id,
        old_generation,
        ("orders", mine[0], 100),
    );
    assert_eq!(code, ErrorCode::NONE);
    for _ in 0..6 {
        a.beat(&mut world);
        c.beat(&mut world);
        world.check();
        world.wait(1_000);
    }
    assert!(is_done(&mut world, token));
    assert_eq!(a.id, member_id, "it was not put out");
    assert_eq!(a.owned.len(), 2);
    assert_eq!(committed(&mut world, "orders", &mine), [5, -1]);
    let late = commit(
        &mut world,
        &member_id,
        old_generation,
        ("orders", mine[0], 100),
    );
    assert_eq!(late, ErrorCode::ILLEGAL_GENERATION);
    let code = commit(&mut world, &member_id, a.generation, ("orders", mine[0], 6));
    assert_eq!(code, ErrorCode::NONE);
}

/// A classic member knows topics by name: it goes on with the new one, and nobody knows that.
/// (Simulator, seed 69.)
#[test]
fn a_classic_member_that_was_given_a_topic_of_the_same_name_before_cannot_undo_a_rewind() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::new("a", &["others"]);
    let mut b = Classic::new(&["orders"]);
    a.beat(&mut world);
    b.join(&mut world);
    b.sync(&mut world);
    for _ in 0..4 {
        world.wait(1_000);
        a.beat(&mut world);
        b.beat(&mut world);
    }
    assert_eq!(b.owned.len(), 2);
    let (old_id, old_epoch) = (b.id.clone(), b.generation);

    world.delete_topic("orders");
    world.topic("orders", 2);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    assert!(is_done(&mut world, token));
    // It has read the new one from its start meanwhile.
    assert_eq!(b.heartbeat(&mut world), ErrorCode::UNKNOWN_MEMBER_ID);
    let code = commit(&mut world, &old_id, old_epoch, ("orders", 0, 1));
    assert_ne!(code, ErrorCode::NONE);
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
    world.check();
}
