//! ConsumerGroupDescribe (API 69).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    /// Asks for the state of groups of the consumer protocol (KIP-848).
    pub struct ConsumerGroupDescribeRequest: 0..=1, flexible 0.. {
        group_ids: Vec<ByteString> [0..],
        include_authorized_operations: bool [0..],
    }

    /// The state of groups.
    pub struct ConsumerGroupDescribeResponse: 0..=1, flexible 0.. {
        throttle_time_ms: i32 [0..],
        groups: Vec<DescribedConsumerGroup> [0..],
    }

    /// The state of a group of the consumer protocol.
    pub struct DescribedConsumerGroup {
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..],
        group_id: ByteString [0..],
        /// `Empty`, `Assigning`, `Reconciling`, `Stable` or `Dead`.
        group_state: ByteString [0..],
        /// Grows with every change of the members, their subscriptions or the topics' partitions.
        group_epoch: i32 [0..],
        /// The group epoch that the target assignment was computed for.
        assignment_epoch: i32 [0..],
        /// The server-side assignor in use.
        assignor_name: ByteString [0..],
        members: Vec<DescribedConsumerGroupMember> [0..],
        authorized_operations: i32 [0..] = i32::MIN,
    }

    /// Partitions of a topic, by its id and its name.
    pub struct DescribedTopicPartitions {
        topic_id: Uuid [0..],
        topic_name: ByteString [0..],
        partitions: Vec<i32> [0..],
    }

    /// Partitions of a member.
    pub struct DescribedAssignment {
        topic_partitions: Vec<DescribedTopicPartitions> [0..],
    }

    /// A member of a group of the consumer protocol.
    pub struct DescribedConsumerGroupMember {
        member_id: ByteString [0..],
        /// The id of a static member (KIP-345).
        instance_id: Option<ByteString> [0.., null 0..],
        rack_id: Option<ByteString> [0.., null 0..],
        /// The epoch the member has reached; it trails the group's while it has partitions to let
        /// go.
        member_epoch: i32 [0..],
        client_id: ByteString [0..],
        client_host: ByteString [0..],
        subscribed_topic_names: Vec<ByteString> [0..],
        /// The pattern (RE2 syntax) of the topics that the member wants besides the named ones.
        subscribed_topic_regex: Option<ByteString> [0.., null 0..],
        /// What the member owns now.
        assignment: DescribedAssignment [0..],
        /// What the member will own when it has caught up.
        target_assignment: DescribedAssignment [0..],
        /// 0 for the classic protocol, 1 for the consumer protocol, -1 for not known.
        member_type: i8 [1.., ignorable] = -1,
    }
}
