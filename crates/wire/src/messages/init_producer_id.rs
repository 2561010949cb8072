//! InitProducerId (API 22).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct InitProducerIdRequest: 0..=6, flexible 2.. {
        transactional_id: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        transaction_timeout_ms: i32 [0..],
        producer_id: i64 [3..] = -1,
        producer_epoch: i16 [3..] = -1,
        enable_2pc: bool [6..],
        keep_prepared_txn: bool [6..],
    }

    pub struct InitProducerIdResponse: 0..=6, flexible 2.. {
        throttle_time_ms: i32 [0.., ignorable],
        error_code: ErrorCode [0..],
        producer_id: i64 [0..] = -1,
        producer_epoch: i16 [0..],
        ongoing_txn_producer_id: i64 [6..] = -1,
        ongoing_txn_producer_epoch: i16 [6..] = -1,
    }
}
