//! OffsetFetch (API 9).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    pub struct OffsetFetchRequest: 1..=10, flexible 6.. {
        group_id: ByteString [0..=7],
        topics: Option<Vec<OffsetFetchRequestTopic>> [0..=7, null 2..=7] = Some(Default::default()),
        groups: Vec<OffsetFetchRequestGroup> [8..],
        require_stable: bool [7..],
    }

    pub struct OffsetFetchRequestTopic {
        name: ByteString [0..=7],
        partition_indexes: Vec<i32> [0..=7],
    }

    pub struct OffsetFetchRequestGroup {
        group_id: ByteString [8..],
        member_id: Option<ByteString> [9.., null 9.., ignorable],
        member_epoch: i32 [9.., ignorable] = -1,
        topics: Option<Vec<OffsetFetchRequestTopics>> [8.., null 8..] = Some(Default::default()),
    }

    pub struct OffsetFetchRequestTopics {
        name: ByteString [8..=9, ignorable],
        topic_id: Uuid [10.., ignorable],
        partition_indexes: Vec<i32> [8..],
    }

    pub struct OffsetFetchResponse: 1..=10, flexible 6.. {
        throttle_time_ms: i32 [3.., ignorable],
        topics: Vec<OffsetFetchResponseTopic> [0..=7],
        error_code: ErrorCode [2..=7, ignorable],
        groups: Vec<OffsetFetchResponseGroup> [8..],
    }

    pub struct OffsetFetchResponseTopic {
        name: ByteString [0..=7],
        partitions: Vec<OffsetFetchResponsePartition> [0..=7],
    }

    pub struct OffsetFetchResponseGroup {
        group_id: ByteString [8..],
        topics: Vec<OffsetFetchResponseTopics> [8..],
        error_code: ErrorCode [8..],
    }

    pub struct OffsetFetchResponsePartition {
        partition_index: i32 [0..=7],
        committed_offset: i64 [0..=7],
        committed_leader_epoch: i32 [5..=7, ignorable] = -1,
        metadata: Option<ByteString> [0..=7, null 0..=7] = Some(Default::default()),
        error_code: ErrorCode [0..=7],
    }

    pub struct OffsetFetchResponseTopics {
        name: ByteString [8..=9, ignorable],
        topic_id: Uuid [10.., ignorable],
        partitions: Vec<OffsetFetchResponsePartitions> [8..],
    }

    pub struct OffsetFetchResponsePartitions {
        partition_index: i32 [8..],
        committed_offset: i64 [8..],
        committed_leader_epoch: i32 [8.., ignorable] = -1,
        metadata: Option<ByteString> [8.., null 8..] = Some(Default::default()),
        error_code: ErrorCode [8..],
    }
}
