//! CreateTopics (API 19).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    pub struct CreateTopicsRequest: 2..=7, flexible 5.. {
        topics: Vec<CreatableTopic> [0..],
        timeout_ms: i32 [0..] = 60000,
        validate_only: bool [1..],
    }

    pub struct CreatableTopic {
        name: ByteString [0..],
        num_partitions: i32 [0..],
        replication_factor: i16 [0..],
        assignments: Vec<CreatableReplicaAssignment> [0..],
        configs: Vec<CreatableTopicConfig> [0..],
    }

    pub struct CreatableReplicaAssignment {
        partition_index: i32 [0..],
        broker_ids: Vec<i32> [0..],
    }

    pub struct CreatableTopicConfig {
        name: ByteString [0..],
        value: Option<ByteString> [0.., null 0..] = Some(Default::default()),
    }

    pub struct CreateTopicsResponse: 2..=7, flexible 5.. {
        throttle_time_ms: i32 [2.., ignorable],
        topics: Vec<CreatableTopicResult> [0..],
    }

    pub struct CreatableTopicResult {
        name: ByteString [0..],
        topic_id: Uuid [7.., ignorable],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [1.., null 0.., ignorable] = Some(Default::default()),
        topic_config_error_code: ErrorCode [5.., tag 0, ignorable],
        num_partitions: i32 [5.., ignorable] = -1,
        replication_factor: i16 [5.., ignorable] = -1,
        configs: Option<Vec<CreatableTopicConfigs>> [5.., null 5.., ignorable] = Some(Default::default()),
    }

    pub struct CreatableTopicConfigs {
        name: ByteString [5..],
        value: Option<ByteString> [5.., null 5..] = Some(Default::default()),
        read_only: bool [5..],
        config_source: i8 [5.., ignorable] = -1,
        is_sensitive: bool [5..],
    }
}
