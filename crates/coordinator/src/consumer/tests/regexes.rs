//! Subscriptions with regular expressions.

use kohort_wire::{ErrorCode, messages::*};

use super::{client::Client, world::World};
use crate::{Reply, Request};

#[test]
fn an_expression_is_resolved_and_its_topics_assigned() {
    let mut world = World::new();
    let one = world.topic("orders-1", 2);
    world.topic("payments", 2);
    let mut a = Client::with_regex("a", "orders-.*");
    world.works = false;
    let response = a.beat(&mut world);
    assert_eq!(response.error_code, ErrorCode::NONE);
    assert!(a.owned.is_empty(), "unresolved matches nothing");
    world.works = true;
    world.do_work();
    world.check();
    world.settle(&mut [&mut a]);
    assert_eq!(a.of(one), [0, 1]);
    assert_eq!(a.owned.len(), 2);
}

/// franz-go expects it (Test848RegexBrokerResolves).
#[test]
fn kafkas_internal_topics_match_and_kohorts_own_never_do() {
    let mut world = World::new();
    let internal = world.topic("__consumer_offsets", 2);
    world.topic("__kohort_group_events", 1);
    let orders = world.topic("orders", 1);
    let mut a = Client::with_regex("a", ".*");
    a.beat(&mut world);
    world.settle(&mut [&mut a]);
    assert_eq!(a.of(internal), [0, 1]);
    assert_eq!(a.of(orders), [0]);
    assert_eq!(a.owned.len(), 3);
}

#[test]
fn new_topics_are_noticed_though_not_more_often_than_every_ten_seconds() {
    let mut world = World::new();
    world.topic("orders-1", 1);
    let mut a = Client::with_regex("a", "orders-.*");
    a.beat(&mut world);
    world.settle(&mut [&mut a]);
    assert_eq!(a.owned.len(), 1);
    world.topic("orders-2", 1);
    a.beat(&mut world);
    assert_eq!(a.owned.len(), 1);
    world.wait(10_001);
    a.beat(&mut world);
    assert_eq!(a.owned.len(), 2);
    world.check();
}

/// KAFKA-18916
#[test]
fn a_regex_subscriber_notices_that_a_topic_was_deleted_and_created_again() {
    let mut world = World::new();
    let old = world.topic("orders-1", 2);
    let mut a = Client::with_regex("a", "orders-.*");
    a.beat(&mut world);
    world.settle(&mut [&mut a]);
    assert_eq!(a.of(old), [0, 1]);
    world.delete_topic("orders-1");
    world.wait(5_000);
    a.beat(&mut world);
    assert!(a.of(old).is_empty());
    world.settle(&mut [&mut a]);
    let new = world.topic("orders-1", 3);
    assert_ne!(old, new);
    world.wait(11_000);
    a.beat(&mut world);
    world.settle(&mut [&mut a]);
    assert_eq!(a.of(new), [0, 1, 2]);
    assert!(a.of(old).is_empty());
    // Both at once, unseen in between.
    world.delete_topic("orders-1");
    let newer = world.topic("orders-1", 1);
    world.wait(11_000);
    a.beat(&mut world);
    world.settle(&mut [&mut a]);
    assert_eq!(a.of(newer), [0]);
    assert_eq!(a.owned.len(), 1);
}

/// KAFKA-19891
#[test]
fn clearing_the_regex_rebalances() {
    let mut world = World::new();
    let orders = world.topic("orders", 2);
    let payments = world.topic("payments", 2);
    let mut a = Client::with_regex("a", ".*");
    let mut b = Client::new("b", &["orders"]);
    a.beat(&mut world);
    b.beat(&mut world);
    world.settle(&mut [&mut a, &mut b]);
    assert_eq!(a.of(payments), [0, 1]);
    let epoch = world.group("group").epoch;
    a.regex = Some(String::new());
    a.topics = Some(Vec::new());
    a.say_all();
    a.beat(&mut world);
    assert_eq!(world.group("group").epoch, epoch + 1);
    assert!(!world.group("group").subscribes_to("payments"));
    world.settle(&mut [&mut a, &mut b]);
    assert!(a.owned.is_empty());
    assert_eq!(b.of(orders), [0, 1]);
    world.check();
}

