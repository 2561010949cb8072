//! DescribeProducers (API 61).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Asks who writes to partitions with idempotence or transactions (KIP-664).
    pub struct DescribeProducersRequest: 0..=0, flexible 0.. {
        topics: Vec<DescribeProducersTopic> [0..],
    }

    /// Partitions of a topic.
    pub struct DescribeProducersTopic {
        name: ByteString [0..],
        partition_indexes: Vec<i32> [0..],
    }

    /// The producers of each partition.
    pub struct DescribeProducersResponse: 0..=0, flexible 0.. {
        throttle_time_ms: i32 [0..],
        topics: Vec<DescribeProducersTopicResponse> [0..],
    }

    /// The producers of a topic's partitions.
    pub struct DescribeProducersTopicResponse {
        name: ByteString [0..],
        partitions: Vec<DescribeProducersPartitionResponse> [0..],
    }

    /// The producers of a partition.
    pub struct DescribeProducersPartitionResponse {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..],
        active_producers: Vec<DescribedProducerState> [0..],
    }

    /// What a partition's leader knows of a producer.
    pub struct DescribedProducerState {
        producer_id: i64 [0..],
        producer_epoch: i32 [0..],
        /// The sequence number of the last record; -1 for none.
        last_sequence: i32 [0..] = -1,
        /// When the last batch was written, in milliseconds since 1970; -1 for never.
        last_timestamp: i64 [0..] = -1,
        /// The epoch of the transaction coordinator that last ended a transaction here.
        coordinator_epoch: i32 [0..],
        /// The first offset of the open transaction; -1 for none.
        current_txn_start_offset: i64 [0..] = -1,
    }
}
