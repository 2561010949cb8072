//! What a group with very many topics costs, and how large it may become.

use kohort_wire::ErrorCode;

use super::{client::Client, world::World};
use crate::{Record, starts::UNKNOWN_TOPICS_MAX};

/// A member that subscribes to topics which do not exist, a few of which others name as well.
fn member(id: usize, topics: usize) -> Client {
    let names = (0..topics).map(|n| format!("unknown-{}", id * (topics - 10) + n));
    let mut member = Client::new(&format!("m{id:02}"), &[]);
    member.topics = Some(names.collect());
    member
}

fn subscribe_also(member: &mut Client, topic: &str) {
    let topics = member.topics.get_or_insert_default();
    topics.push(topic.to_owned());
    member.say_all();
}

/// The records that a heartbeat writes, and their bytes without those of the member's own names.
fn written(world: &mut World, member: &mut Client) -> (usize, usize) {
    let before = world.log.len();
    member.beat(world);
    let records = &world.log[before..];
    let bytes = records.iter().filter_map(|record| match record {
        Record::ConsumerMemberMetadata(..) => None,
        record => record.encode().ok(),
    });
    let bytes = bytes.map(|(key, value)| key.len() + value.map_or(0, |value| value.len()));
    (records.len(), bytes.sum())
}

#[test]
fn a_change_costs_what_has_changed_and_not_what_the_group_is() {
    let mut world = World::with(|config| config.consumer_assignment_interval_ms = 0);
    let orders = world.topic("orders", 4);
    let mut members: Vec<Client> = (0..10).map(|id| member(id, 4_000)).collect();
    for member in &mut members {
        member.beat(&mut world);
    }
    let seen = |record: &&Record| matches!(record, Record::TopicSeen(..));
    assert_eq!(world.log.iter().filter(seen).count(), UNKNOWN_TOPICS_MAX);
    let group = &world.shard.groups["group"];
    let group = group.consumer().expect("a consumer group");
    assert!(group.subscriptions().changes().added.is_empty());
    assert_eq!(group.subscriptions().named_topics(), 10 * 3_990 + 10);

    subscribe_also(&mut members[3], "orders");
    let (records, bytes) = written(&mut world, &mut members[3]);
    assert!(records < 20 && bytes < 2_000, "{records}, {bytes}");
    assert_eq!(members[3].assigned.len(), 4);
    assert!(members[3].assigned.iter().all(|&(id, _)| id == orders));

    // A regular heartbeat writes nothing.
    assert_eq!(written(&mut world, &mut members[3]), (0, 0));
    world.check();
}

#[test]
fn a_topic_that_is_created_late_is_noticed_among_very_many_that_do_not_exist() {
    let mut world = World::new();
    world.log_start = 5;
    let mut a = member(0, 2 * UNKNOWN_TOPICS_MAX);
    world.settle(&mut [&mut a]);
    let late = [0, UNKNOWN_TOPICS_MAX - 1, 2 * UNKNOWN_TOPICS_MAX - 1];
    for (created, n) in late.into_iter().enumerate() {
        world.topic(&format!("unknown-{n}"), 1);
        for _ in 0..15 {
            world.wait(1_000);
            a.beat(&mut world);
        }
        world.settle(&mut [&mut a]);
        assert_eq!(a.assigned.len(), created + 1);
        let offsets = &world.shard.groups["group"].offsets;
        let committed = offsets.get(&format!("unknown-{n}"), 0);
        assert_eq!(committed.expect("committed").offset, 5);
    }
    world.check();
}

/// What the member is refused with, which writes nothing.
fn refused(world: &mut World, member: &mut Client) -> String {
    let written = world.log.len();
    member.say_all();
    let response = world.heartbeat(1, member.request());
    assert_eq!(response.error_code, ErrorCode::INVALID_REQUEST);
    assert_eq!(world.log.len(), written);
    response.error_message.unwrap_or_default().to_string()
}

#[test]
fn what_is_too_large_is_refused_under_the_name_of_the_setting() {
    let mut world = World::with(|config| {
        config.member_topics_max = 100;
        config.group_topics_max = 290;
        config.group_metadata_max_bytes = 5_000;
    });
    let message = refused(&mut world, &mut member(0, 101));
    assert!(
        message.contains("kohort.group.member.topics.max allows 100"),
        "{message}"
    );
    assert!(!world.shard.groups.contains_key("group"));

    let mut members: Vec<Client> = (0..3).map(|id| member(id, 100)).collect();
    for member in &mut members {
        member.beat(&mut world);
    }
    let message = refused(&mut world, &mut member(3, 100));
    assert!(
        message.contains("370 topics; kohort.group.topics.max allows 290"),
        "{message}"
    );
    // Topics that the group has already cost nothing, nor do others in place of those of a member.
    let mut same = Client::new("same", &[]);
    same.topics = Some(members[1].topics.clone().unwrap_or_default()[..50].to_vec());
    same.beat(&mut world);
    members[2].topics = member(7, 100).topics;
    members[2].say_all();
    members[2].beat(&mut world);

    let long = "x".repeat(2_000);
    let message = refused(&mut world, &mut Client::new("long", &[&long]));
    assert!(
        message.contains("kohort.group.metadata.max.bytes allows 5000"),
        "{message}"
    );
    world.check();
}

#[test]
fn a_group_over_a_limit_keeps_its_members() {
    let mut world = World::new();
    let mut members = [member(0, 100), member(1, 100)];
    for member in &mut members {
        member.beat(&mut world);
    }
    world.config.group_topics_max = 50;
    world.config.group_metadata_max_bytes = 50;
    let config = std::sync::Arc::new(world.config.clone());
    world.shard.config_changed(config);
    for member in &mut members {
        member.say_all();
        member.beat(&mut world);
        member.topics.get_or_insert_default().truncate(90);
        member.say_all();
        member.beat(&mut world);
    }
    subscribe_also(&mut members[0], "one-more");
    refused(&mut world, &mut members[0]);
}
