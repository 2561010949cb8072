//! Fetch (API 1).

use bytes::Bytes;

use crate::{
    ByteString, ErrorCode, Uuid,
    messages::{LeaderIdAndEpoch, NodeEndpoint},
};

crate::message! {
    pub struct FetchRequest: 4..=18, flexible 12.. {
        cluster_id: Option<ByteString> [12.., null 12.., tag 0, ignorable],
        replica_id: i32 [0..=14] = -1,
        replica_state: ReplicaState [15.., tag 1],
        max_wait_ms: i32 [0..],
        min_bytes: i32 [0..],
        max_bytes: i32 [3.., ignorable] = i32::MAX,
        isolation_level: i8 [4.., ignorable],
        session_id: i32 [7.., ignorable],
        session_epoch: i32 [7.., ignorable] = -1,
        topics: Vec<FetchTopic> [0..],
        forgotten_topics_data: Vec<ForgottenTopic> [7..],
        rack_id: ByteString [11.., ignorable],
    }

    pub struct ReplicaState {
        replica_id: i32 [15..] = -1,
        replica_epoch: i64 [15..] = -1,
    }

    pub struct FetchTopic {
        topic: ByteString [0..=12, ignorable],
        topic_id: Uuid [13.., ignorable],
        partitions: Vec<FetchPartition> [0..],
    }

    pub struct ForgottenTopic {
        topic: ByteString [7..=12, ignorable],
        topic_id: Uuid [13.., ignorable],
        partitions: Vec<i32> [7..],
    }

    pub struct FetchPartition {
        partition: i32 [0..],
        current_leader_epoch: i32 [9.., ignorable] = -1,
        fetch_offset: i64 [0..],
        last_fetched_epoch: i32 [12..] = -1,
        log_start_offset: i64 [5.., ignorable] = -1,
        partition_max_bytes: i32 [0..],
        replica_directory_id: Uuid [17.., tag 0, ignorable],
        high_watermark: i64 [18.., tag 1, ignorable] = i64::MAX,
    }

    pub struct FetchResponse: 4..=18, flexible 12.. {
        throttle_time_ms: i32 [1.., ignorable],
        error_code: ErrorCode [7.., ignorable],
        session_id: i32 [7..],
        responses: Vec<FetchableTopicResponse> [0..],
        node_endpoints: Vec<NodeEndpoint> [16.., tag 0],
    }

    pub struct FetchableTopicResponse {
        topic: ByteString [0..=12, ignorable],
        topic_id: Uuid [13.., ignorable],
        partitions: Vec<FetchPartitionData> [0..],
    }

    pub struct FetchPartitionData {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
        high_watermark: i64 [0..],
        last_stable_offset: i64 [4.., ignorable] = -1,
        log_start_offset: i64 [5.., ignorable] = -1,
        diverging_epoch: EpochEndOffset [12.., tag 0],
        current_leader: LeaderIdAndEpoch [12.., tag 1],
        snapshot_id: SnapshotId [12.., tag 2],
        aborted_transactions: Option<Vec<AbortedTransaction>> [4.., null 4.., ignorable] = Some(Default::default()),
        preferred_read_replica: i32 [11..] = -1,
        records: Option<Bytes> [0.., null 0..] = Some(Default::default()),
    }

    pub struct EpochEndOffset {
        epoch: i32 [12..] = -1,
        end_offset: i64 [12..] = -1,
    }

    pub struct SnapshotId {
        end_offset: i64 [0..] = -1,
        epoch: i32 [0..] = -1,
    }

    pub struct AbortedTransaction {
        producer_id: i64 [4..],
        first_offset: i64 [4..],
    }
}
