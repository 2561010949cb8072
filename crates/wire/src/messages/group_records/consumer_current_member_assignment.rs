//! ConsumerGroupCurrentMemberAssignment.

use crate::{ByteString, Uuid};

crate::message! {
    pub struct ConsumerGroupCurrentMemberAssignmentKey: 0..=0 {
        group_id: ByteString [0..=0],
        member_id: ByteString [0..=0],
    }

    pub struct ConsumerGroupCurrentMemberAssignmentValue: 0..=0, flexible 0.. {
        member_epoch: i32 [0..],
        previous_member_epoch: i32 [0..],
        state: i8 [0..],
        assigned_partitions: Vec<CurrentAssignmentTopicPartitions> [0..],
        partitions_pending_revocation: Vec<CurrentAssignmentTopicPartitions> [0..],
    }

    pub struct CurrentAssignmentTopicPartitions {
        topic_id: Uuid [0..],
        partitions: Vec<i32> [0..],
        /// The epoch at which each partition was assigned, in the order of `partitions`. A record
        /// without this field means an empty list, not `None`: Kafka's generator does not see the
        /// `null` that its schema gives as the default.
        assignment_epochs: Option<Vec<i32>> [0.., null 0.., tag 0] = Some(Default::default()),
    }
}
