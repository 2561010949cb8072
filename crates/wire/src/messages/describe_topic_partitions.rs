//! DescribeTopicPartitions (API 75).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    pub struct DescribeTopicPartitionsRequest: 0..=0, flexible 0.. {
        topics: Vec<DescribeTopicPartitionsTopic> [0..],
        response_partition_limit: i32 [0..] = 2000,
        cursor: Option<DescribeTopicPartitionsCursor> [0.., null 0..],
    }

    pub struct DescribeTopicPartitionsTopic {
        name: ByteString [0..],
    }

    pub struct DescribeTopicPartitionsCursor {
        topic_name: ByteString [0..],
        partition_index: i32 [0..],
    }

    pub struct DescribeTopicPartitionsResponse: 0..=0, flexible 0.. {
        throttle_time_ms: i32 [0.., ignorable],
        topics: Vec<DescribeTopicPartitionsResponseTopic> [0..],
        next_cursor: Option<DescribeTopicPartitionsCursor> [0.., null 0..],
    }

    pub struct DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode [0..],
        name: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        topic_id: Uuid [0.., ignorable],
        is_internal: bool [0.., ignorable],
        partitions: Vec<DescribeTopicPartitionsResponsePartition> [0..],
        topic_authorized_operations: i32 [0..] = i32::MIN,
    }

    pub struct DescribeTopicPartitionsResponsePartition {
        error_code: ErrorCode [0..],
        partition_index: i32 [0..],
        leader_id: i32 [0..],
        leader_epoch: i32 [0.., ignorable] = -1,
        replica_nodes: Vec<i32> [0..],
        isr_nodes: Vec<i32> [0..],
        eligible_leader_replicas: Option<Vec<i32>> [0.., null 0..],
        last_known_elr: Option<Vec<i32>> [0.., null 0..],
        offline_replicas: Vec<i32> [0.., ignorable],
    }
}
