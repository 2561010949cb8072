//! Consumer groups (KIP-848): what they have beyond Kafka's.

mod common;

use std::time::{Duration, Instant};

use common::{Client, PATIENCE, builder};
use kohort_broker::Broker;
use kohort_wire::{ErrorCode, messages::*};

fn join(member_id: &str, topic: &str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member_id.into(),
        rebalance_timeout_ms: 60_000,
        subscribed_topic_names: Some(vec![topic.into()]),
        topic_partitions: Some(Vec::new()),
        ..ConsumerGroupHeartbeatRequest::default()
    }
}

fn stay(member_id: &str, member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member_id.into(),
        member_epoch,
        rebalance_timeout_ms: -1,
        ..ConsumerGroupHeartbeatRequest::default()
    }
}

async fn members(client: &mut Client) -> usize {
    let request = ConsumerGroupDescribeRequest {
        group_ids: vec!["g".into()],
        ..ConsumerGroupDescribeRequest::default()
    };
    client.ask(1, request).await.groups[0].members.len()
}

/// Waits until the group has no members.
async fn until_empty(client: &mut Client) -> Duration {
    let start = Instant::now();
    while members(client).await > 0 {
        assert!(start.elapsed() < PATIENCE, "still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    start.elapsed()
}

#[tokio::test]
async fn a_small_group_heartbeats_often_and_settings_say_how_often() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let joined = client.ask(1, join("a", "t")).await;
    assert_eq!(joined.heartbeat_interval_ms, 250);

    let broker = builder()
        .set(
            "kohort.group.consumer.shortest.heartbeat.interval.ms",
            "5000",
        )
        .start()
        .await
        .unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let joined = client.ask(1, join("a", "t")).await;
    assert_eq!(joined.heartbeat_interval_ms, 5_000);
}

#[tokio::test]
async fn the_budget_of_all_groups_together_makes_intervals_longer() {
    let broker = builder()
        .set("kohort.group.consumer.heartbeats.per.second", "10")
        .start()
        .await
        .unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    for n in 0..30 {
        let request = ConsumerGroupHeartbeatRequest {
            group_id: format!("group-{n}").into(),
            ..join("a", "t")
        };
        client.ask(1, request).await;
    }
    let mut epoch = client.ask(1, join("a", "t")).await.member_epoch;
    let start = Instant::now();
    loop {
        let answer = client.ask(1, stay("a", epoch)).await;
        if answer.heartbeat_interval_ms >= 3_000 {
            return;
        }
        epoch = answer.member_epoch;
        assert!(start.elapsed() < PATIENCE, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_member_whose_connection_closes_is_given_up_long_before_its_session_ends() {
    let broker = builder()
        .set("group.consumer.heartbeat.interval.ms", "100")
        .set("kohort.group.consumer.connection.grace.ms", "300")
        .start()
        .await
        .unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let mut first = Client::connect(&broker).await;
    let epoch = first.ask(1, join("a", "t")).await.member_epoch;

    // It comes back over another connection: nothing has happened.
    drop(first);
    let mut second = Client::connect(&broker).await;
    let answer = second.ask(1, stay("a", epoch)).await;
    assert_eq!(answer.error_code, ErrorCode::NONE);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(members(&mut client).await, 1, "its connection is open");

    drop(second);
    let took = until_empty(&mut client).await;
    assert!(took < Duration::from_secs(15), "{took:?}");
}

#[tokio::test]
async fn the_end_of_the_broker_is_not_the_end_of_its_members() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        builder()
            .data_dir(folder.path())
            .set("group.consumer.heartbeat.interval.ms", "100")
            .set("kohort.group.consumer.connection.grace.ms", "1")
            .start()
    };
    let broker: Broker = start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let epoch = client.ask(1, join("a", "t")).await.member_epoch;
    broker.shutdown().await;

    let broker = start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(400)).await;
    let mut client = Client::connect(&broker).await;
    let answer = client.ask(1, stay("a", epoch)).await;
    assert_eq!(
        (answer.error_code, answer.member_epoch),
        (ErrorCode::NONE, epoch)
    );
}

async fn grow(client: &mut Client, topic: &str, count: i32) {
    let request = CreatePartitionsRequest {
        topics: vec![CreatePartitionsTopic {
            name: topic.into(),
            count,
            assignments: None,
        }],
        timeout_ms: 1_000,
        validate_only: false,
    };
    let grown = client.ask(3, request).await;
    assert_eq!(grown.results[0].error_code, ErrorCode::NONE);
}

/// Heartbeats until the member has so many partitions. Gives its epoch.
async fn until_assigned(client: &mut Client, mut epoch: i32, count: usize) -> i32 {
    let start = Instant::now();
    loop {
        let answer = client.ask(1, stay("a", epoch)).await;
        assert_eq!(answer.error_code, ErrorCode::NONE);
        epoch = answer.member_epoch;
        let assigned = answer.assignment.map_or(0, |assignment| {
            let topics = assignment.topic_partitions.iter();
            topics.map(|topic| topic.partitions.len()).sum()
        });
        if assigned == count {
            return epoch;
        }
        assert!(start.elapsed() < PATIENCE, "{assigned} partitions");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn new_partitions_start_at_the_first_record_that_is_left_after_a_restart_too() {
    let folder = tempfile::tempdir().unwrap();
    let start = || builder().data_dir(folder.path()).start();
    let broker = start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    client.produce("t", 0, &["before"]).await;
    let epoch = client.ask(1, join("a", "t")).await.member_epoch;
    assert_eq!(client.committed("g", "t", 0).await, -1, "a new group");
    grow(&mut client, "t", 3).await;
    client.produce("t", 1, &["a", "b", "c"]).await;
    client.produce("t", 2, &["d"]).await;
    let delete = DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: "t".into(),
            partitions: vec![DeleteRecordsPartition {
                partition_index: 1,
                offset: 2,
            }],
        }],
        timeout_ms: 1_000,
    };
    client.ask(2, delete).await;
    broker.shutdown().await;

    let broker = start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let epoch = until_assigned(&mut client, epoch, 3).await;
    assert_eq!(client.committed("g", "t", 0).await, -1);
    assert_eq!(client.committed("g", "t", 1).await, 2);
    assert_eq!(client.committed("g", "t", 2).await, 0);

    // The group may have it otherwise.
    let off = IncrementalAlterConfigsRequest {
        resources: vec![IncrementalAlterConfigsResource {
            resource_type: 32,
            resource_name: "g".into(),
            configs: vec![IncrementalAlterableConfig {
                name: "kohort.new.partitions.from.start".into(),
                config_operation: 0,
                value: Some("false".into()),
            }],
        }],
        validate_only: false,
    };
    let altered = client.ask(1, off).await;
    assert_eq!(altered.responses[0].error_code, ErrorCode::NONE);
    grow(&mut client, "t", 4).await;
    until_assigned(&mut client, epoch, 4).await;
    assert_eq!(client.committed("g", "t", 3).await, -1);
}
