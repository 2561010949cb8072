//! InitProducerId (API 22).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Asks for a producer id, for idempotence or transactions. With a transactional id it also
    /// fences earlier producers of that id and ends what they left open.
    pub struct InitProducerIdRequest: 0..=6, flexible 2.. {
        /// `None` for idempotence without transactions.
        transactional_id: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        /// How long a transaction may stay open before the coordinator aborts it.
        transaction_timeout_ms: i32 [0..],
        /// The producer id so far, to go on with a new epoch (KIP-360); -1 for none.
        producer_id: i64 [3..] = -1,
        /// The epoch so far; -1 for none.
        producer_epoch: i16 [3..] = -1,
        /// Whether the transaction takes part in a two-phase commit and so never times out
        /// (KIP-939).
        enable_2pc: bool [6..],
        /// Whether a prepared transaction is kept instead of being aborted (KIP-939).
        keep_prepared_txn: bool [6..],
    }

    /// A producer id and its epoch.
    pub struct InitProducerIdResponse: 0..=6, flexible 2.. {
        throttle_time_ms: i32 [0.., ignorable],
        error_code: ErrorCode [0..],
        /// -1 with an error.
        producer_id: i64 [0..] = -1,
        producer_epoch: i16 [0..],
        /// The producer of the prepared transaction that was kept; -1 for none (KIP-939).
        ongoing_txn_producer_id: i64 [6..] = -1,
        ongoing_txn_producer_epoch: i16 [6..] = -1,
    }
}
