//! OffsetCommit (API 8).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    pub struct OffsetCommitRequest: 2..=10, flexible 8.. {
        group_id: ByteString [0..],
        generation_id_or_member_epoch: i32 [1.., ignorable] = -1,
        member_id: ByteString [1.., ignorable],
        group_instance_id: Option<ByteString> [7.., null 7..],
        retention_time_ms: i64 [2..=4, ignorable] = -1,
        topics: Vec<OffsetCommitRequestTopic> [0..],
    }

    pub struct OffsetCommitRequestTopic {
        name: ByteString [0..=9, ignorable],
        topic_id: Uuid [10.., ignorable],
        partitions: Vec<OffsetCommitRequestPartition> [0..],
    }

    pub struct OffsetCommitRequestPartition {
        partition_index: i32 [0..],
        committed_offset: i64 [0..],
        committed_leader_epoch: i32 [6.., ignorable] = -1,
        committed_metadata: Option<ByteString> [0.., null 0..] = Some(Default::default()),
    }

    pub struct OffsetCommitResponse: 2..=10, flexible 8.. {
        throttle_time_ms: i32 [3.., ignorable],
        topics: Vec<OffsetCommitResponseTopic> [0..],
    }

    pub struct OffsetCommitResponseTopic {
        name: ByteString [0..=9, ignorable],
        topic_id: Uuid [10.., ignorable],
        partitions: Vec<OffsetCommitResponsePartition> [0..],
    }

    pub struct OffsetCommitResponsePartition {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
    }
}
