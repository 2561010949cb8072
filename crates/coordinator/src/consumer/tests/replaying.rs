//! Loading.

use kohort_wire::messages::*;

use super::{
    client::Client,
    world::{World, snapshot},
};
use crate::Record;

/// KAFKA-17306
#[test]
fn loading_survives_tombstones_for_what_is_not_there() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Client::with_regex("a", "orders");
    a.beat(&mut world);
    world.settle(&mut [&mut a]);
    a.leave(&mut world, -1);
    let tombstones: Vec<Record> = world.log.iter().map(tombstone).collect();
    for tombstone in &tombstones {
        let shard = world.loaded(std::slice::from_ref(tombstone));
        assert_eq!(shard.group_count(), 0);
    }
    assert_eq!(world.loaded(&tombstones).group_count(), 0);
}

/// KAFKA-17306
#[test]
fn loading_does_not_depend_on_the_order_of_different_keys() {
    let mut world = World::new();
    world.topic("orders", 6);
    let mut a = Client::with_regex("a", "ord.*");
    let mut b = Client::new("b", &["orders"]).instance("i");
    let mut c = Client::new("c", &["orders"]);
    a.beat(&mut world);
    b.beat(&mut world);
    c.beat(&mut world);
    world.settle(&mut [&mut a, &mut b, &mut c]);
    c.leave(&mut world, -1);
    b.leave(&mut world, -2);
    let live = snapshot(&world.shard);
    let mut log = super::world::compacted(&world.log);
    for _ in 0..log.len() {
        log.rotate_left(1);
        assert_eq!(snapshot(&world.loaded(&log)), live);
        let reversed: Vec<Record> = log.iter().rev().cloned().collect();
        assert_eq!(snapshot(&world.loaded(&reversed)), live);
    }
}

#[test]
fn a_prefix_of_the_log_always_loads() {
    let mut world = World::new();
    world.topic("orders", 6);
    let mut a = Client::with_regex("a", "ord.*");
    let mut b = Client::new("b", &["orders"]).instance("i");
    a.beat(&mut world);
    b.beat(&mut world);
    world.settle(&mut [&mut a, &mut b]);
    a.leave(&mut world, -1);
    b.leave(&mut world, -1);
    for end in 0..world.log.len() {
        world.loaded(&world.log[..end]);
        world.loaded(&world.log[end..]);
    }
}

/// A record that brokers before 4.1 wrote is taken out with the next change.
#[test]
fn the_partition_metadata_of_old_brokers_is_taken_out() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    a.beat(&mut world);
    let key = ConsumerGroupPartitionMetadataKey {
        group_id: "group".into(),
    };
    world.log.push(Record::ConsumerPartitionMetadata(
        key,
        Some(Default::default()),
    ));
    world.restart();
    assert!(world.group("group").has_partition_metadata);
    Client::new("b", &["orders"]).beat(&mut world);
    assert!(!world.group("group").has_partition_metadata);
    world.check();
}

/// A member in a state that this coordinator does not know starts again.
#[test]
fn a_member_in_an_unknown_state_rejoins() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    a.beat(&mut world);
    let last = world.log.iter().rev().find_map(|record| match record {
        Record::ConsumerCurrentMemberAssignment(key, Some(value)) => {
            let value = ConsumerGroupCurrentMemberAssignmentValue {
                state: 5,
                ..value.clone()
            };
            Some(Record::ConsumerCurrentMemberAssignment(
                key.clone(),
                Some(value),
            ))
        }
        _ => None,
    });
    world.log.extend(last);
    world.restart();
    a.beat(&mut world);
    assert_eq!(a.epoch, 0, "fenced");
    a.beat(&mut world);
    assert_eq!(a.owned.len(), 2);
    assert_eq!(world.state("group"), "Stable");
    world.check();
}

fn tombstone(record: &Record) -> Record {
    let mut record = record.clone();
    match &mut record {
        Record::ConsumerMetadata(_, value) => *value = None,
        Record::ConsumerPartitionMetadata(_, value) => *value = None,
        Record::ConsumerMemberMetadata(_, value) => *value = None,
        Record::ConsumerTargetAssignmentMetadata(_, value) => *value = None,
        Record::ConsumerTargetAssignmentMember(_, value) => *value = None,
        Record::ConsumerCurrentMemberAssignment(_, value) => *value = None,
        Record::ConsumerRegularExpression(_, value) => *value = None,
        Record::LegacyOffsetCommit(_, value) => *value = None,
        Record::OffsetCommit(_, value) => *value = None,
        Record::GroupMetadata(_, value) => *value = None,
        Record::Rewind(_, value) => *value = None,
        Record::Rewound(_, value) => *value = None,
        Record::GroupSeen(_, value) => *value = None,
        Record::TopicSeen(_, value) => *value = None,
    }
    record
}
