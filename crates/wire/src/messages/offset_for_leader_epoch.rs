//! OffsetForLeaderEpoch (API 23).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Asks where epochs of leaders ended, to find out whether a log was truncated (KIP-320).
    pub struct OffsetForLeaderEpochRequest: 2..=4, flexible 4.. {
        /// The follower that asks; -1 for a consumer, -2 for one that does not say.
        replica_id: i32 [3.., ignorable] = -2,
        topics: Vec<OffsetForLeaderTopic> [0..],
    }

    /// Partitions of a topic.
    pub struct OffsetForLeaderTopic {
        topic: ByteString [0..],
        partitions: Vec<OffsetForLeaderPartition> [0..],
    }

    /// A partition, and the epoch whose end is sought.
    pub struct OffsetForLeaderPartition {
        partition: i32 [0..],
        /// The leader's epoch that the client knows of; -1 when it knows none.
        current_leader_epoch: i32 [2.., ignorable] = -1,
        /// The epoch whose end is sought.
        leader_epoch: i32 [0..],
    }

    /// The ends of epochs.
    pub struct OffsetForLeaderEpochResponse: 2..=4, flexible 4.. {
        throttle_time_ms: i32 [2.., ignorable],
        topics: Vec<OffsetForLeaderTopicResult> [0..],
    }

    /// The ends of epochs in a topic's partitions.
    pub struct OffsetForLeaderTopicResult {
        topic: ByteString [0..],
        partitions: Vec<LeaderEpochEndOffset> [0..],
    }

    /// The end of an epoch in a partition.
    pub struct LeaderEpochEndOffset {
        error_code: ErrorCode [0..],
        partition: i32 [0..],
        /// The largest epoch that is not larger than the one asked for; -1 for none.
        leader_epoch: i32 [1.., ignorable] = -1,
        /// The first offset after that epoch; -1 for none.
        end_offset: i64 [0..] = -1,
    }
}
