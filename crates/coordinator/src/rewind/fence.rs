//! Which commits are refused so that none undoes a rewind.

use kohort_wire::{ErrorCode, Uuid, messages::OffsetCommitRequest};

use crate::group::{Group, Members};

impl Group {
    /// Refuses a commit of a member for a partition that was, or is being, rewound and that the
    /// member does not own.
    ///
    /// Kafka lets a member at its epoch commit any partition of the group, and so one that has just
    /// let go of it. Here it must have been given the partition since before the epoch of the commit
    /// (KIP-1251's rule, whatever its own epoch). In the classic protocol, where commits of earlier
    /// generations are refused anyway and a member may commit what it has just lost, it is refused
    /// what another member has been assigned.
    pub(crate) fn refuse_former_owner(
        &mut self,
        request: &OffsetCommitRequest,
        topic: (Uuid, &str),
        partition: i32,
    ) -> Result<(), ErrorCode> {
        let (topic_id, topic_name) = topic;
        let is_fenced = self
            .rewind
            .as_ref()
            .is_some_and(|rewind| rewind.partitions.contains(topic_id, partition))
            || self
                .rewound
                .as_ref()
                .is_some_and(|rewound| rewound.fenced.contains(topic_id, partition));
        if !is_fenced {
            return Ok(());
        }
        match &mut self.members {
            Members::Consumer(group) => group.refuse_former_owner(request, topic_id, partition),
            Members::Classic(group) => {
                // A generation that was never assigned anything has nothing to commit.
                let is_assigned = group.is_empty() || group.assigned_generation == group.generation;
                let is_overdue = group.is_overdue;
                match group.assignee(topic_name, partition) {
                    // The assignee may have been removed in the same generation.
                    None if is_assigned && !is_overdue => Ok(()),
                    Some(assignee) if is_assigned && **assignee == *request.member_id => Ok(()),
                    _ => Err(ErrorCode::REBALANCE_IN_PROGRESS),
                }
            }
        }
    }
}
