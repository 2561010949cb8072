//! CreatePartitions (API 37).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Adds partitions to topics.
    pub struct CreatePartitionsRequest: 0..=3, flexible 2.. {
        topics: Vec<CreatePartitionsTopic> [0..],
        timeout_ms: i32 [0..],
        /// Checks the change and does not make it.
        validate_only: bool [0..],
    }

    /// A topic that is to have more partitions.
    pub struct CreatePartitionsTopic {
        name: ByteString [0..],
        /// How many partitions the topic shall have in all.
        count: i32 [0..],
        /// The brokers of each new partition; `None` leaves the choice to the controller.
        assignments: Option<Vec<CreatePartitionsAssignment>> [0.., null 0..] = Some(Default::default()),
    }

    /// The brokers that hold a new partition, its preferred leader first.
    pub struct CreatePartitionsAssignment {
        broker_ids: Vec<i32> [0..],
    }

    /// What became of each topic.
    pub struct CreatePartitionsResponse: 0..=3, flexible 2.. {
        throttle_time_ms: i32 [0..],
        results: Vec<CreatePartitionsTopicResult> [0..],
    }

    /// What became of a topic.
    pub struct CreatePartitionsTopicResult {
        name: ByteString [0..],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..],
    }
}
