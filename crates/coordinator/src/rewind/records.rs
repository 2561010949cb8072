//! The records of rewinds: of types far from Kafka's, whose loader and tools pass over types that
//! they do not know.

use kohort_wire::{ByteString, Uuid, messages::TopicIdPartitions};

kohort_wire::message! {
    /// Key of type 27503 (`ko` in ASCII): the rewind of a group that is under way.
    pub struct RewindKey: 0..=0 {
        group_id: ByteString [0..=0],
    }

    /// A rewind that is under way.
    pub struct RewindValue: 0..=0, flexible 0.. {
        /// When it was asked for, in milliseconds since 1970.
        asked_at: i64 [0..],
        client_id: ByteString [0..],
        client_host: ByteString [0..],
        topics: Vec<RewindTopic> [0..],
    }

    /// A topic of a rewind.
    pub struct RewindTopic {
        name: ByteString [0..],
        topic_id: Uuid [0..],
        partitions: Vec<RewindPartition> [0..],
    }

    /// Where a partition is rewound to.
    pub struct RewindPartition {
        partition_index: i32 [0..],
        /// −1: to where nothing is committed.
        offset: i64 [0..],
        leader_epoch: i32 [0..],
        metadata: ByteString [0..],
    }

    /// Key of type 27504: the last rewind of a group.
    pub struct RewoundKey: 0..=0 {
        group_id: ByteString [0..=0],
    }

    /// A rewind that has happened.
    pub struct RewoundValue: 0..=0, flexible 0.. {
        /// When, in milliseconds since 1970.
        at: i64 [0..],
        /// The generation of a classic group from which on commits hold; −1 for others.
        generation: i32 [0..],
        topics: Vec<RewoundTopic> [0..],
        /// All partitions that were ever rewound.
        fenced: Vec<TopicIdPartitions> [0..],
    }

    /// A topic of a rewind that has happened.
    pub struct RewoundTopic {
        name: ByteString [0..],
        topic_id: Uuid [0..],
        partitions: Vec<RewoundPartition> [0..],
    }

    /// What was committed for a partition before, and where it was rewound to.
    pub struct RewoundPartition {
        partition_index: i32 [0..],
        /// −1: nothing was committed.
        offset: i64 [0..],
        leader_epoch: i32 [0..],
        metadata: ByteString [0..],
        /// Where it was rewound to.
        to: i64 [0..],
    }
}
