//! The records of `__consumer_offsets`, one file a type: its key and its value.

mod consumer_current_member_assignment;
mod consumer_member_metadata;
mod consumer_metadata;
mod consumer_partition_metadata;
mod consumer_regular_expression;
mod consumer_target_assignment_member;
mod consumer_target_assignment_metadata;
mod group_metadata;
mod legacy_offset_commit;
mod offset_commit;

pub use consumer_current_member_assignment::*;
pub use consumer_member_metadata::*;
pub use consumer_metadata::*;
pub use consumer_partition_metadata::*;
pub use consumer_regular_expression::*;
pub use consumer_target_assignment_member::*;
pub use consumer_target_assignment_metadata::*;
pub use group_metadata::*;
pub use legacy_offset_commit::*;
pub use offset_commit::*;
