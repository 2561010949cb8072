//! ConsumerGroupHeartbeat (API 68).

use crate::{ByteString, ErrorCode, messages::TopicIdPartitions};

crate::message! {
    /// Joins a group, keeps the membership alive, reports what the member owns, and leaves: the one
    /// request of the consumer protocol (KIP-848). After the first, a field that has not changed
    /// may be null, or -1.
    pub struct ConsumerGroupHeartbeatRequest: 0..=1, flexible 0.. {
        group_id: ByteString [0..],
        /// Chosen by the member and kept for its life, a [`Uuid`](crate::Uuid) by custom. In
        /// version 0 it may be empty in the first request; the coordinator then makes one up.
        member_id: ByteString [0..],
        /// The epoch that the member was last told; 0 to join, -1 to leave, -2 for a static member
        /// that will come back.
        member_epoch: i32 [0..],
        /// The id of a static member (KIP-345).
        instance_id: Option<ByteString> [0.., null 0..],
        rack_id: Option<ByteString> [0.., null 0..],
        /// How long the coordinator waits for the member to let partitions go; -1 when unchanged.
        rebalance_timeout_ms: i32 [0..] = -1,
        subscribed_topic_names: Option<Vec<ByteString>> [0.., null 0..],
        /// A pattern in RE2 syntax (KIP-848); an empty one ends the subscription by pattern.
        subscribed_topic_regex: Option<ByteString> [1.., null 1..],
        /// The assignor that the member wishes for; the coordinator goes by the majority.
        server_assignor: Option<ByteString> [0.., null 0..],
        /// What the member owns now: sent when it has changed, and in every full request.
        topic_partitions: Option<Vec<TopicIdPartitions>> [0.., null 0..],
    }

    /// The member's epoch and, when there is something new, its assignment.
    pub struct ConsumerGroupHeartbeatResponse: 0..=1, flexible 0.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..],
        /// The member's id, `None` with most errors.
        member_id: Option<ByteString> [0.., null 0..],
        member_epoch: i32 [0..],
        /// How long the member waits until its next heartbeat.
        heartbeat_interval_ms: i32 [0..],
        /// What the member shall own; `None` when there is nothing new.
        assignment: Option<ConsumerGroupHeartbeatAssignment> [0.., null 0..],
    }

    /// All partitions that a member shall own. It takes those that are new to it once it has let go
    /// of the others.
    pub struct ConsumerGroupHeartbeatAssignment {
        topic_partitions: Vec<TopicIdPartitions> [0..],
    }
}
