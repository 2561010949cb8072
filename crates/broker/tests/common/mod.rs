//! A client for tests: one connection, any request, nothing clever.

#![allow(dead_code, unreachable_pub)]

use std::time::Duration;

use bytes::Bytes;
use kohort_broker::{Broker, Builder};
use kohort_wire::{
    ByteString, ErrorCode, Request, Uuid, frame,
    messages::*,
    records::{BatchBuilder, Compression},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// How long anything in a test may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A broker in memory that does not wait for members that do not come.
pub fn builder() -> Builder {
    Broker::builder().set("group.initial.rebalance.delay.ms", "0")
}

/// A connection.
pub struct Client {
    pub stream: TcpStream,
    correlation_id: i32,
}

impl Client {
    pub async fn connect(broker: &Broker) -> Client {
        Client::connect_to(broker.address()).await
    }

    pub async fn connect_to(address: std::net::SocketAddr) -> Client {
        Client {
            stream: TcpStream::connect(address).await.unwrap(),
            correlation_id: 0,
        }
    }

    /// Sends a request and reads its response.
    pub async fn ask<R: Request>(&mut self, version: i16, request: R) -> R::Response {
        let correlation_id = self.send(version, &request).await;
        let response = self.receive().await.expect("the connection stays");
        assert_eq!(frame::correlation_id(&response).unwrap(), correlation_id);
        frame::decode_response::<R>(response, version).unwrap()
    }

    /// Sends a request.
    pub async fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        self.correlation_id += 1;
        let frame =
            frame::encode_request(request, version, self.correlation_id, Some("test")).unwrap();
        self.stream.write_all(&frame.into_bytes()).await.unwrap();
        self.correlation_id
    }

    /// The next response without its length, or `None` when the broker has closed the connection.
    pub async fn receive(&mut self) -> Option<Bytes> {
        let read = async {
            let length = self.stream.read_i32().await.ok()?;
            let mut frame = vec![0; length as usize];
            self.stream.read_exact(&mut frame).await.ok()?;
            Some(Bytes::from(frame))
        };
        tokio::time::timeout(PATIENCE, read)
            .await
            .expect("an answer, or the end of the connection")
    }

    pub async fn receive_as<R: Request>(&mut self, version: i16) -> R::Response {
        let response = self.receive().await.expect("the connection stays");
        frame::decode_response::<R>(response, version).unwrap()
    }

    pub async fn create_topic(&mut self, name: &str, partitions: i32) -> Uuid {
        self.create_topic_with(name, partitions, &[]).await
    }

    pub async fn create_topic_with(
        &mut self,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> Uuid {
        let response = self.ask(7, create_topic(name, partitions, configs)).await;
        assert_eq!(
            response.topics[0].error_code,
            ErrorCode::NONE,
            "{response:?}"
        );
        response.topics[0].topic_id
    }

    /// Produces values with acks=all.
    pub async fn produce(
        &mut self,
        topic: &str,
        partition: i32,
        values: &[&str],
    ) -> PartitionProduceResponse {
        let request = produce(topic, partition, batch(values), -1);
        let mut response = self.ask(12, request).await;
        response.responses.remove(0).partition_responses.remove(0)
    }

    /// Fetches from an offset on, waiting for a second at most.
    pub async fn fetch(&mut self, topic: &str, partition: i32, offset: i64) -> FetchPartitionData {
        let request = fetch(topic, partition, offset, 1000);
        let mut response = self.ask(12, request).await;
        assert_eq!(response.error_code, ErrorCode::NONE);
        response.responses.remove(0).partitions.remove(0)
    }

    /// Finds the coordinator of a group, until it is there.
    pub async fn find_coordinator(&mut self, group: &str) {
        let request = FindCoordinatorRequest {
            key: group.into(),
            ..FindCoordinatorRequest::default()
        };
        let response = self.ask(3, request).await;
        assert_eq!(response.error_code, ErrorCode::NONE);
    }

    pub async fn commit(
        &mut self,
        group: &str,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> ErrorCode {
        let response = self.ask(8, commit(group, topic, partition, offset)).await;
        response.topics[0].partitions[0].error_code
    }

    pub async fn committed(&mut self, group: &str, topic: &str, partition: i32) -> i64 {
        let response = self.ask(8, offset_fetch(group, topic, partition)).await;
        let group = &response.groups[0];
        assert_eq!(group.error_code, ErrorCode::NONE);
        group.topics[0].partitions[0].committed_offset
    }
}

pub fn create_topic(name: &str, partitions: i32, configs: &[(&str, &str)]) -> CreateTopicsRequest {
    let configs = configs.iter().map(|&(name, value)| CreatableTopicConfig {
        name: name.into(),
        value: Some(value.into()),
    });
    CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: 1,
            configs: configs.collect(),
            ..CreatableTopic::default()
        }],
        ..CreateTopicsRequest::default()
    }
}

pub fn batch(values: &[&str]) -> Bytes {
    batch_of(values, |_| {})
}

pub fn batch_of(values: &[&str], prepare: impl FnOnce(&mut BatchBuilder)) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None, None);
    prepare(&mut builder);
    for value in values {
        builder
            .append(now_ms(), None, Some(value.as_bytes()), [])
            .unwrap();
    }
    builder.finish()
}

pub fn now_ms() -> i64 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis() as i64
}

pub fn produce(topic: &str, partition: i32, records: Bytes, acks: i16) -> ProduceRequest {
    ProduceRequest {
        acks,
        timeout_ms: 1000,
        topic_data: vec![TopicProduceData {
            name: topic.into(),
            partition_data: vec![PartitionProduceData {
                index: partition,
                records: Some(records),
            }],
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    }
}

pub fn fetch(topic: &str, partition: i32, offset: i64, max_wait_ms: i32) -> FetchRequest {
    FetchRequest {
        max_wait_ms,
        min_bytes: 1,
        max_bytes: 1 << 20,
        topics: vec![FetchTopic {
            topic: topic.into(),
            partitions: vec![FetchPartition {
                partition,
                fetch_offset: offset,
                partition_max_bytes: 1 << 20,
                ..FetchPartition::default()
            }],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    }
}

pub fn commit(group: &str, topic: &str, partition: i32, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: group.into(),
        topics: vec![OffsetCommitRequestTopic {
            name: topic.into(),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: partition,
                committed_offset: offset,
                committed_metadata: Some(ByteString::new()),
                ..OffsetCommitRequestPartition::default()
            }],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    }
}

pub fn offset_fetch(group: &str, topic: &str, partition: i32) -> OffsetFetchRequest {
    OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.into(),
            topics: Some(vec![OffsetFetchRequestTopics {
                name: topic.into(),
                partition_indexes: vec![partition],
                ..OffsetFetchRequestTopics::default()
            }]),
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    }
}

/// The values of records that were fetched.
pub fn values(data: &FetchPartitionData) -> Vec<String> {
    let mut bytes = data.records.clone().unwrap_or_default();
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let batch = kohort_wire::records::Batch::split_from(&mut bytes).unwrap();
        let records = batch.records(1 << 30).unwrap();
        for record in &records {
            let value = record.unwrap().value.unwrap_or_default().to_vec();
            values.push(String::from_utf8(value).unwrap());
        }
    }
    values
}
