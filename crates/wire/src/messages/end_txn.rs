//! EndTxn (API 26).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Ends a transaction.
    pub struct EndTxnRequest: 0..=5, flexible 3.. {
        transactional_id: ByteString [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        /// Whether to commit; otherwise the transaction is aborted.
        committed: bool [0..],
    }

    /// Whether the end of the transaction is decided, and from version 5 on with whom the producer
    /// goes on (KIP-890).
    pub struct EndTxnResponse: 0..=5, flexible 3.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        /// The producer id of the next transaction; -1 to keep the old.
        producer_id: i64 [5.., ignorable] = -1,
        /// The epoch of the next transaction; -1 to keep the old.
        producer_epoch: i16 [5.., ignorable] = -1,
    }
}
