//! TxnOffsetCommit (API 28).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    pub struct TxnOffsetCommitRequest: 0..=6, flexible 3.. {
        transactional_id: ByteString [0..],
        group_id: ByteString [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        generation_id_or_member_epoch: i32 [3..] = -1,
        member_id: ByteString [3..],
        group_instance_id: Option<ByteString> [3.., null 3..],
        topics: Vec<TxnOffsetCommitRequestTopic> [0..],
    }

    pub struct TxnOffsetCommitRequestTopic {
        name: ByteString [0..=5, ignorable],
        topic_id: Uuid [6.., ignorable],
        partitions: Vec<TxnOffsetCommitRequestPartition> [0..],
    }

    pub struct TxnOffsetCommitRequestPartition {
        partition_index: i32 [0..],
        committed_offset: i64 [0..],
        committed_leader_epoch: i32 [2.., ignorable] = -1,
        committed_metadata: Option<ByteString> [0.., null 0..] = Some(Default::default()),
    }

    pub struct TxnOffsetCommitResponse: 0..=6, flexible 3.. {
        throttle_time_ms: i32 [0..],
        topics: Vec<TxnOffsetCommitResponseTopic> [0..],
    }

    pub struct TxnOffsetCommitResponseTopic {
        name: ByteString [0..=5, ignorable],
        topic_id: Uuid [6.., ignorable],
        partitions: Vec<TxnOffsetCommitResponsePartition> [0..],
    }

    pub struct TxnOffsetCommitResponsePartition {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
    }
}
