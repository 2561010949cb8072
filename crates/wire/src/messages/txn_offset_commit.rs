//! TxnOffsetCommit (API 28).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    /// Commits offsets of a group within a transaction (KIP-98): they count when the transaction is
    /// committed.
    pub struct TxnOffsetCommitRequest: 0..=6, flexible 3.. {
        transactional_id: ByteString [0..],
        group_id: ByteString [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        /// The generation (classic) or the member's epoch (consumer protocol); -1 from a client that
        /// is not a member (KIP-447).
        generation_id_or_member_epoch: i32 [3..] = -1,
        member_id: ByteString [3..],
        /// The id of a static member (KIP-345).
        group_instance_id: Option<ByteString> [3.., null 3..],
        topics: Vec<TxnOffsetCommitRequestTopic> [0..],
    }

    /// Offsets of a topic's partitions.
    pub struct TxnOffsetCommitRequestTopic {
        /// The topic's name, up to version 5.
        name: ByteString [0..=5, ignorable],
        /// The topic's id, from version 6 on.
        topic_id: Uuid [6.., ignorable],
        partitions: Vec<TxnOffsetCommitRequestPartition> [0..],
    }

    /// The offset of a partition.
    pub struct TxnOffsetCommitRequestPartition {
        partition_index: i32 [0..],
        /// The next offset to be read.
        committed_offset: i64 [0..],
        /// The leader's epoch of the last record that was read; -1 when not known.
        committed_leader_epoch: i32 [2.., ignorable] = -1,
        /// Whatever the application wants to keep with the offset.
        committed_metadata: Option<ByteString> [0.., null 0..] = Some(Default::default()),
    }

    /// What became of each offset.
    pub struct TxnOffsetCommitResponse: 0..=6, flexible 3.. {
        throttle_time_ms: i32 [0..],
        topics: Vec<TxnOffsetCommitResponseTopic> [0..],
    }

    /// What became of a topic's offsets.
    pub struct TxnOffsetCommitResponseTopic {
        /// The topic's name, up to version 5.
        name: ByteString [0..=5, ignorable],
        /// The topic's id, from version 6 on.
        topic_id: Uuid [6.., ignorable],
        partitions: Vec<TxnOffsetCommitResponsePartition> [0..],
    }

    /// What became of a partition's offset.
    pub struct TxnOffsetCommitResponsePartition {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
    }
}
