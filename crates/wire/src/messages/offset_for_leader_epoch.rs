//! OffsetForLeaderEpoch (API 23).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct OffsetForLeaderEpochRequest: 2..=4, flexible 4.. {
        replica_id: i32 [3.., ignorable] = -2,
        topics: Vec<OffsetForLeaderTopic> [0..],
    }

    pub struct OffsetForLeaderTopic {
        topic: ByteString [0..],
        partitions: Vec<OffsetForLeaderPartition> [0..],
    }

    pub struct OffsetForLeaderPartition {
        partition: i32 [0..],
        current_leader_epoch: i32 [2.., ignorable] = -1,
        leader_epoch: i32 [0..],
    }

    pub struct OffsetForLeaderEpochResponse: 2..=4, flexible 4.. {
        throttle_time_ms: i32 [2.., ignorable],
        topics: Vec<OffsetForLeaderTopicResult> [0..],
    }

    pub struct OffsetForLeaderTopicResult {
        topic: ByteString [0..],
        partitions: Vec<LeaderEpochEndOffset> [0..],
    }

    pub struct LeaderEpochEndOffset {
        error_code: ErrorCode [0..],
        partition: i32 [0..],
        leader_epoch: i32 [1.., ignorable] = -1,
        end_offset: i64 [0..] = -1,
    }
}
