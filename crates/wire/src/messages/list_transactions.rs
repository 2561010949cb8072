//! ListTransactions (API 66).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct ListTransactionsRequest: 0..=2, flexible 0.. {
        state_filters: Vec<ByteString> [0..],
        producer_id_filters: Vec<i64> [0..],
        duration_filter: i64 [1..] = -1,
        transactional_id_pattern: Option<ByteString> [2.., null 2..],
    }

    pub struct ListTransactionsResponse: 0..=2, flexible 0.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        unknown_state_filters: Vec<ByteString> [0..],
        transaction_states: Vec<ListedTransactionState> [0..],
    }

    pub struct ListedTransactionState {
        transactional_id: ByteString [0..],
        producer_id: i64 [0..],
        transaction_state: ByteString [0..],
    }
}
