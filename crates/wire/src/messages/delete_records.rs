//! DeleteRecords (API 21).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct DeleteRecordsRequest: 0..=2, flexible 2.. {
        topics: Vec<DeleteRecordsTopic> [0..],
        timeout_ms: i32 [0..],
    }

    pub struct DeleteRecordsTopic {
        name: ByteString [0..],
        partitions: Vec<DeleteRecordsPartition> [0..],
    }

    pub struct DeleteRecordsPartition {
        partition_index: i32 [0..],
        offset: i64 [0..],
    }

    pub struct DeleteRecordsResponse: 0..=2, flexible 2.. {
        throttle_time_ms: i32 [0..],
        topics: Vec<DeleteRecordsTopicResult> [0..],
    }

    pub struct DeleteRecordsTopicResult {
        name: ByteString [0..],
        partitions: Vec<DeleteRecordsPartitionResult> [0..],
    }

    pub struct DeleteRecordsPartitionResult {
        partition_index: i32 [0..],
        low_watermark: i64 [0..],
        error_code: ErrorCode [0..],
    }
}
