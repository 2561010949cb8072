//! EndTxn (API 26).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct EndTxnRequest: 0..=5, flexible 3.. {
        transactional_id: ByteString [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        committed: bool [0..],
    }

    pub struct EndTxnResponse: 0..=5, flexible 3.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        producer_id: i64 [5.., ignorable] = -1,
        producer_epoch: i16 [5.., ignorable] = -1,
    }
}
