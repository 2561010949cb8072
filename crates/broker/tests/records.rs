//! Records go in and come out.

mod common;

use std::time::Duration;

use common::*;
use kohort_wire::{ErrorCode, messages::*};
use tokio::time::Instant;

#[tokio::test]
async fn what_is_produced_is_fetched_in_order_by_name_and_by_id() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let id = client.create_topic("t", 2).await;
    let produced = client.produce("t", 1, &["a", "b"]).await;
    assert_eq!(produced.error_code, ErrorCode::NONE);
    assert_eq!(produced.base_offset, 0);
    assert_eq!(client.produce("t", 1, &["c"]).await.base_offset, 2);

    let fetched = client.fetch("t", 1, 0).await;
    assert_eq!(values(&fetched), ["a", "b", "c"]);
    assert_eq!(fetched.high_watermark, 3);
    assert_eq!(values(&client.fetch("t", 1, 2).await), ["c"]);

    let mut by_id = fetch("", 1, 0, 100);
    by_id.topics[0].topic_id = id;
    let fetched = client.ask(18, by_id).await;
    assert_eq!(fetched.responses[0].topic_id, id);
    assert_eq!(values(&fetched.responses[0].partitions[0]), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_fetch_waits_for_records_and_no_longer() {
    let broker = builder().start().await.unwrap();
    let mut reader = Client::connect(&broker).await;
    let mut writer = Client::connect(&broker).await;
    writer.create_topic("t", 1).await;

    let started_at = Instant::now();
    reader.send(12, &fetch("t", 0, 0, 15_000)).await;
    writer.produce("t", 0, &["x"]).await;
    let response = reader.receive_as::<FetchRequest>(12).await;
    assert_eq!(values(&response.responses[0].partitions[0]), ["x"]);
    assert!(started_at.elapsed().as_secs() < 10);

    let empty = reader.ask(12, fetch("t", 0, 1, 50)).await;
    assert_eq!(values(&empty.responses[0].partitions[0]), [""; 0]);
    assert_eq!(empty.responses[0].partitions[0].high_watermark, 1);
}

#[tokio::test]
async fn errors_are_told_partition_by_partition() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let unknown = client.produce("t", 7, &["a"]).await;
    assert_eq!(unknown.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let unknown = client.produce("nowhere", 0, &["a"]).await;
    assert_eq!(unknown.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let beyond = client.fetch("t", 0, 5).await;
    assert_eq!(beyond.error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    let mut bytes = batch(&["a"]).to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let response = client.ask(12, produce("t", 0, bytes.into(), -1)).await;
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ErrorCode::CORRUPT_MESSAGE);

    let mut by_id = fetch("", 0, 0, 0);
    by_id.topics[0].topic_id = kohort_wire::Uuid(99);
    let response = client.ask(13, by_id).await;
    let code = response.responses[0].partitions[0].error_code;
    assert_eq!(code, ErrorCode::UNKNOWN_TOPIC_ID);
}

#[tokio::test]
async fn a_produce_without_acknowledgement_is_not_answered_and_a_failing_one_costs_the_connection()
{
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    client.send(12, &produce("t", 0, batch(&["a"]), 0)).await;
    // The next response belongs to the next request.
    assert_eq!(values(&client.fetch("t", 0, 0).await), ["a"]);

    client
        .send(12, &produce("nowhere", 0, batch(&["a"]), 0))
        .await;
    assert_eq!(client.receive().await, None);
}

#[tokio::test]
async fn an_idempotent_producer_that_repeats_itself_gets_its_first_offset() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let first = client
        .ask(5, InitProducerIdRequest::default_idempotent())
        .await;
    let second = client
        .ask(5, InitProducerIdRequest::default_idempotent())
        .await;
    assert_ne!(first.producer_id, second.producer_id);

    let write = |sequence| {
        let records = batch_of(&["a"], |batch| {
            batch.set_producer(first.producer_id, 0, sequence)
        });
        produce("t", 0, records, -1)
    };
    let offset = |response: ProduceResponse| {
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    };
    assert_eq!(offset(client.ask(12, write(0)).await), (ErrorCode::NONE, 0));
    assert_eq!(offset(client.ask(12, write(1)).await), (ErrorCode::NONE, 1));
    assert_eq!(offset(client.ask(12, write(0)).await), (ErrorCode::NONE, 0));
    let (code, _) = offset(client.ask(12, write(5)).await);
    assert_eq!(code, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
}

trait Idempotent {
    fn default_idempotent() -> Self;
}

impl Idempotent for InitProducerIdRequest {
    fn default_idempotent() -> InitProducerIdRequest {
        InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: 60_000,
            ..InitProducerIdRequest::default()
        }
    }
}

#[tokio::test]
async fn an_incremental_fetch_session_tells_only_news() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 3).await;
    let mut first = fetch("t", 0, 0, 0);
    first.session_epoch = 0;
    for partition in 1..3 {
        let mut more = first.topics[0].partitions[0].clone();
        more.partition = partition;
        first.topics[0].partitions.push(more);
    }
    let response = client.ask(12, first).await;
    assert_ne!(response.session_id, 0);
    assert_eq!(response.responses[0].partitions.len(), 3);

    client.produce("t", 2, &["x"]).await;
    let next = FetchRequest {
        session_id: response.session_id,
        session_epoch: 1,
        topics: Vec::new(),
        max_wait_ms: 1000,
        min_bytes: 1,
        ..FetchRequest::default()
    };
    let news = client.ask(12, next.clone()).await;
    assert_eq!(news.responses.len(), 1);
    assert_eq!(news.responses[0].partitions.len(), 1);
    assert_eq!(values(&news.responses[0].partitions[0]), ["x"]);
    let stale = client.ask(12, next).await;
    assert_eq!(stale.error_code, ErrorCode::INVALID_FETCH_SESSION_EPOCH);
}

