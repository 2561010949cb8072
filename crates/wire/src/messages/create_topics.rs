//! CreateTopics (API 19).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    /// Creates topics.
    pub struct CreateTopicsRequest: 2..=7, flexible 5.. {
        topics: Vec<CreatableTopic> [0..],
        /// How long the broker waits until the topics are there.
        timeout_ms: i32 [0..] = 60000,
        /// Checks the request and creates nothing.
        validate_only: bool [1..],
    }

    /// A topic to be created.
    pub struct CreatableTopic {
        name: ByteString [0..],
        /// How many partitions; -1 for the broker's default (KIP-464), and when `assignments` says
        /// it.
        num_partitions: i32 [0..],
        /// How many copies; -1 for the broker's default, and when `assignments` says it.
        replication_factor: i16 [0..],
        /// The brokers of each partition, if they are chosen by hand.
        assignments: Vec<CreatableReplicaAssignment> [0..],
        configs: Vec<CreatableTopicConfig> [0..],
    }

    /// The brokers that hold a partition, its preferred leader first.
    pub struct CreatableReplicaAssignment {
        partition_index: i32 [0..],
        broker_ids: Vec<i32> [0..],
    }

    /// An option of the topic.
    pub struct CreatableTopicConfig {
        name: ByteString [0..],
        value: Option<ByteString> [0.., null 0..] = Some(Default::default()),
    }

    /// What became of each topic.
    pub struct CreateTopicsResponse: 2..=7, flexible 5.. {
        throttle_time_ms: i32 [2.., ignorable],
        topics: Vec<CreatableTopicResult> [0..],
    }

    /// What became of a topic, and how it was created (KIP-525).
    pub struct CreatableTopicResult {
        name: ByteString [0..],
        topic_id: Uuid [7.., ignorable],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [1.., null 0.., ignorable] = Some(Default::default()),
        /// Why the options are missing, if they are.
        topic_config_error_code: ErrorCode [5.., tag 0, ignorable],
        /// How many partitions it has; -1 when not told.
        num_partitions: i32 [5.., ignorable] = -1,
        /// How many copies it has; -1 when not told.
        replication_factor: i16 [5.., ignorable] = -1,
        /// The topic's options; `None` when the client may not see them.
        configs: Option<Vec<CreatableTopicConfigs>> [5.., null 5.., ignorable] = Some(Default::default()),
    }

    /// An option of a topic as it was created.
    pub struct CreatableTopicConfigs {
        name: ByteString [5..],
        value: Option<ByteString> [5.., null 5..] = Some(Default::default()),
        read_only: bool [5..],
        /// Where the value comes from; see [the list](crate::messages#sources-of-options).
        config_source: i8 [5.., ignorable] = -1,
        is_sensitive: bool [5..],
    }
}
