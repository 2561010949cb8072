//! The round-robin assignor.

use kohort_wire::{Uuid, messages::ConsumerProtocolAssignment};

use super::{
    AssignError, ConsumerPartitionAssignor, GroupMember, PartitionCounts,
    numbered::{Numbered, in_order},
};
use crate::{
    TopicPartitions,
    topic_partitions::{Run, append},
};

/// All partitions, by topic and number, to the members in turn, in order of instance id or member
/// id; members that do not subscribe to a topic are passed over.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundRobin;

impl ConsumerPartitionAssignor for RoundRobin {
    fn name(&self) -> &str {
        "roundrobin"
    }

    fn assign(
        &self,
        partition_counts: &PartitionCounts,
        members: &[GroupMember],
    ) -> Result<Vec<ConsumerProtocolAssignment>, AssignError> {
        let numbered = Numbered::new(partition_counts, members);
        let order = in_order(members);
        // The places in the order of each topic's subscribers.
        let mut subscribers = vec![Vec::new(); numbered.counts().len()];
        for (place, &member) in order.iter().enumerate() {
            for topic in numbered.subscribed(member).as_slice() {
                subscribers[topic.0 as usize].push(place);
            }
        }

        let mut runs = vec![Vec::new(); members.len()];
        let mut next = 0;
        for (topic, (&count, subscribers)) in numbered.counts().iter().zip(&subscribers).enumerate()
        {
            let first = subscribers.partition_point(|&place| place < next);
            let turns = subscribers.iter().cycle().skip(first % subscribers.len());
            for (partition, &place) in (0..count).zip(turns) {
                let run = Run::new(Uuid(topic as u128), partition..partition + 1);
                append(&mut runs[order[place]], run);
                next = place + 1;
            }
        }
        let assignment = |runs: Vec<Run>| numbered.assignment(&TopicPartitions::from_joined(&runs));
        Ok(runs.into_iter().map(assignment).collect())
    }
}
