//! LegacyOffsetCommit.

use crate::ByteString;

crate::message! {
    pub struct LegacyOffsetCommitKey: 0..=0 {
        group: ByteString [0..=0],
        topic: ByteString [0..=0],
        partition: i32 [0..=0],
    }

    pub struct LegacyOffsetCommitValue: 0..=0 {
        offset: i64 [0..=0],
        metadata: ByteString [0..=0],
        commit_timestamp: i64 [0..=0],
    }
}
