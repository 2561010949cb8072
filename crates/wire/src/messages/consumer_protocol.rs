//! ConsumerProtocolSubscription.

use bytes::Bytes;

use crate::{ByteString, messages::TopicPartitions};

crate::message! {
    pub struct ConsumerProtocolSubscription: 0..=3 {
        topics: Vec<ByteString> [0..],
        user_data: Option<Bytes> [0.., null 0..],
        owned_partitions: Vec<TopicPartitions> [1.., ignorable],
        generation_id: i32 [2.., ignorable] = -1,
        rack_id: Option<ByteString> [3.., null 3.., ignorable],
    }

    pub struct ConsumerProtocolAssignment: 0..=3 {
        assigned_partitions: Vec<TopicPartitions> [0..],
        user_data: Option<Bytes> [0.., null 0..],
    }
}