#[test]
fn an_invalid_expression_is_refused_at_once_and_changes_nothing() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::with_regex("a", "(");
    let response = world.heartbeat(1, a.request());
    assert_eq!(response.error_code, ErrorCode::INVALID_REGULAR_EXPRESSION);
    assert_eq!(world.shard.group_count(), 0);
    assert!(world.log.is_empty());
    // So it is for a static member that takes another's place.
    let mut b = Client::new("b", &["orders"]).instance("i");
    b.beat(&mut world);
    b.leave(&mut world, -2);
    let written = world.log.len();
    let mut c = Client::with_regex("c", "[").instance("i");
    let response = world.heartbeat(1, c.request());
    assert_eq!(response.error_code, ErrorCode::INVALID_REGULAR_EXPRESSION);
    assert_eq!(world.log.len(), written);
    world.check();
}

#[test]
fn an_expression_goes_with_its_last_subscriber() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::with_regex("a", "orders");
    let mut b = Client::with_regex("b", "orders");
    a.beat(&mut world);
    b.beat(&mut world);
    world.settle(&mut [&mut a, &mut b]);
    a.leave(&mut world, -1);
    assert!(world.group("group").resolved("orders").is_some());
    b.subscribe(&["orders"]);
    b.beat(&mut world);
    assert!(world.group("group").resolved("orders").is_none());
    world.check();
    world.settle(&mut [&mut b]);
    assert_eq!(b.owned.len(), 2);
}

#[test]
fn a_resolution_that_comes_late_disturbs_nobody() {
    let mut world = World::new();
    world.topic("orders", 2);
    world.works = false;
    let mut a = Client::with_regex("a", "orders");
    a.beat(&mut world);
    a.leave(&mut world, -1);
    world.works = true;
    world.do_work();
    assert!(world.group("group").resolved("orders").is_none());
    world.check();
}

#[test]
fn a_resolution_that_comes_late_takes_away_no_topic_that_was_created_again() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::with_regex("a", "orders");
    a.beat(&mut world);
    world.settle(&mut [&mut a]);
    world.delete_topic("orders");
    a.beat(&mut world);
    world.settle(&mut [&mut a]);
    // While the expression is resolved without the topic, it comes again and is assigned by name.
    world.works = false;
    world.wait(11_000);
    a.beat(&mut world);
    let new = world.topic("orders", 2);
    a.beat(&mut world);
    assert_eq!(a.of(new), [0, 1]);
    world.works = true;
    world.do_work();
    world.wait(2_000);
    a.beat(&mut world);
    assert_eq!(a.of(new), [0, 1]);
    world.check();
}

#[test]
fn a_new_expression_that_matches_nothing_takes_away_what_the_old_one_matched() {
    let mut world = World::new();
    let orders = world.topic("orders", 2);
    let mut a = Client::with_regex("a", "orders");
    let mut b = Client::new("b", &["orders"]);
    a.beat(&mut world);
    b.beat(&mut world);
    world.settle(&mut [&mut a, &mut b]);
    assert_eq!((a.of(orders).len(), b.of(orders).len()), (1, 1));
    a.regex = Some("nothing".to_owned());
    a.say_all();
    a.beat(&mut world);
    world.wait(11_000);
    world.settle(&mut [&mut a, &mut b]);
    assert_eq!((a.of(orders).len(), b.of(orders).len()), (0, 2));
}

#[test]
fn offsets_are_not_deleted_while_an_expression_may_match_their_topic() {
    let mut world = World::new();
    world.topic("orders", 2);
    world.works = false;
    let mut a = Client::with_regex("a", "orders.*");
    a.beat(&mut world);
    let delete = |world: &mut World, topic: &str| {
        let topic = OffsetDeleteRequestTopic {
            name: topic.into(),
            partitions: vec![OffsetDeleteRequestPartition { partition_index: 0 }],
        };
        let request = OffsetDeleteRequest {
            group_id: "group".into(),
            topics: vec![topic],
        };
        match world.request(Request::OffsetDelete { request }) {
            Some(Reply::OffsetDelete(response)) => response.topics[0].partitions[0].error_code,
            other => panic!("{other:?}"),
        }
    };
    // It may match anything until it has been resolved.
    for topic in ["orders", "payments"] {
        let code = delete(&mut world, topic);
        assert_eq!(code, ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC);
    }
    world.works = true;
    world.do_work();
    let code = delete(&mut world, "orders");
    assert_eq!(code, ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC);
    assert_eq!(delete(&mut world, "payments"), ErrorCode::NONE);
}
