//! ListOffsets (API 2).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct ListOffsetsRequest: 1..=11, flexible 6.. {
        replica_id: i32 [0..],
        isolation_level: i8 [2..],
        topics: Vec<ListOffsetsTopic> [0..],
        timeout_ms: i32 [10.., ignorable],
    }

    pub struct ListOffsetsTopic {
        name: ByteString [0..],
        partitions: Vec<ListOffsetsPartition> [0..],
    }

    pub struct ListOffsetsPartition {
        partition_index: i32 [0..],
        current_leader_epoch: i32 [4.., ignorable] = -1,
        timestamp: i64 [0..],
    }

    pub struct ListOffsetsResponse: 1..=11, flexible 6.. {
        throttle_time_ms: i32 [2.., ignorable],
        topics: Vec<ListOffsetsTopicResponse> [0..],
    }

    pub struct ListOffsetsTopicResponse {
        name: ByteString [0..],
        partitions: Vec<ListOffsetsPartitionResponse> [0..],
    }

    pub struct ListOffsetsPartitionResponse {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
        timestamp: i64 [1..] = -1,
        offset: i64 [1..] = -1,
        leader_epoch: i32 [4..] = -1,
    }
}
