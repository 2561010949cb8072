//! OffsetCommit.

use crate::{ByteString, Uuid};

crate::message! {
    /// Key of type 1: a committed offset.
    pub struct OffsetCommitKey: 0..=0 {
        group: ByteString [0..=0],
        topic: ByteString [0..=0],
        partition: i32 [0..=0],
    }

    /// A committed offset.
    pub struct OffsetCommitValue: 0..=4, flexible 4.. {
        /// The next offset to be read.
        offset: i64 [0..],
        /// The leader's epoch of the last record that was read; -1 when not known.
        leader_epoch: i32 [3.., ignorable] = -1,
        /// Whatever the application keeps with the offset.
        metadata: ByteString [0..],
        /// When it was committed, in milliseconds since 1970.
        commit_timestamp: i64 [0..],
        /// When it expires, in milliseconds since 1970; -1 for the broker's setting. Only version 1
        /// has it.
        expire_timestamp: i64 [1..=1, ignorable] = -1,
        /// The id of the topic, by which an offset of a deleted topic of the same name is told;
        /// zero when not known.
        topic_id: Uuid [4.., tag 0, ignorable],
    }
}
