//! ListOffsets (API 2).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Asks for offsets by time, or for the ends of partitions.
    pub struct ListOffsetsRequest: 1..=11, flexible 6.. {
        /// The follower that asks; -1 for a consumer.
        replica_id: i32 [0..],
        /// 1 to take the last stable offset for the end of a partition, 0 to take the high
        /// watermark.
        isolation_level: i8 [2..],
        topics: Vec<ListOffsetsTopic> [0..],
        /// How long the broker may take where it has to look at remote storage.
        timeout_ms: i32 [10.., ignorable],
    }

    /// Partitions of a topic.
    pub struct ListOffsetsTopic {
        name: ByteString [0..],
        partitions: Vec<ListOffsetsPartition> [0..],
    }

    /// A partition, and what is sought in it.
    pub struct ListOffsetsPartition {
        partition_index: i32 [0..],
        /// The leader's epoch that the client knows of; -1 when it knows none (KIP-320).
        current_leader_epoch: i32 [4.., ignorable] = -1,
        /// Milliseconds since 1970, for the first record of that time or later; or -1 latest, -2
        /// earliest, -3 the largest timestamp (KIP-734), -4 earliest on local disk, -5 latest in
        /// remote storage (KIP-405, KIP-1005), -6 earliest not there yet (KIP-1023).
        timestamp: i64 [0..],
    }

    /// The offsets.
    pub struct ListOffsetsResponse: 1..=11, flexible 6.. {
        throttle_time_ms: i32 [2.., ignorable],
        topics: Vec<ListOffsetsTopicResponse> [0..],
    }

    /// The offsets of a topic's partitions.
    pub struct ListOffsetsTopicResponse {
        name: ByteString [0..],
        partitions: Vec<ListOffsetsPartitionResponse> [0..],
    }

    /// The offset that was sought in a partition.
    pub struct ListOffsetsPartitionResponse {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
        /// The timestamp of the record at that offset; -1 for none.
        timestamp: i64 [1..] = -1,
        /// -1 when there is no such record.
        offset: i64 [1..] = -1,
        /// The leader's epoch of the record at that offset; -1 when not known.
        leader_epoch: i32 [4..] = -1,
    }
}
