//! ListTransactions (API 66).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Asks for the transactions that a broker coordinates (KIP-664).
    pub struct ListTransactionsRequest: 0..=2, flexible 0.. {
        /// The states of the transactions wanted; none for all.
        state_filters: Vec<ByteString> [0..],
        /// The producers wanted; none for all.
        producer_id_filters: Vec<i64> [0..],
        /// Only transactions that have been open for more milliseconds than this; -1 for all
        /// (KIP-994).
        duration_filter: i64 [1..] = -1,
        /// Only transactions whose id matches this pattern (RE2 syntax); `None` for all (KIP-1152).
        transactional_id_pattern: Option<ByteString> [2.., null 2..],
    }

    /// The transactions that the broker coordinates.
    pub struct ListTransactionsResponse: 0..=2, flexible 0.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        /// Those states of the request that the broker does not know.
        unknown_state_filters: Vec<ByteString> [0..],
        transaction_states: Vec<ListedTransactionState> [0..],
    }

    /// A transaction.
    pub struct ListedTransactionState {
        transactional_id: ByteString [0..],
        producer_id: i64 [0..],
        transaction_state: ByteString [0..],
    }
}
