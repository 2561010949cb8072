//! OffsetDelete (API 47).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct OffsetDeleteRequest: 0..=0 {
        group_id: ByteString [0..],
        topics: Vec<OffsetDeleteRequestTopic> [0..],
    }

    pub struct OffsetDeleteRequestTopic {
        name: ByteString [0..],
        partitions: Vec<OffsetDeleteRequestPartition> [0..],
    }

    pub struct OffsetDeleteRequestPartition {
        partition_index: i32 [0..],
    }

    pub struct OffsetDeleteResponse: 0..=0 {
        error_code: ErrorCode [0..],
        throttle_time_ms: i32 [0.., ignorable],
        topics: Vec<OffsetDeleteResponseTopic> [0..],
    }

    pub struct OffsetDeleteResponseTopic {
        name: ByteString [0..],
        partitions: Vec<OffsetDeleteResponsePartition> [0..],
    }

    pub struct OffsetDeleteResponsePartition {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
    }
}
