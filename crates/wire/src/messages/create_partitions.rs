//! CreatePartitions (API 37).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct CreatePartitionsRequest: 0..=3, flexible 2.. {
        topics: Vec<CreatePartitionsTopic> [0..],
        timeout_ms: i32 [0..],
        validate_only: bool [0..],
    }

    pub struct CreatePartitionsTopic {
        name: ByteString [0..],
        count: i32 [0..],
        assignments: Option<Vec<CreatePartitionsAssignment>> [0.., null 0..] = Some(Default::default()),
    }

    pub struct CreatePartitionsAssignment {
        broker_ids: Vec<i32> [0..],
    }

    pub struct CreatePartitionsResponse: 0..=3, flexible 2.. {
        throttle_time_ms: i32 [0..],
        results: Vec<CreatePartitionsTopicResult> [0..],
    }

    pub struct CreatePartitionsTopicResult {
        name: ByteString [0..],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..],
    }
}
