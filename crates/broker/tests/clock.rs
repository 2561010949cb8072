//! A wall clock that is set while the broker runs: dates follow it, intervals do not.

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use common::*;
use kohort_broker::{Broker, Builder};
use kohort_group::history::Event;
use kohort_wire::{
    ErrorCode,
    messages::*,
    records::{BatchBuilder, BatchHeader, Compression},
};

const HOUR_MS: i64 = 3_600_000;

/// A clock that tests set.
#[derive(Clone)]
struct WallClock(Arc<AtomicI64>);

impl WallClock {
    fn at(date_ms: i64) -> WallClock {
        WallClock(Arc::new(AtomicI64::new(date_ms)))
    }

    fn set(&self, date_ms: i64) {
        self.0.store(date_ms, Ordering::SeqCst);
    }

    fn for_broker(&self, builder: Builder) -> Builder {
        let date_ms = Arc::clone(&self.0);
        builder.wall_clock(move || date_ms.load(Ordering::SeqCst))
    }
}

fn record_of(timestamp_ms: i64) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None, None);
    builder.append(timestamp_ms, None, Some(b"v"), []).unwrap();
    builder.finish()
}

async fn send(client: &mut Client, topic: &str, timestamp_ms: i64) -> PartitionProduceResponse {
    let request = produce(topic, 0, record_of(timestamp_ms), -1);
    let mut response = client.ask(12, request).await;
    response.responses.remove(0).partition_responses.remove(0)
}

/// Whether `is_so` comes true before the test loses patience.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("in time");
}

fn join(group: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: 30_000,
        member_id: member_id.into(),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupProtocol {
            name: "range".into(),
            metadata: Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        }],
        ..JoinGroupRequest::default()
    }
}

async fn heartbeat(client: &mut Client, group: &str, joined: &JoinGroupResponse) -> ErrorCode {
    let request = HeartbeatRequest {
        group_id: group.into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        group_instance_id: None,
    };
    client.ask(4, request).await.error_code
}

async fn join_alone(client: &mut Client, group: &str) -> JoinGroupResponse {
    let first = client.ask(9, join(group, "")).await;
    let joined = client.ask(9, join(group, &first.member_id)).await;
    assert_eq!(joined.error_code, ErrorCode::NONE, "{joined:?}");
    let sync = SyncGroupRequest {
        group_id: group.into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..SyncGroupRequest::default()
    };
    assert_eq!(client.ask(5, sync).await.error_code, ErrorCode::NONE);
    joined
}

#[tokio::test]
async fn a_broker_that_started_with_a_wrong_clock_takes_records_once_it_is_right() {
    let now = now_ms();
    let clock = WallClock::at(now - 3 * HOUR_MS);
    let broker = clock.for_broker(builder()).start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let append_time = [("message.timestamp.type", "LogAppendTime")];
    client.create_topic_with("stamped", 1, &append_time).await;
    let refused = send(&mut client, "t", now).await;
    assert_eq!(refused.error_code, ErrorCode::INVALID_TIMESTAMP);

    clock.set(now);
    assert_eq!(
        send(&mut client, "t", now).await.error_code,
        ErrorCode::NONE
    );
    let stamped = send(&mut client, "stamped", 5).await;
    assert_eq!(stamped.log_append_time_ms, now);
    // What the broker writes itself has the date too.
    client.create_topic("later", 1).await;
    assert_eq!(client.commit("g", "t", 0, 1).await, ErrorCode::NONE);
    let offsets = find_offsets(&mut client).await;
    let header = BatchHeader::parse(&offsets).unwrap();
    assert_eq!(header.max_timestamp, now);
    broker.shutdown().await;
}

/// The records of the one partition of `__consumer_offsets` that has any.
async fn find_offsets(client: &mut Client) -> Bytes {
    for partition in 0..50 {
        let request = fetch("__consumer_offsets", partition, 0, 0);
        let response = client.ask(12, request).await;
        let data = &response.responses[0].partitions[0];
        if let Some(records) = data.records.as_ref().filter(|records| !records.is_empty()) {
            return records.clone();
        }
    }
    panic!("nothing was committed")
}

