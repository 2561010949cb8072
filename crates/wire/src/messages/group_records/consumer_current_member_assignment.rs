//! ConsumerGroupCurrentMemberAssignment.

use crate::{ByteString, Uuid};

crate::message! {
    /// Key of type 8: what a member of the consumer protocol owns.
    pub struct ConsumerGroupCurrentMemberAssignmentKey: 0..=0 {
        group_id: ByteString [0..=0],
        member_id: ByteString [0..=0],
    }

    /// How far a member of the consumer protocol has come.
    pub struct ConsumerGroupCurrentMemberAssignmentValue: 0..=0, flexible 0.. {
        /// The epoch that the member has been given.
        member_epoch: i32 [0..],
        /// The epoch before it, which a member that missed the answer may still send.
        previous_member_epoch: i32 [0..],
        /// 0 stable, 1 letting partitions go, 2 waiting for partitions that others let go, 127 not
        /// known.
        state: i8 [0..],
        /// What the member owns, those it has to let go not included.
        assigned_partitions: Vec<CurrentAssignmentTopicPartitions> [0..],
        /// What the member has been asked to let go.
        partitions_pending_revocation: Vec<CurrentAssignmentTopicPartitions> [0..],
    }

    /// Partitions that a member owns.
    pub struct CurrentAssignmentTopicPartitions {
        topic_id: Uuid [0..],
        partitions: Vec<i32> [0..],
        /// The epoch at which each partition was assigned, in the order of `partitions`. A record
        /// without this field means an empty list, not `None`: Kafka's generator does not see the
        /// `null` that its schema gives as the default.
        assignment_epochs: Option<Vec<i32>> [0.., null 0.., tag 0] = Some(Default::default()),
    }
}
