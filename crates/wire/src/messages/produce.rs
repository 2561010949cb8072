//! Produce (API 0).

use bytes::Bytes;

use crate::{
    ByteString, ErrorCode, Uuid,
    messages::{LeaderIdAndEpoch, NodeEndpoint},
};

crate::message! {
    /// Writes record batches. With `acks` 0 it is not answered at all.
    pub struct ProduceRequest: 3..=13, flexible 9.. {
        /// `None` when the records are not part of a transaction.
        transactional_id: Option<ByteString> [3.., null 3..],
        /// When the broker answers: -1 when all replicas in sync have the records, 1 when the
        /// leader has them, 0 never.
        acks: i16 [0..],
        /// How long the leader waits for the replicas.
        timeout_ms: i32 [0..],
        topic_data: Vec<TopicProduceData> [0..],
    }

    /// Batches for a topic.
    pub struct TopicProduceData {
        /// The topic's name, up to version 12.
        name: ByteString [0..=12, ignorable],
        /// The topic's id, from version 13 on.
        topic_id: Uuid [13.., ignorable],
        partition_data: Vec<PartitionProduceData> [0..],
    }

    /// Batches for a partition.
    pub struct PartitionProduceData {
        index: i32 [0..],
        /// One whole record batch.
        records: Option<Bytes> [0.., null 0..] = Some(Default::default()),
    }

    /// Where the batches were written.
    pub struct ProduceResponse: 3..=13, flexible 9.. {
        responses: Vec<TopicProduceResponse> [0..],
        throttle_time_ms: i32 [1.., ignorable],
        /// Leaders that are named in `current_leader` (KIP-951).
        node_endpoints: Vec<NodeEndpoint> [10.., tag 0],
    }

    /// What became of a topic's batches.
    pub struct TopicProduceResponse {
        /// The topic's name, up to version 12.
        name: ByteString [0..=12, ignorable],
        /// The topic's id, from version 13 on.
        topic_id: Uuid [13.., ignorable],
        partition_responses: Vec<PartitionProduceResponse> [0..],
    }

    /// What became of a partition's batch.
    pub struct PartitionProduceResponse {
        index: i32 [0..],
        error_code: ErrorCode [0..],
        /// The offset of the batch's first record; -1 with an error.
        base_offset: i64 [0..],
        /// The time that the records were given, in milliseconds since 1970; -1 where they keep the
        /// producer's.
        log_append_time_ms: i64 [2.., ignorable] = -1,
        /// The first offset that there is; -1 when not told.
        log_start_offset: i64 [5.., ignorable] = -1,
        /// The records for which the batch was refused (KIP-467).
        record_errors: Vec<BatchIndexAndErrorMessage> [8.., ignorable],
        error_message: Option<ByteString> [8.., null 8.., ignorable],
        /// The current leader, with errors that say another broker does (KIP-951).
        current_leader: LeaderIdAndEpoch [10.., tag 0],
    }

    /// A record for which a batch was refused.
    pub struct BatchIndexAndErrorMessage {
        /// The record's place in the batch, from 0.
        batch_index: i32 [8..],
        batch_index_error_message: Option<ByteString> [8.., null 8..],
    }
}
