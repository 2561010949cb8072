//! Produce (API 0).

use bytes::Bytes;

use crate::{
    ByteString, ErrorCode, Uuid,
    messages::{LeaderIdAndEpoch, NodeEndpoint},
};

crate::message! {
    pub struct ProduceRequest: 3..=13, flexible 9.. {
        transactional_id: Option<ByteString> [3.., null 3..],
        acks: i16 [0..],
        timeout_ms: i32 [0..],
        topic_data: Vec<TopicProduceData> [0..],
    }

    pub struct TopicProduceData {
        name: ByteString [0..=12, ignorable],
        topic_id: Uuid [13.., ignorable],
        partition_data: Vec<PartitionProduceData> [0..],
    }

    pub struct PartitionProduceData {
        index: i32 [0..],
        records: Option<Bytes> [0.., null 0..] = Some(Default::default()),
    }

    pub struct ProduceResponse: 3..=13, flexible 9.. {
        responses: Vec<TopicProduceResponse> [0..],
        throttle_time_ms: i32 [1.., ignorable],
        node_endpoints: Vec<NodeEndpoint> [10.., tag 0],
    }

    pub struct TopicProduceResponse {
        name: ByteString [0..=12, ignorable],
        topic_id: Uuid [13.., ignorable],
        partition_responses: Vec<PartitionProduceResponse> [0..],
    }

    pub struct PartitionProduceResponse {
        index: i32 [0..],
        error_code: ErrorCode [0..],
        base_offset: i64 [0..],
        log_append_time_ms: i64 [2.., ignorable] = -1,
        log_start_offset: i64 [5.., ignorable] = -1,
        record_errors: Vec<BatchIndexAndErrorMessage> [8.., ignorable],
        error_message: Option<ByteString> [8.., null 8.., ignorable],
        current_leader: LeaderIdAndEpoch [10.., tag 0],
    }

    pub struct BatchIndexAndErrorMessage {
        batch_index: i32 [8..],
        batch_index_error_message: Option<ByteString> [8.., null 8..],
    }
}
