//! ConsumerGroupTargetAssignmentMetadata.

use crate::ByteString;

crate::message! {
    /// Key of type 6: the target assignment of a group of the consumer protocol.
    pub struct ConsumerGroupTargetAssignmentMetadataKey: 0..=0 {
        group_id: ByteString [0..=0],
    }

    /// The epoch of a target assignment.
    pub struct ConsumerGroupTargetAssignmentMetadataValue: 0..=0, flexible 0.. {
        /// The group epoch that the assignment was computed for.
        assignment_epoch: i32 [0..],
        /// When it was computed, in milliseconds since 1970; 0 when not known.
        assignment_timestamp: i64 [0.., tag 0, ignorable],
    }
}
