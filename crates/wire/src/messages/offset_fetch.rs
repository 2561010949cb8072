//! OffsetFetch (API 9).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    /// Asks for committed offsets. Up to version 7 of one group, in the fields of the message
    /// itself.
    pub struct OffsetFetchRequest: 1..=10, flexible 6.. {
        group_id: ByteString [0..=7],
        /// The partitions; `None`, from version 2 on, for all that have an offset.
        topics: Option<Vec<OffsetFetchRequestTopic>> [0..=7, null 2..=7] = Some(Default::default()),
        /// The groups, from version 8 on (KIP-709).
        groups: Vec<OffsetFetchRequestGroup> [8..],
        /// Whether offsets that an open transaction may yet change are refused with
        /// `UNSTABLE_OFFSET_COMMIT` (KIP-447).
        require_stable: bool [7..],
    }

    /// Partitions of a topic, up to version 7.
    pub struct OffsetFetchRequestTopic {
        name: ByteString [0..=7],
        partition_indexes: Vec<i32> [0..=7],
    }

    /// A group, and the partitions whose offsets are asked for.
    pub struct OffsetFetchRequestGroup {
        group_id: ByteString [8..],
        /// The member that asks, so that a stale one is told (KIP-848); `None` from a client that is
        /// not a member.
        member_id: Option<ByteString> [9.., null 9.., ignorable],
        /// The member's epoch; -1 from a client that is not a member, or a classic one.
        member_epoch: i32 [9.., ignorable] = -1,
        /// The partitions; `None` for all that have an offset.
        topics: Option<Vec<OffsetFetchRequestTopics>> [8.., null 8..] = Some(Default::default()),
    }

    /// Partitions of a topic, from version 8 on.
    pub struct OffsetFetchRequestTopics {
        /// The topic's name, up to version 9.
        name: ByteString [8..=9, ignorable],
        /// The topic's id, from version 10 on.
        topic_id: Uuid [10.., ignorable],
        partition_indexes: Vec<i32> [8..],
    }

    /// Committed offsets.
    pub struct OffsetFetchResponse: 1..=10, flexible 6.. {
        throttle_time_ms: i32 [3.., ignorable],
        topics: Vec<OffsetFetchResponseTopic> [0..=7],
        error_code: ErrorCode [2..=7, ignorable],
        groups: Vec<OffsetFetchResponseGroup> [8..],
    }

    /// Offsets of a topic's partitions, up to version 7.
    pub struct OffsetFetchResponseTopic {
        name: ByteString [0..=7],
        partitions: Vec<OffsetFetchResponsePartition> [0..=7],
    }

    /// Offsets of a group.
    pub struct OffsetFetchResponseGroup {
        group_id: ByteString [8..],
        topics: Vec<OffsetFetchResponseTopics> [8..],
        error_code: ErrorCode [8..],
    }

    /// The offset of a partition, up to version 7.
    pub struct OffsetFetchResponsePartition {
        partition_index: i32 [0..=7],
        /// The next offset to be read; -1 when none is committed.
        committed_offset: i64 [0..=7],
        /// The leader's epoch of the last record that was read; -1 when not known.
        committed_leader_epoch: i32 [5..=7, ignorable] = -1,
        /// What the application kept with the offset.
        metadata: Option<ByteString> [0..=7, null 0..=7] = Some(Default::default()),
        error_code: ErrorCode [0..=7],
    }

    /// Offsets of a topic's partitions, from version 8 on.
    pub struct OffsetFetchResponseTopics {
        /// The topic's name, up to version 9.
        name: ByteString [8..=9, ignorable],
        /// The topic's id, from version 10 on.
        topic_id: Uuid [10.., ignorable],
        partitions: Vec<OffsetFetchResponsePartitions> [8..],
    }

    /// The offset of a partition, from version 8 on.
    pub struct OffsetFetchResponsePartitions {
        partition_index: i32 [8..],
        /// The next offset to be read; -1 when none is committed.
        committed_offset: i64 [8..],
        /// The leader's epoch of the last record that was read; -1 when not known.
        committed_leader_epoch: i32 [8.., ignorable] = -1,
        /// What the application kept with the offset.
        metadata: Option<ByteString> [8.., null 8..] = Some(Default::default()),
        error_code: ErrorCode [8..],
    }
}