#[tokio::test]
async fn no_session_ends_because_the_clock_was_set_and_history_has_the_date() {
    let now = now_ms();
    let clock = WallClock::at(now);
    let broker = clock.for_broker(builder()).start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let joined = join_alone(&mut client, "g").await;
    for date in [now + 48 * HOUR_MS, now - 48 * HOUR_MS, now + HOUR_MS] {
        clock.set(date);
        assert_eq!(heartbeat(&mut client, "g", &joined).await, ErrorCode::NONE);
        let group = format!("g{date}");
        let other = join_alone(&mut client, &group).await;
        assert_eq!(
            heartbeat(&mut client, &group, &other).await,
            ErrorCode::NONE
        );
        until(async || {
            let data = client.fetch("__kohort_group_events", 0, 0).await;
            let values = values(&data);
            let mut events = values
                .iter()
                .filter_map(|value| Event::from_json(value.as_bytes()).ok())
                .filter(|event| *event.group_id == *group)
                .peekable();
            let any = events.peek().is_some();
            assert!(events.all(|event| event.at.abs_diff(date) < 60_000));
            any
        })
        .await;
    }
    broker.shutdown().await;
}

#[tokio::test]
async fn records_and_offsets_expire_by_the_date() {
    let now = now_ms();
    let clock = WallClock::at(now);
    let builder = builder()
        .set("log.retention.check.interval.ms", "20")
        .set("offsets.retention.minutes", "60")
        .set("offsets.retention.check.interval.ms", "20");
    let broker = clock.for_broker(builder).start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client
        .create_topic_with("t", 1, &[("retention.ms", "3600000")])
        .await;
    assert_eq!(
        send(&mut client, "t", now).await.error_code,
        ErrorCode::NONE
    );
    assert_eq!(client.commit("g", "t", 0, 1).await, ErrorCode::NONE);
    clock.set(now + HOUR_MS - 60_000);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(client.committed("g", "t", 0).await, 1);
    assert_eq!(client.fetch("t", 0, 0).await.log_start_offset, 0);
    // As after a night's sleep.
    clock.set(now + HOUR_MS + 60_000);
    until(async || client.committed("g", "t", 0).await == -1).await;
    until(async || client.fetch("t", 0, 1).await.log_start_offset == 1).await;
    broker.shutdown().await;
}

#[tokio::test]
async fn a_producer_that_outlives_its_broker_is_not_taken_for_one_of_the_next() {
    async fn new_id(broker: &Broker) -> i64 {
        let mut client = Client::connect(broker).await;
        let request = InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: 1000,
            producer_id: -1,
            producer_epoch: -1,
            ..InitProducerIdRequest::default()
        };
        let response = client.ask(4, request).await;
        assert_eq!(response.error_code, ErrorCode::NONE);
        response.producer_id
    }
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..3 {
        // In memory, and in a folder that was deleted.
        for folder in [None, Some(tempfile::tempdir().unwrap())] {
            let builder = match &folder {
                Some(folder) => builder().data_dir(folder.path()),
                None => builder(),
            };
            let broker = builder.start().await.unwrap();
            assert!(ids.insert(new_id(&broker).await));
            assert!(ids.insert(new_id(&broker).await));
            broker.shutdown().await;
        }
    }
    assert_eq!(ids.len(), 12);
}

#[tokio::test]
async fn flush_settings_are_kept_when_no_producer_asks_for_a_flush() {
    let folder = tempfile::tempdir().unwrap();
    let broker = builder().data_dir(folder.path()).start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client
        .create_topic_with("by_count", 1, &[("flush.messages", "1")])
        .await;
    client
        .create_topic_with("by_time", 1, &[("flush.ms", "50")])
        .await;
    client.create_topic("never", 1).await;
    let flushed = |topic: &str| {
        // The recovery point is written with every flush, in two slots.
        let point = std::fs::read(folder.path().join(format!("{topic}-0/recovery-point")));
        let point = point.unwrap();
        let (slots, _) = point.as_chunks::<12>();
        slots.iter().map(|slot| slot[7]).max().unwrap_or(0)
    };
    for topic in ["by_count", "by_time", "never"] {
        let response = client.ask(12, produce(topic, 0, batch(&["v"]), 1)).await;
        let code = response.responses[0].partition_responses[0].error_code;
        assert_eq!(code, ErrorCode::NONE);
        if topic == "by_count" {
            assert_eq!(flushed(topic), 1);
        }
    }
    until(async || flushed("by_time") == 1).await;
    assert_eq!(flushed("never"), 0);
    broker.shutdown().await;
}
