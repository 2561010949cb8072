//! DescribeProducers (API 61).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct DescribeProducersRequest: 0..=0, flexible 0.. {
        topics: Vec<DescribeProducersRequestTopicRequest> [0..],
    }

    pub struct DescribeProducersRequestTopicRequest {
        name: ByteString [0..],
        partition_indexes: Vec<i32> [0..],
    }

    pub struct DescribeProducersResponse: 0..=0, flexible 0.. {
        throttle_time_ms: i32 [0..],
        topics: Vec<TopicResponse> [0..],
    }

    pub struct TopicResponse {
        name: ByteString [0..],
        partitions: Vec<PartitionResponse> [0..],
    }

    pub struct PartitionResponse {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..],
        active_producers: Vec<ProducerState> [0..],
    }

    pub struct ProducerState {
        producer_id: i64 [0..],
        producer_epoch: i32 [0..],
        last_sequence: i32 [0..] = -1,
        last_timestamp: i64 [0..] = -1,
        coordinator_epoch: i32 [0..],
        current_txn_start_offset: i64 [0..] = -1,
    }
}
