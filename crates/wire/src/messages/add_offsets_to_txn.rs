//! AddOffsetsToTxn (API 25).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Tells the transaction coordinator that a group's offsets will be committed as part of a
    /// transaction.
    pub struct AddOffsetsToTxnRequest: 0..=4, flexible 3.. {
        transactional_id: ByteString [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        /// The group whose offsets follow by
        /// [`TxnOffsetCommitRequest`](crate::messages::TxnOffsetCommitRequest).
        group_id: ByteString [0..],
    }

    /// Whether the group's partition of `__consumer_offsets` is part of the transaction now.
    pub struct AddOffsetsToTxnResponse: 0..=4, flexible 3.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
    }
}
