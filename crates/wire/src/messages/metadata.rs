//! Metadata (API 3).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    pub struct MetadataRequest: 0..=13, flexible 9.. {
        topics: Option<Vec<MetadataRequestTopic>> [0.., null 1..] = Some(Default::default()),
        allow_auto_topic_creation: bool [4..] = true,
        include_cluster_authorized_operations: bool [8..=10],
        include_topic_authorized_operations: bool [8..],
    }

    pub struct MetadataRequestTopic {
        topic_id: Uuid [10.., ignorable],
        name: Option<ByteString> [0.., null 10..] = Some(Default::default()),
    }

    pub struct MetadataResponse: 0..=13, flexible 9.. {
        throttle_time_ms: i32 [3.., ignorable],
        brokers: Vec<MetadataResponseBroker> [0..],
        cluster_id: Option<ByteString> [2.., null 2.., ignorable],
        controller_id: i32 [1.., ignorable] = -1,
        topics: Vec<MetadataResponseTopic> [0..],
        cluster_authorized_operations: i32 [8..=10] = i32::MIN,
        error_code: ErrorCode [13.., ignorable],
    }

    pub struct MetadataResponseBroker {
        node_id: i32 [0..],
        host: ByteString [0..],
        port: i32 [0..],
        rack: Option<ByteString> [1.., null 1.., ignorable],
    }

    pub struct MetadataResponseTopic {
        error_code: ErrorCode [0..],
        name: Option<ByteString> [0.., null 12..] = Some(Default::default()),
        topic_id: Uuid [10.., ignorable],
        is_internal: bool [1.., ignorable],
        partitions: Vec<MetadataResponsePartition> [0..],
        topic_authorized_operations: i32 [8..] = i32::MIN,
    }

    pub struct MetadataResponsePartition {
        error_code: ErrorCode [0..],
        partition_index: i32 [0..],
        leader_id: i32 [0..],
        leader_epoch: i32 [7.., ignorable] = -1,
        replica_nodes: Vec<i32> [0..],
        isr_nodes: Vec<i32> [0..],
        offline_replicas: Vec<i32> [5.., ignorable],
    }
}
