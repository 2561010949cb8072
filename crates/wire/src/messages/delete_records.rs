//! DeleteRecords (API 21).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Deletes the records before an offset (KIP-107).
    pub struct DeleteRecordsRequest: 0..=2, flexible 2.. {
        topics: Vec<DeleteRecordsTopic> [0..],
        /// How long the broker waits until the records are gone on all replicas.
        timeout_ms: i32 [0..],
    }

    /// Partitions of a topic.
    pub struct DeleteRecordsTopic {
        name: ByteString [0..],
        partitions: Vec<DeleteRecordsPartition> [0..],
    }

    /// A partition and where it shall begin.
    pub struct DeleteRecordsPartition {
        partition_index: i32 [0..],
        /// The first offset that stays; -1 for the high watermark, which deletes everything.
        offset: i64 [0..],
    }

    /// Where the partitions begin now.
    pub struct DeleteRecordsResponse: 0..=2, flexible 2.. {
        throttle_time_ms: i32 [0..],
        topics: Vec<DeleteRecordsTopicResult> [0..],
    }

    /// What became of a topic's partitions.
    pub struct DeleteRecordsTopicResult {
        name: ByteString [0..],
        partitions: Vec<DeleteRecordsPartitionResult> [0..],
    }

    /// What became of a partition.
    pub struct DeleteRecordsPartitionResult {
        partition_index: i32 [0..],
        /// The smallest offset at which any replica begins; -1 with an error.
        low_watermark: i64 [0..],
        error_code: ErrorCode [0..],
    }
}
