//! ConsumerProtocolSubscription.

use bytes::Bytes;

use crate::{ByteString, messages::TopicPartitions};

crate::message! {
    /// What a classic member tells the group's leader: the metadata of its protocols in
    /// [`JoinGroupRequest`](crate::messages::JoinGroupRequest), after two bytes of version. Those
    /// who read a version that they do not know read it as the newest they know, and leave the
    /// rest.
    pub struct ConsumerProtocolSubscription: 0..=3 {
        topics: Vec<ByteString> [0..],
        /// What an assignor sends to itself on the leader.
        user_data: Option<Bytes> [0.., null 0..],
        /// What the member owns, which cooperative and sticky assignors go by (KIP-429).
        owned_partitions: Vec<TopicPartitions> [1.., ignorable],
        /// The generation in which it came to own them; -1 for none (KIP-792).
        generation_id: i32 [2.., ignorable] = -1,
        rack_id: Option<ByteString> [3.., null 3.., ignorable],
    }

    /// What a classic member is assigned: the assignment in
    /// [`SyncGroupRequest`](crate::messages::SyncGroupRequest), after two bytes of version.
    pub struct ConsumerProtocolAssignment: 0..=3 {
        assigned_partitions: Vec<TopicPartitions> [0..],
        /// What the leader's assignor sends to the member's.
        user_data: Option<Bytes> [0.., null 0..],
    }
}
