//! DeleteTopics (API 20).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    /// Deletes topics.
    pub struct DeleteTopicsRequest: 1..=6, flexible 4.. {
        /// The topics by name or by id, from version 6 on (KIP-516).
        topics: Vec<DeleteTopicState> [6..],
        /// The topics by name, up to version 5.
        topic_names: Vec<ByteString> [0..=5, ignorable],
        /// How long the broker waits until the topics are gone.
        timeout_ms: i32 [0..],
    }

    /// A topic to be deleted: either its name or its id.
    pub struct DeleteTopicState {
        name: Option<ByteString> [6.., null 6..],
        topic_id: Uuid [6..],
    }

    /// What became of each topic.
    pub struct DeleteTopicsResponse: 1..=6, flexible 4.. {
        throttle_time_ms: i32 [1.., ignorable],
        responses: Vec<DeletableTopicResult> [0..],
    }

    /// What became of a topic.
    pub struct DeletableTopicResult {
        name: Option<ByteString> [0.., null 6..] = Some(Default::default()),
        topic_id: Uuid [6.., ignorable],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [5.., null 5.., ignorable],
    }
}
