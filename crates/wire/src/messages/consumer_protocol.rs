//! ConsumerProtocolSubscription.

use bytes::Bytes;

use crate::ByteString;

crate::message! {
    pub struct ConsumerProtocolSubscription: 0..=3 {
        topics: Vec<ByteString> [0..],
        user_data: Option<Bytes> [0.., null 0..],
        owned_partitions: Vec<ConsumerProtocolSubscriptionTopicPartition> [1.., ignorable],
        generation_id: i32 [2.., ignorable] = -1,
        rack_id: Option<ByteString> [3.., null 3.., ignorable],
    }

    pub struct ConsumerProtocolSubscriptionTopicPartition {
        topic: ByteString [1..],
        partitions: Vec<i32> [1..],
    }

    pub struct ConsumerProtocolAssignment: 0..=3 {
        assigned_partitions: Vec<ConsumerProtocolAssignmentTopicPartition> [0..],
        user_data: Option<Bytes> [0.., null 0..],
    }

    pub struct ConsumerProtocolAssignmentTopicPartition {
        topic: ByteString [0..],
        partitions: Vec<i32> [0..],
    }
}
