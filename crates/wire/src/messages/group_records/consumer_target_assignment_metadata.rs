//! ConsumerGroupTargetAssignmentMetadata.

use crate::ByteString;

crate::message! {
    pub struct ConsumerGroupTargetAssignmentMetadataKey: 0..=0 {
        group_id: ByteString [0..=0],
    }

    pub struct ConsumerGroupTargetAssignmentMetadataValue: 0..=0, flexible 0.. {
        assignment_epoch: i32 [0..],
        assignment_timestamp: i64 [0.., tag 0, ignorable],
    }
}
