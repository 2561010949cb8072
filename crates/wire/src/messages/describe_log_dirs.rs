//! DescribeLogDirs (API 35).

use crate::{ByteString, ErrorCode, messages::TopicPartitions};

crate::message! {
    /// Asks how much room partitions take on a broker's disks (KIP-113).
    pub struct DescribeLogDirsRequest: 1..=5, flexible 2.. {
        /// The partitions that are asked for; `None` for all.
        topics: Option<Vec<TopicPartitions>> [0.., null 0..] = Some(Default::default()),
    }

    /// The broker's directories.
    pub struct DescribeLogDirsResponse: 1..=5, flexible 2.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [3.., ignorable],
        results: Vec<DescribeLogDirsResult> [0..],
    }

    /// A directory of logs.
    pub struct DescribeLogDirsResult {
        error_code: ErrorCode [0..],
        /// The directory's absolute path.
        log_dir: ByteString [0..],
        topics: Vec<DescribeLogDirsTopic> [0..],
        /// The size of the file system; -1 when not known (KIP-827).
        total_bytes: i64 [4.., ignorable] = -1,
        /// What the file system has left; -1 when not known.
        usable_bytes: i64 [4.., ignorable] = -1,
        /// Whether the directory takes no new partitions (KIP-1066).
        is_cordoned: bool [5.., ignorable],
    }

    /// A topic's partitions in a directory.
    pub struct DescribeLogDirsTopic {
        name: ByteString [0..],
        partitions: Vec<DescribeLogDirsPartition> [0..],
    }

    /// A partition in a directory.
    pub struct DescribeLogDirsPartition {
        partition_index: i32 [0..],
        /// The bytes of all its segments.
        partition_size: i64 [0..],
        /// How far the log is behind the high watermark, or a future replica behind the current
        /// one.
        offset_lag: i64 [0..],
        /// Whether this is a replica that is being moved here from another directory.
        is_future_key: bool [0..],
    }
}
