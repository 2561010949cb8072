//! The client-side range assignor.

use kohort_wire::messages::ConsumerProtocolAssignment;

use super::{
    AssignError, ConsumerPartitionAssignor, GroupMember, PartitionCounts, numbered::Numbered,
};
use crate::{TopicPartitions, assignor::range};

/// For each topic a contiguous range to each subscriber, in order of instance id or member id:
/// partitions of equal number of topics with equally many go to the same member.
#[derive(Debug, Clone, Copy, Default)]
pub struct Range;

impl ConsumerPartitionAssignor for Range {
    fn name(&self) -> &str {
        "range"
    }

    fn assign(
        &self,
        partition_counts: &PartitionCounts,
        members: &[GroupMember],
    ) -> Result<Vec<ConsumerProtocolAssignment>, AssignError> {
        let numbered = Numbered::new(partition_counts, members);
        let nothing = vec![TopicPartitions::new(); members.len()];
        let group = numbered.members(members, &nothing);
        let targets = range::assign(&group, &numbered.subscriptions(&group));
        Ok(targets.iter().map(|t| numbered.assignment(t)).collect())
    }
}
