//! OffsetCommit.

use crate::{ByteString, Uuid};

crate::message! {
    pub struct OffsetCommitKey: 0..=0 {
        group: ByteString [0..=0],
        topic: ByteString [0..=0],
        partition: i32 [0..=0],
    }

    pub struct OffsetCommitValue: 0..=4, flexible 4.. {
        offset: i64 [0..],
        leader_epoch: i32 [3.., ignorable] = -1,
        metadata: ByteString [0..],
        commit_timestamp: i64 [0..],
        expire_timestamp: i64 [1..=1, ignorable] = -1,
        topic_id: Uuid [4.., tag 0, ignorable],
    }
}
