//! What reading and writing the messages of the hot paths costs.

#![allow(missing_docs)]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kohort_wire::{
    ByteString, ErrorCode, Uuid,
    codec::{Decoder, Encoder, Message},
    messages::*,
};

fn encode<M: Message>(message: &M, version: i16) -> Bytes {
    let mut out = Encoder::with_capacity(128);
    message.encode(&mut out, version).expect("a message");
    out.finish().into_bytes()
}

fn bench<M: Message>(criterion: &mut Criterion, what: &str, message: M, version: i16) {
    let frame = encode(&message, version);
    // As it comes from a connection: a slice of a buffer that is shared already.
    let received = Bytes::from([&[0; 4], &frame[..]].concat());
    let received = received.slice(4..);
    let mut group = criterion.benchmark_group(what);
    group.throughput(Throughput::Bytes(frame.len() as u64));
    group.bench_function("decode", |bencher| {
        bencher.iter(|| M::decode(&mut Decoder::new(black_box(received.clone())), version))
    });
    group.bench_function("encode", |bencher| {
        bencher.iter(|| {
            let mut out = Encoder::with_capacity(128);
            black_box(&message)
                .encode(&mut out, version)
                .expect("a message");
            out.finish()
        })
    });
    group.finish();
}

fn text(text: &str) -> ByteString {
    ByteString::from(text)
}

fn heartbeat_request() -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: text("orders-billing"),
        member_id: text("sJ3ySK3aQ8y5kZrGqS9p_A"),
        member_epoch: 17,
        ..Default::default()
    }
}

fn heartbeat_response() -> ConsumerGroupHeartbeatResponse {
    ConsumerGroupHeartbeatResponse {
        member_id: Some(text("sJ3ySK3aQ8y5kZrGqS9p_A")),
        member_epoch: 17,
        heartbeat_interval_ms: 5000,
        ..Default::default()
    }
}

fn offset_commit() -> OffsetCommitRequest {
    let partition = |partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: 123_456_789,
        committed_leader_epoch: 3,
        ..Default::default()
    };
    OffsetCommitRequest {
        group_id: text("orders-billing"),
        generation_id_or_member_epoch: 17,
        member_id: text("sJ3ySK3aQ8y5kZrGqS9p_A"),
        topics: vec![OffsetCommitRequestTopic {
            name: text("orders"),
            partitions: (0..10).map(partition).collect(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn offset_commit_value() -> OffsetCommitValue {
    OffsetCommitValue {
        offset: 123_456_789,
        leader_epoch: 3,
        commit_timestamp: 1_700_000_000_000,
        topic_id: Uuid(0x1234_5678_9abc_def0_1234_5678_9abc_def0),
        ..Default::default()
    }
}

fn produce() -> ProduceRequest {
    ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![TopicProduceData {
            name: text("orders"),
            partition_data: vec![PartitionProduceData {
                index: 3,
                records: Some(vec![7; 16 * 1024].into()),
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn fetch_response() -> FetchResponse {
    let partition = |partition_index| FetchPartitionData {
        partition_index,
        high_watermark: 1_000_000,
        last_stable_offset: 1_000_000,
        log_start_offset: 0,
        aborted_transactions: None,
        records: Some(vec![7; 1024].into()),
        ..Default::default()
    };
    FetchResponse {
        session_id: 77,
        responses: (1..=5)
            .map(|topic| FetchableTopicResponse {
                topic_id: Uuid(topic),
                partitions: (0..10).map(partition).collect(),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

fn metadata() -> MetadataResponse {
    let partition = |partition_index| MetadataResponsePartition {
        partition_index,
        leader_id: 1,
        leader_epoch: 4,
        replica_nodes: vec![1, 2, 3],
        isr_nodes: vec![1, 2, 3],
        ..Default::default()
    };
    MetadataResponse {
        brokers: (1..=3)
            .map(|node_id| MetadataResponseBroker {
                node_id,
                host: text("broker.example.net"),
                port: 9092,
                rack: None,
            })
            .collect(),
        topics: (1..=100)
            .map(|topic| MetadataResponseTopic {
                error_code: ErrorCode::NONE,
                name: Some(text(&format!("topic-{topic}"))),
                topic_id: Uuid(topic),
                partitions: (0..10).map(partition).collect(),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

fn messages(criterion: &mut Criterion) {
    bench(
        criterion,
        "ConsumerGroupHeartbeatRequest",
        heartbeat_request(),
        1,
    );
    bench(
        criterion,
        "ConsumerGroupHeartbeatResponse",
        heartbeat_response(),
        1,
    );
    bench(
        criterion,
        "OffsetCommitRequest, 10 partitions",
        offset_commit(),
        9,
    );
    bench(criterion, "OffsetCommitValue", offset_commit_value(), 4);
    bench(criterion, "ProduceRequest, 16 KiB", produce(), 12);
    bench(criterion, "FetchResponse, 50 x 1 KiB", fetch_response(), 17);
    bench(
        criterion,
        "MetadataResponse, 1,000 partitions",
        metadata(),
        12,
    );
}

criterion_group!(benches, messages);
criterion_main!(benches);
