//! DescribeLogDirs (API 35).

use crate::{ByteString, ErrorCode, messages::TopicPartitions};

crate::message! {
    pub struct DescribeLogDirsRequest: 1..=5, flexible 2.. {
        topics: Option<Vec<TopicPartitions>> [0.., null 0..] = Some(Default::default()),
    }

    pub struct DescribeLogDirsResponse: 1..=5, flexible 2.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [3.., ignorable],
        results: Vec<DescribeLogDirsResult> [0..],
    }

    pub struct DescribeLogDirsResult {
        error_code: ErrorCode [0..],
        log_dir: ByteString [0..],
        topics: Vec<DescribeLogDirsTopic> [0..],
        total_bytes: i64 [4.., ignorable] = -1,
        usable_bytes: i64 [4.., ignorable] = -1,
        is_cordoned: bool [5.., ignorable],
    }

    pub struct DescribeLogDirsTopic {
        name: ByteString [0..],
        partitions: Vec<DescribeLogDirsPartition> [0..],
    }

    pub struct DescribeLogDirsPartition {
        partition_index: i32 [0..],
        partition_size: i64 [0..],
        offset_lag: i64 [0..],
        is_future_key: bool [0..],
    }
}
