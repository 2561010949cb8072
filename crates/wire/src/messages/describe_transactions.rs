//! DescribeTransactions (API 65).

use crate::{ByteString, ErrorCode, messages::TopicPartitions};

crate::message! {
    pub struct DescribeTransactionsRequest: 0..=0, flexible 0.. {
        transactional_ids: Vec<ByteString> [0..],
    }

    pub struct DescribeTransactionsResponse: 0..=0, flexible 0.. {
        throttle_time_ms: i32 [0..],
        transaction_states: Vec<DescribedTransactionState> [0..],
    }

    pub struct DescribedTransactionState {
        error_code: ErrorCode [0..],
        transactional_id: ByteString [0..],
        transaction_state: ByteString [0..],
        transaction_timeout_ms: i32 [0..],
        transaction_start_time_ms: i64 [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        topics: Vec<TopicPartitions> [0..],
    }
}
