//! DescribeTransactions (API 65).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct DescribeTransactionsRequest: 0..=0, flexible 0.. {
        transactional_ids: Vec<ByteString> [0..],
    }

    pub struct DescribeTransactionsResponse: 0..=0, flexible 0.. {
        throttle_time_ms: i32 [0..],
        transaction_states: Vec<DescribeTransactionsResponseTransactionState> [0..],
    }

    pub struct DescribeTransactionsResponseTransactionState {
        error_code: ErrorCode [0..],
        transactional_id: ByteString [0..],
        transaction_state: ByteString [0..],
        transaction_timeout_ms: i32 [0..],
        transaction_start_time_ms: i64 [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        topics: Vec<TopicData> [0..],
    }

    pub struct TopicData {
        topic: ByteString [0..],
        partitions: Vec<i32> [0..],
    }
}
