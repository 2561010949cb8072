//! ConsumerGroupTargetAssignmentMember.

use crate::{ByteString, messages::TopicIdPartitions};

crate::message! {
    /// Key of type 7: what a member of the consumer protocol shall own.
    pub struct ConsumerGroupTargetAssignmentMemberKey: 0..=0 {
        group_id: ByteString [0..=0],
        member_id: ByteString [0..=0],
    }

    /// What a member shall own.
    pub struct ConsumerGroupTargetAssignmentMemberValue: 0..=0, flexible 0.. {
        topic_partitions: Vec<TopicIdPartitions> [0..],
    }
}
