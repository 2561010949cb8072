//! Members of both protocols in one group, and their commits.

use std::collections::BTreeSet;

use kohort_wire::{ErrorCode, messages::*};

use super::{classic::Classic, client::Client, world::World};
use crate::{MigrationPolicy, Reply, Request};

fn total(world: &World, classic: &[&Classic], consumers: &[&Client]) -> usize {
    let mut all = BTreeSet::new();
    for member in classic {
        for (topic, partition) in &member.owned {
            assert!(all.insert((topic.clone(), *partition)), "owned twice");
        }
    }
    let topics = world.shard.topics.clone();
    for client in consumers {
        for &(topic_id, partition) in &client.owned {
            let name = topics.by_id(topic_id).expect("a topic").name.to_string();
            assert!(all.insert((name, partition)), "owned twice");
        }
    }
    all.len()
}

#[test]
fn a_classic_member_joins_a_consumer_group_and_gets_its_share() {
    let mut world = World::new();
    world.topic("orders", 6);
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    world.wait(1_000);
    let mut a = Classic::new(&["orders"]);
    let response = a.join(&mut world);
    assert_eq!(response.error_code, ErrorCode::NONE);
    assert_eq!(
        response.protocol_name.as_deref(),
        Some("cooperative-sticky")
    );
    assert!(response.members.is_empty(), "it leads nobody");
    assert_eq!(a.sync(&mut world), ErrorCode::NONE);
    assert!(a.owned.is_empty());
    for _ in 0..5 {
        world.wait(1_000);
        c.beat(&mut world);
        a.beat(&mut world);
        total(&world, &[&a], &[&c]);
        world.check();
    }
    assert_eq!((a.owned.len(), c.owned.len()), (3, 3));
    assert_eq!(world.state("group"), "Stable");

    // And gives it up again.
    let mut d = Client::new("d", &["orders"]);
    d.beat(&mut world);
    for _ in 0..6 {
        world.wait(1_000);
        a.beat(&mut world);
        c.beat(&mut world);
        d.beat(&mut world);
        total(&world, &[&a], &[&c, &d]);
        world.check();
    }
    assert_eq!(total(&world, &[&a], &[&c, &d]), 6);
    assert_eq!((a.owned.len(), c.owned.len(), d.owned.len()), (2, 2, 2));
}

/// KAFKA-18095
#[test]
fn a_classic_member_without_a_subscription_can_join() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    let mut a = Classic::new(&[]);
    assert_eq!(a.join(&mut world).error_code, ErrorCode::NONE);
    assert_eq!(a.sync(&mut world), ErrorCode::NONE);
    assert!(a.owned.is_empty());
    assert_eq!(a.heartbeat(&mut world), ErrorCode::NONE);
    world.check();
}

