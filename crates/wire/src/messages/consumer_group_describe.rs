//! ConsumerGroupDescribe (API 69).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    pub struct ConsumerGroupDescribeRequest: 0..=1, flexible 0.. {
        group_ids: Vec<ByteString> [0..],
        include_authorized_operations: bool [0..],
    }

    pub struct ConsumerGroupDescribeResponse: 0..=1, flexible 0.. {
        throttle_time_ms: i32 [0..],
        groups: Vec<DescribedConsumerGroup> [0..],
    }

    pub struct DescribedConsumerGroup {
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..],
        group_id: ByteString [0..],
        group_state: ByteString [0..],
        group_epoch: i32 [0..],
        assignment_epoch: i32 [0..],
        assignor_name: ByteString [0..],
        members: Vec<DescribedConsumerGroupMember> [0..],
        authorized_operations: i32 [0..] = i32::MIN,
    }

    pub struct DescribedTopicPartitions {
        topic_id: Uuid [0..],
        topic_name: ByteString [0..],
        partitions: Vec<i32> [0..],
    }

    pub struct DescribedAssignment {
        topic_partitions: Vec<DescribedTopicPartitions> [0..],
    }

    pub struct DescribedConsumerGroupMember {
        member_id: ByteString [0..],
        instance_id: Option<ByteString> [0.., null 0..],
        rack_id: Option<ByteString> [0.., null 0..],
        member_epoch: i32 [0..],
        client_id: ByteString [0..],
        client_host: ByteString [0..],
        subscribed_topic_names: Vec<ByteString> [0..],
        subscribed_topic_regex: Option<ByteString> [0.., null 0..],
        assignment: DescribedAssignment [0..],
        target_assignment: DescribedAssignment [0..],
        member_type: i8 [1.., ignorable] = -1,
    }
}
