//! AddOffsetsToTxn (API 25).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct AddOffsetsToTxnRequest: 0..=4, flexible 3.. {
        transactional_id: ByteString [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        group_id: ByteString [0..],
    }

    pub struct AddOffsetsToTxnResponse: 0..=4, flexible 3.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
    }
}
