//! DescribeProducers (API 61).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct DescribeProducersRequest: 0..=0, flexible 0.. {
        topics: Vec<DescribeProducersTopic> [0..],
    }

    pub struct DescribeProducersTopic {
        name: ByteString [0..],
        partition_indexes: Vec<i32> [0..],
    }

    pub struct DescribeProducersResponse: 0..=0, flexible 0.. {
        throttle_time_ms: i32 [0..],
        topics: Vec<DescribeProducersTopicResponse> [0..],
    }

    pub struct DescribeProducersTopicResponse {
        name: ByteString [0..],
        partitions: Vec<DescribeProducersPartitionResponse> [0..],
    }

    pub struct DescribeProducersPartitionResponse {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..],
        active_producers: Vec<DescribedProducerState> [0..],
    }

    pub struct DescribedProducerState {
        producer_id: i64 [0..],
        producer_epoch: i32 [0..],
        last_sequence: i32 [0..] = -1,
        last_timestamp: i64 [0..] = -1,
        coordinator_epoch: i32 [0..],
        current_txn_start_offset: i64 [0..] = -1,
    }
}
