//! OffsetDelete (API 47).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Deletes committed offsets of a group (KIP-496).
    pub struct OffsetDeleteRequest: 0..=0 {
        group_id: ByteString [0..],
        topics: Vec<OffsetDeleteRequestTopic> [0..],
    }

    /// Partitions of a topic.
    pub struct OffsetDeleteRequestTopic {
        name: ByteString [0..],
        partitions: Vec<OffsetDeleteRequestPartition> [0..],
    }

    /// A partition whose offset is deleted.
    pub struct OffsetDeleteRequestPartition {
        partition_index: i32 [0..],
    }

    /// What became of each partition's offset.
    pub struct OffsetDeleteResponse: 0..=0 {
        /// What went wrong with the request as a whole.
        error_code: ErrorCode [0..],
        throttle_time_ms: i32 [0.., ignorable],
        topics: Vec<OffsetDeleteResponseTopic> [0..],
    }

    /// What became of a topic's offsets.
    pub struct OffsetDeleteResponseTopic {
        name: ByteString [0..],
        partitions: Vec<OffsetDeleteResponsePartition> [0..],
    }

    /// What became of a partition's offset.
    pub struct OffsetDeleteResponsePartition {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
    }
}
