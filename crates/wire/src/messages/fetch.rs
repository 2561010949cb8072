//! Fetch (API 1).

use bytes::Bytes;

use crate::{
    ByteString, ErrorCode, Uuid,
    messages::{LeaderIdAndEpoch, NodeEndpoint},
};

crate::message! {
    /// Reads record batches. Consumers use it, and so do followers. With a session only what has
    /// changed since the last request is named (KIP-227).
    pub struct FetchRequest: 4..=18, flexible 12.. {
        /// The cluster, in requests between controllers.
        cluster_id: Option<ByteString> [12.., null 12.., tag 0, ignorable],
        /// The id of the follower that fetches; -1 for a consumer.
        replica_id: i32 [0..=14] = -1,
        /// The follower that fetches, from version 15 on.
        replica_state: ReplicaState [15.., tag 1],
        /// How long the broker waits for `min_bytes`.
        max_wait_ms: i32 [0..],
        min_bytes: i32 [0..],
        /// How large the answer shall be at most; the first batch comes whatever its size.
        max_bytes: i32 [3.., ignorable] = i32::MAX,
        /// 0 to read everything, 1 to read only what is committed.
        isolation_level: i8 [4.., ignorable],
        /// The session; 0 to open one, or for none.
        session_id: i32 [7.., ignorable],
        /// Counts the session's requests; 0 opens a session, -1 asks for none or closes it.
        session_epoch: i32 [7.., ignorable] = -1,
        /// What is fetched; in a session, what is new or has changed.
        topics: Vec<FetchTopic> [0..],
        /// What the session shall no longer fetch.
        forgotten_topics_data: Vec<ForgottenTopic> [7..],
        /// Where the consumer is, so that it can be sent to a nearby replica (KIP-392).
        rack_id: ByteString [11.., ignorable],
    }

    /// A follower that fetches (KIP-903).
    pub struct ReplicaState {
        /// -1 for a consumer.
        replica_id: i32 [15..] = -1,
        /// The epoch of the broker's registration; -1 when not known.
        replica_epoch: i64 [15..] = -1,
    }

    /// Partitions of a topic to be fetched.
    pub struct FetchTopic {
        /// The topic's name, up to version 12.
        topic: ByteString [0..=12, ignorable],
        /// The topic's id, from version 13 on.
        topic_id: Uuid [13.., ignorable],
        partitions: Vec<FetchPartition> [0..],
    }

    /// Partitions of a topic that are no longer fetched.
    pub struct ForgottenTopic {
        /// The topic's name, up to version 12.
        topic: ByteString [7..=12, ignorable],
        /// The topic's id, from version 13 on.
        topic_id: Uuid [13.., ignorable],
        partitions: Vec<i32> [7..],
    }

    /// A partition and the place from which it is fetched.
    pub struct FetchPartition {
        partition: i32 [0..],
        /// The leader's epoch that the client knows of; -1 when it knows none. One that has passed
        /// is refused (KIP-320).
        current_leader_epoch: i32 [9.., ignorable] = -1,
        fetch_offset: i64 [0..],
        /// The leader's epoch of the last record that a follower has; -1 for none.
        last_fetched_epoch: i32 [12..] = -1,
        /// Where a follower's log begins; -1 for a consumer.
        log_start_offset: i64 [5.., ignorable] = -1,
        /// How many bytes of this partition at most; see `max_bytes` for the exception.
        partition_max_bytes: i32 [0..],
        /// The directory of a follower's log (KIP-853).
        replica_directory_id: Uuid [17.., tag 0, ignorable],
        /// The high watermark that a follower knows, -1 for none; `i64::MAX` when the sender does
        /// not have this feature (KIP-1166).
        high_watermark: i64 [18.., tag 1, ignorable] = i64::MAX,
    }

    /// Record batches. In a session, partitions about which there is nothing new are left out.
    pub struct FetchResponse: 4..=18, flexible 12.. {
        throttle_time_ms: i32 [1.., ignorable],
        /// What went wrong with the request as a whole.
        error_code: ErrorCode [7.., ignorable],
        /// The session; 0 for none.
        session_id: i32 [7..],
        responses: Vec<FetchableTopicResponse> [0..],
        /// Leaders that are named in `current_leader` (KIP-951).
        node_endpoints: Vec<NodeEndpoint> [16.., tag 0],
    }

    /// What was fetched of a topic.
    pub struct FetchableTopicResponse {
        /// The topic's name, up to version 12.
        topic: ByteString [0..=12, ignorable],
        /// The topic's id, from version 13 on.
        topic_id: Uuid [13.., ignorable],
        partitions: Vec<FetchPartitionData> [0..],
    }

    /// What was fetched of a partition.
    pub struct FetchPartitionData {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
        high_watermark: i64 [0..],
        /// Before which every transaction has ended; -1 when not told.
        last_stable_offset: i64 [4.., ignorable] = -1,
        /// The first offset that there is; -1 when not told.
        log_start_offset: i64 [5.., ignorable] = -1,
        /// Where a follower's log parts from the leader's (KIP-595).
        diverging_epoch: EpochEndOffset [12.., tag 0],
        /// The current leader, with errors that say another broker does (KIP-951).
        current_leader: LeaderIdAndEpoch [12.., tag 1],
        /// The snapshot that a follower has to fetch first (KIP-630).
        snapshot_id: SnapshotId [12.., tag 2],
        /// The aborted transactions among the records, which the consumer filters out; `None`
        /// unless `isolation_level` is 1.
        aborted_transactions: Option<Vec<AbortedTransaction>> [4.., null 4.., ignorable] = Some(Default::default()),
        /// The replica that the consumer should fetch from; -1 to stay (KIP-392).
        preferred_read_replica: i32 [11..] = -1,
        /// Whole batches, the last perhaps cut short, the first perhaps beginning before the offset
        /// asked for.
        records: Option<Bytes> [0.., null 0..] = Some(Default::default()),
    }

    /// Where an epoch of a log ended.
    pub struct EpochEndOffset {
        epoch: i32 [12..] = -1,
        end_offset: i64 [12..] = -1,
    }

    /// A snapshot of a log.
    pub struct SnapshotId {
        end_offset: i64 [0..] = -1,
        epoch: i32 [0..] = -1,
    }

    /// A transaction that was aborted.
    pub struct AbortedTransaction {
        producer_id: i64 [4..],
        /// The first offset of the transaction.
        first_offset: i64 [4..],
    }
}
