//! OffsetCommit (API 8).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    /// Commits offsets for a group.
    pub struct OffsetCommitRequest: 2..=10, flexible 8.. {
        group_id: ByteString [0..],
        /// The generation (classic) or the member's epoch (consumer protocol); -1 from a client that
        /// is not a member.
        generation_id_or_member_epoch: i32 [1.., ignorable] = -1,
        member_id: ByteString [1.., ignorable],
        /// The id of a static member (KIP-345).
        group_instance_id: Option<ByteString> [7.., null 7..],
        /// How long the offsets are kept; -1 for the broker's setting. No longer sent since
        /// KIP-211.
        retention_time_ms: i64 [2..=4, ignorable] = -1,
        topics: Vec<OffsetCommitRequestTopic> [0..],
    }

    /// Offsets of a topic's partitions.
    pub struct OffsetCommitRequestTopic {
        /// The topic's name, up to version 9.
        name: ByteString [0..=9, ignorable],
        /// The topic's id, from version 10 on.
        topic_id: Uuid [10.., ignorable],
        partitions: Vec<OffsetCommitRequestPartition> [0..],
    }

    /// The offset of a partition.
    pub struct OffsetCommitRequestPartition {
        partition_index: i32 [0..],
        /// The next offset to be read.
        committed_offset: i64 [0..],
        /// The leader's epoch of the last record that was read; -1 when not known (KIP-320).
        committed_leader_epoch: i32 [6.., ignorable] = -1,
        /// Whatever the application wants to keep with the offset.
        committed_metadata: Option<ByteString> [0.., null 0..] = Some(Default::default()),
    }

    /// What became of each offset.
    pub struct OffsetCommitResponse: 2..=10, flexible 8.. {
        throttle_time_ms: i32 [3.., ignorable],
        topics: Vec<OffsetCommitResponseTopic> [0..],
    }

    /// What became of the offsets of a topic.
    pub struct OffsetCommitResponseTopic {
        /// The topic's name, up to version 9.
        name: ByteString [0..=9, ignorable],
        /// The topic's id, from version 10 on.
        topic_id: Uuid [10.., ignorable],
        partitions: Vec<OffsetCommitResponsePartition> [0..],
    }

    /// What became of a partition's offset.
    pub struct OffsetCommitResponsePartition {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
    }
}
