//! DeleteTopics (API 20).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    pub struct DeleteTopicsRequest: 1..=6, flexible 4.. {
        topics: Vec<DeleteTopicState> [6..],
        topic_names: Vec<ByteString> [0..=5, ignorable],
        timeout_ms: i32 [0..],
    }

    pub struct DeleteTopicState {
        name: Option<ByteString> [6.., null 6..],
        topic_id: Uuid [6..],
    }

    pub struct DeleteTopicsResponse: 1..=6, flexible 4.. {
        throttle_time_ms: i32 [1.., ignorable],
        responses: Vec<DeletableTopicResult> [0..],
    }

    pub struct DeletableTopicResult {
        name: Option<ByteString> [0.., null 6..] = Some(Default::default()),
        topic_id: Uuid [6.., ignorable],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [5.., null 5.., ignorable],
    }
}
