//! LegacyOffsetCommit.

use crate::ByteString;

crate::message! {
    /// Key of type 0: a committed offset as early versions of Kafka wrote it.
    pub struct LegacyOffsetCommitKey: 0..=0 {
        group: ByteString [0..=0],
        topic: ByteString [0..=0],
        partition: i32 [0..=0],
    }

    /// A committed offset as early versions of Kafka wrote it.
    pub struct LegacyOffsetCommitValue: 0..=0 {
        offset: i64 [0..=0],
        metadata: ByteString [0..=0],
        /// In milliseconds since 1970.
        commit_timestamp: i64 [0..=0],
    }
}
