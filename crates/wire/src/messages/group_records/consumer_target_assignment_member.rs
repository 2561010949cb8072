//! ConsumerGroupTargetAssignmentMember.

use crate::{ByteString, messages::TopicIdPartitions};

crate::message! {
    pub struct ConsumerGroupTargetAssignmentMemberKey: 0..=0 {
        group_id: ByteString [0..=0],
        member_id: ByteString [0..=0],
    }

    pub struct ConsumerGroupTargetAssignmentMemberValue: 0..=0, flexible 0.. {
        topic_partitions: Vec<TopicIdPartitions> [0..],
    }
}
