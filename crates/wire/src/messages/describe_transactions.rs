//! DescribeTransactions (API 65).

use crate::{ByteString, ErrorCode, messages::TopicPartitions};

crate::message! {
    /// Asks for the state of transactions (KIP-664).
    pub struct DescribeTransactionsRequest: 0..=0, flexible 0.. {
        transactional_ids: Vec<ByteString> [0..],
    }

    /// The state of each transaction.
    pub struct DescribeTransactionsResponse: 0..=0, flexible 0.. {
        throttle_time_ms: i32 [0..],
        transaction_states: Vec<DescribedTransactionState> [0..],
    }

    /// The state of a transaction.
    pub struct DescribedTransactionState {
        error_code: ErrorCode [0..],
        transactional_id: ByteString [0..],
        /// `Empty`, `Ongoing`, `PrepareCommit`, `PrepareAbort`, `CompleteCommit`, `CompleteAbort`
        /// and so on.
        transaction_state: ByteString [0..],
        transaction_timeout_ms: i32 [0..],
        /// When it began, in milliseconds since 1970; -1 when none is open.
        transaction_start_time_ms: i64 [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        /// The partitions that are part of it.
        topics: Vec<TopicPartitions> [0..],
    }
}
