//! ConsumerGroupHeartbeat (API 68).

use crate::{ByteString, ErrorCode, messages::TopicIdPartitions};

crate::message! {
    pub struct ConsumerGroupHeartbeatRequest: 0..=1, flexible 0.. {
        group_id: ByteString [0..],
        member_id: ByteString [0..],
        member_epoch: i32 [0..],
        instance_id: Option<ByteString> [0.., null 0..],
        rack_id: Option<ByteString> [0.., null 0..],
        rebalance_timeout_ms: i32 [0..] = -1,
        subscribed_topic_names: Option<Vec<ByteString>> [0.., null 0..],
        subscribed_topic_regex: Option<ByteString> [1.., null 1..],
        server_assignor: Option<ByteString> [0.., null 0..],
        topic_partitions: Option<Vec<TopicIdPartitions>> [0.., null 0..],
    }

    pub struct ConsumerGroupHeartbeatResponse: 0..=1, flexible 0.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..],
        member_id: Option<ByteString> [0.., null 0..],
        member_epoch: i32 [0..],
        heartbeat_interval_ms: i32 [0..],
        assignment: Option<ConsumerGroupHeartbeatAssignment> [0.., null 0..],
    }

    pub struct ConsumerGroupHeartbeatAssignment {
        topic_partitions: Vec<TopicIdPartitions> [0..],
    }
}