#[tokio::test]
async fn offsets_are_found_by_time_and_records_deleted_before_an_offset() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let before = now_ms();
    client.produce("t", 0, &["a", "b"]).await;
    client.produce("t", 0, &["c"]).await;
    for (timestamp, offset) in [
        (-1, 3),
        (-2, 0),
        (-4, 0),
        (before - 1, 0),
        (before + 100_000, -1),
    ] {
        let response = client.ask(10, list_offsets("t", timestamp)).await;
        let partition = &response.topics[0].partitions[0];
        assert_eq!(partition.error_code, ErrorCode::NONE);
        assert_eq!(partition.offset, offset, "at {timestamp}");
    }
    let latest = client.ask(10, list_offsets("t", -3)).await;
    assert!(latest.topics[0].partitions[0].timestamp >= before);
    let too_old = client.ask(6, list_offsets("t", -3)).await;
    let code = too_old.topics[0].partitions[0].error_code;
    assert_eq!(code, ErrorCode::UNSUPPORTED_VERSION);

    let delete = DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: "t".into(),
            partitions: vec![DeleteRecordsPartition {
                partition_index: 0,
                offset: 2,
            }],
        }],
        timeout_ms: 1000,
    };
    let deleted = client.ask(2, delete).await;
    assert_eq!(deleted.topics[0].partitions[0].low_watermark, 2);
    assert_eq!(
        client.fetch("t", 0, 1).await.error_code,
        ErrorCode::OFFSET_OUT_OF_RANGE
    );
    assert_eq!(values(&client.fetch("t", 0, 2).await), ["c"]);
}

fn list_offsets(topic: &str, timestamp: i64) -> ListOffsetsRequest {
    ListOffsetsRequest {
        replica_id: -1,
        topics: vec![ListOffsetsTopic {
            name: topic.into(),
            partitions: vec![ListOffsetsPartition {
                partition_index: 0,
                timestamp,
                ..ListOffsetsPartition::default()
            }],
        }],
        ..ListOffsetsRequest::default()
    }
}

