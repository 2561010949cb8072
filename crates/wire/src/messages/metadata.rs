//! Metadata (API 3).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    /// Asks for the brokers and for topics.
    pub struct MetadataRequest: 0..=13, flexible 9.. {
        /// The topics; `None` for all. In version 0 an empty list means all too.
        topics: Option<Vec<MetadataRequestTopic>> [0.., null 1..] = Some(Default::default()),
        /// Whether topics that are missing may be created.
        allow_auto_topic_creation: bool [4..] = true,
        include_cluster_authorized_operations: bool [8..=10],
        include_topic_authorized_operations: bool [8..],
    }

    /// A topic, by its name or from version 12 on by its id.
    pub struct MetadataRequestTopic {
        topic_id: Uuid [10.., ignorable],
        name: Option<ByteString> [0.., null 10..] = Some(Default::default()),
    }

    /// The brokers, and the topics with their leaders.
    pub struct MetadataResponse: 0..=13, flexible 9.. {
        throttle_time_ms: i32 [3.., ignorable],
        brokers: Vec<MetadataResponseBroker> [0..],
        cluster_id: Option<ByteString> [2.., null 2.., ignorable],
        /// The broker that takes a controller's requests; -1 when there is none.
        controller_id: i32 [1.., ignorable] = -1,
        topics: Vec<MetadataResponseTopic> [0..],
        cluster_authorized_operations: i32 [8..=10] = i32::MIN,
        /// `REBOOTSTRAP_REQUIRED` asks the client to begin again with the addresses it was
        /// configured with (KIP-1102).
        error_code: ErrorCode [13.., ignorable],
    }

    /// A broker, and where it is reached.
    pub struct MetadataResponseBroker {
        node_id: i32 [0..],
        host: ByteString [0..],
        port: i32 [0..],
        rack: Option<ByteString> [1.., null 1.., ignorable],
    }

    /// A topic and its partitions.
    pub struct MetadataResponseTopic {
        error_code: ErrorCode [0..],
        /// `None` when the topic was asked for by an id that is not known.
        name: Option<ByteString> [0.., null 12..] = Some(Default::default()),
        topic_id: Uuid [10.., ignorable],
        /// Whether the topic is the cluster's own, like `__consumer_offsets`.
        is_internal: bool [1.., ignorable],
        partitions: Vec<MetadataResponsePartition> [0..],
        topic_authorized_operations: i32 [8..] = i32::MIN,
    }

    /// A partition and its replicas.
    pub struct MetadataResponsePartition {
        error_code: ErrorCode [0..],
        partition_index: i32 [0..],
        /// The broker that leads; -1 for none.
        leader_id: i32 [0..],
        /// -1 when not known.
        leader_epoch: i32 [7.., ignorable] = -1,
        replica_nodes: Vec<i32> [0..],
        /// The replicas that are in sync.
        isr_nodes: Vec<i32> [0..],
        /// The replicas that cannot be reached.
        offline_replicas: Vec<i32> [5.., ignorable],
    }
}