/// KAFKA-20640
#[test]
fn the_migration_policy_disabled_refuses_a_classic_join_to_a_consumer_group() {
    let mut world =
        World::with(|config| config.consumer_migration_policy = MigrationPolicy::Disabled);
    world.topic("orders", 2);
    Client::new("c", &["orders"]).beat(&mut world);
    let response = Classic::new(&["orders"]).join(&mut world);
    assert_eq!(response.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    assert_eq!(world.group("group").len(), 1);
}

#[test]
fn a_classic_member_has_to_support_what_the_others_do() {
    let mut world = World::new();
    world.topic("orders", 2);
    Client::new("c", &["orders"]).beat(&mut world);
    let mut a = Classic::new(&["orders"]);
    a.join(&mut world);
    let mut b = Classic::new(&["orders"]);
    b.protocol = "range".to_owned();
    assert_eq!(
        b.join(&mut world).error_code,
        ErrorCode::INCONSISTENT_GROUP_PROTOCOL
    );
    let mut request = a.join_request();
    request.protocol_type = "connect".into();
    let reply = world.request(Request::JoinGroup {
        version: 9,
        request,
    });
    assert!(matches!(
        reply,
        Some(Reply::JoinGroup(response))
            if response.error_code == ErrorCode::INCONSISTENT_GROUP_PROTOCOL
    ));
}

#[test]
fn classic_requests_of_strangers_are_refused() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    let mut a = Classic::new(&["orders"]);
    a.id = "nobody".to_owned();
    assert_eq!(a.heartbeat(&mut world), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(a.sync(&mut world), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(
        a.leave(&mut world).members[0].error_code,
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    // A member of the consumer protocol has no generation.
    a.id = "c".to_owned();
    a.generation = c.epoch;
    assert_eq!(a.heartbeat(&mut world), ErrorCode::UNKNOWN_MEMBER_ID);
    let mut b = Classic::new(&["orders"]);
    b.join(&mut world);
    b.generation += 1;
    assert_eq!(b.heartbeat(&mut world), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(b.sync(&mut world), ErrorCode::ILLEGAL_GENERATION);
    b.generation -= 1;
    b.protocol = "range".to_owned();
    assert_eq!(b.sync(&mut world), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn a_classic_member_that_does_not_rejoin_or_sync_in_time_is_fenced() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    world.wait(1_000);
    let mut a = Classic::new(&["orders"]);
    a.join(&mut world);
    // It heartbeats, and never asks for its assignment.
    for _ in 0..7 {
        assert_eq!(world.group("group").len(), 2);
        world.wait(8_000);
        a.heartbeat(&mut world);
        c.beat(&mut world);
    }
    world.wait(8_000);
    assert_eq!(world.group("group").len(), 1);
    c.beat(&mut world);

    let mut b = Classic::new(&["orders"]);
    b.join(&mut world);
    b.sync(&mut world);
    for _ in 0..3 {
        world.wait(1_000);
        c.beat(&mut world);
        b.beat(&mut world);
    }
    world.wait(1_000);
    Client::new("d", &["orders"]).beat(&mut world);
    assert_eq!(b.heartbeat(&mut world), ErrorCode::REBALANCE_IN_PROGRESS);
    for _ in 0..7 {
        world.wait(8_000);
        assert_eq!(b.heartbeat(&mut world), ErrorCode::REBALANCE_IN_PROGRESS);
        c.beat(&mut world);
    }
    world.wait(8_000);
    assert_eq!(b.heartbeat(&mut world), ErrorCode::UNKNOWN_MEMBER_ID);
    world.check();
}

#[test]
fn a_classic_member_may_become_one_of_the_consumer_protocol_under_its_id() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    let mut a = Classic::new(&["orders"]);
    a.join(&mut world);
    let mut same = Client::new(&a.id, &["orders"]);
    same.beat(&mut world);
    world.settle(&mut [&mut c, &mut same]);
    // The time that it had as a classic member means nothing any more.
    for _ in 0..15 {
        world.wait(5_000);
        assert_eq!(same.beat(&mut world).error_code, ErrorCode::NONE);
        assert_eq!(c.beat(&mut world).error_code, ErrorCode::NONE);
    }
    assert_eq!(world.group("group").len(), 2);
    world.check();
}

fn commit(world: &mut World, member: &str, epoch: i32, version: i16, partition: i32) -> ErrorCode {
    let request = OffsetCommitRequest {
        group_id: "group".into(),
        generation_id_or_member_epoch: epoch,
        member_id: member.into(),
        topics: vec![OffsetCommitRequestTopic {
            name: "orders".into(),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: partition,
                committed_offset: 1,
                ..OffsetCommitRequestPartition::default()
            }],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    };
    match world.request(Request::OffsetCommit { version, request }) {
        Some(Reply::OffsetCommit(response)) => response.topics[0].partitions[0].error_code,
        other => panic!("{other:?}"),
    }
}

/// KIP-1251
#[test]
fn a_member_may_commit_at_an_older_epoch_what_it_has_owned_since() {
    let mut world = World::new();
    let topic = world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    a.beat(&mut world);
    b.beat(&mut world);
    world.settle(&mut [&mut a, &mut b]);
    let (old, kept, new) = (a.epoch, a.of(topic)[0], b.of(topic)[0]);
    b.leave(&mut world, -1);
    world.settle(&mut [&mut a]);
    assert!(a.epoch > old);
    assert_eq!(commit(&mut world, "a", a.epoch, 9, kept), ErrorCode::NONE);
    assert_eq!(commit(&mut world, "a", a.epoch, 9, new), ErrorCode::NONE);
    assert_eq!(commit(&mut world, "a", old, 9, kept), ErrorCode::NONE);
    assert_eq!(
        commit(&mut world, "a", old, 9, new),
        ErrorCode::STALE_MEMBER_EPOCH
    );
    assert_eq!(
        commit(&mut world, "a", a.epoch + 1, 9, kept),
        ErrorCode::STALE_MEMBER_EPOCH
    );
    assert_eq!(
        commit(&mut world, "a", a.epoch, 8, kept),
        ErrorCode::UNSUPPORTED_VERSION
    );
    assert_eq!(
        commit(&mut world, "b", 1, 9, kept),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    assert_eq!(
        commit(&mut world, "", -1, 9, kept),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    a.leave(&mut world, -1);
    assert_eq!(commit(&mut world, "", -1, 9, kept), ErrorCode::NONE);
}

#[test]
fn a_member_may_commit_what_it_is_revoking() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    a.beat(&mut world);
    world.wait(1_000);
    a.keeps_all = true;
    Client::new("b", &["orders"]).beat(&mut world);
    a.beat(&mut world);
    for partition in 0..4 {
        assert_eq!(
            commit(&mut world, "a", a.epoch, 9, partition),
            ErrorCode::NONE
        );
    }
}

/// Otherwise it would be a member again, with partitions that are with others by then.
#[test]
fn a_classic_member_that_was_put_out_is_not_let_in_with_what_it_has() {
    let mut world = World::new();
    world.topic("orders", 6);
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    let mut a = Classic::new(&["orders"]);
    assert_eq!(a.join(&mut world).error_code, ErrorCode::NONE);
    a.owned.insert(("orders".to_owned(), 0));
    let mut gone = Classic::new(&["orders"]);
    gone.id.clone_from(&a.id);
    gone.leave(&mut world);
    assert!(!world.is_member("group", &a.id));
    let response = a.join(&mut world);
    assert_eq!(response.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(!world.is_member("group", &a.id));
}

/// Nobody else is there whose heartbeats make the group look. (Simulator, seed 372.)
#[test]
fn classic_members_that_are_alone_in_a_consumer_group_are_given_new_partitions() {
    let mut world = World::with(|config| {
        config.consumer_migration_policy = MigrationPolicy::Upgrade;
    });
    world.topic("orders", 2);
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    let mut a = Classic::new(&["orders"]);
    a.join(&mut world);
    a.sync(&mut world);
    c.leave(&mut world, -1);
    for _ in 0..4 {
        world.wait(1_000);
        a.beat(&mut world);
    }
    assert_eq!(a.owned.len(), 2);
    world.topic("orders", 5);
    for _ in 0..4 {
        world.wait(1_000);
        a.beat(&mut world);
    }
    assert_eq!(a.owned.len(), 5);
    world.check();
}