#[tokio::test]
async fn requests_that_are_sent_without_waiting_are_done_and_answered_in_order() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    for count in 0..100 {
        let value = count.to_string();
        client
            .send(12, &produce("t", 0, batch(&[&value]), -1))
            .await;
    }
    for count in 0..100 {
        let response = client.receive_as::<ProduceRequest>(12).await;
        let partition = &response.responses[0].partition_responses[0];
        assert_eq!(partition.base_offset, count);
    }
    let expected: Vec<String> = (0..100).map(|count| count.to_string()).collect();
    assert_eq!(values(&client.fetch("t", 0, 0).await), expected);
}

/// A request whose `min.bytes` is more than it can get is answered as soon as it is as full as it
/// gets: in Kafka, too, what is not waited for is what a limit keeps back.
#[tokio::test]
async fn a_fetch_never_waits_for_what_its_limits_keep_back() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 2).await;
    let large = "x".repeat(700_000);
    for _ in 0..60 {
        client.produce("t", 0, &[&large]).await;
    }
    let mib = |n: i32| n << 20;
    // min, max, and the most of a partition.
    for (min_bytes, max_bytes, partition_max_bytes) in [
        (mib(20), mib(24), mib(50)),
        (mib(2), mib(1), mib(50)),
        (mib(30), mib(50), mib(50)),
        (mib(100), mib(50), mib(50)),
        (mib(20), mib(50), mib(1)),
        (mib(20), mib(50), 100),
        (i32::MAX, i32::MAX, i32::MAX),
    ] {
        let mut request = fetch("t", 0, 0, 600_000);
        (request.min_bytes, request.max_bytes) = (min_bytes, max_bytes);
        request.topics[0].partitions[0].partition_max_bytes = partition_max_bytes;
        // `ask` does not wait as long as the request would.
        let response = client.ask(12, request).await;
        let records = response.responses[0].partitions[0].records.as_ref();
        assert!(
            records.is_some_and(|records| records.len() >= 700_000),
            "{min_bytes}, {max_bytes}, {partition_max_bytes}"
        );
    }
}

#[tokio::test]
async fn a_fetch_waits_until_there_is_as_much_as_it_wants_of_all_partitions_together() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 2).await;
    let mut waiting = Client::connect(&broker).await;
    let mut request = fetch("t", 0, 0, 600_000);
    request.min_bytes = 5_000;
    let mut second = request.topics[0].partitions[0].clone();
    second.partition = 1;
    request.topics[0].partitions.push(second);
    waiting.send(12, &request).await;
    let record = "x".repeat(1_000);
    for partition in [0, 1, 0, 1] {
        client.produce("t", partition, &[&record]).await;
    }
    let early = tokio::time::timeout(Duration::from_millis(200), waiting.stream.readable()).await;
    assert!(early.is_err(), "4,300 bytes are too few");
    client.produce("t", 1, &[&record]).await;
    let response = waiting.receive_as::<FetchRequest>(12).await;
    let partitions = &response.responses[0].partitions;
    let count = partitions.iter().map(|data| values(data).len());
    assert_eq!(count.sum::<usize>(), 5);
}

/// What is deleted is not waited for.
#[tokio::test]
async fn a_fetch_that_waits_learns_that_its_topic_has_been_deleted() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    client.produce("t", 0, &["a"]).await;
    let mut waiting = Client::connect(&broker).await;
    let mut request = fetch("t", 0, 0, 600_000);
    request.min_bytes = 1_000;
    waiting.send(12, &request).await;
    let request = DeleteTopicsRequest {
        topic_names: vec!["t".into()],
        ..DeleteTopicsRequest::default()
    };
    client.ask(5, request).await;
    let response = waiting.receive_as::<FetchRequest>(12).await;
    let code = response.responses[0].partitions[0].error_code;
    assert_eq!(code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}
