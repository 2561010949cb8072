//! The sticky assignor, and what the cooperative one shares with it.

mod claims;
mod spread;
mod user_data;

use bytes::Bytes;
use kohort_wire::{
    ByteString,
    messages::{ConsumerProtocolAssignment, TopicPartitions as NamedPartitions},
};

pub(super) use claims::{Claim, Claims};

use super::{
    AssignError, ConsumerPartitionAssignor, GroupMember, NO_GENERATION, PartitionCounts,
    numbered::Numbered,
};
use crate::{
    TopicPartitions,
    assignor::{subscriptions::Topic, uniform},
};

/// As even as the subscriptions allow, then with as little movement as possible (KIP-54, KIP-341).
///
/// Its members give up everything before they join, so what each has had travels in its user data.
#[derive(Debug, Clone, Default)]
pub struct Sticky {
    /// This member's last assignment, and its generation.
    last: Option<(Vec<NamedPartitions>, i32)>,
}

impl ConsumerPartitionAssignor for Sticky {
    fn name(&self) -> &str {
        "sticky"
    }

    fn subscription_user_data(&self, _: &[ByteString]) -> Result<Option<Bytes>, AssignError> {
        let Some((previous_assignment, generation)) = &self.last else {
            return Ok(None);
        };
        let user_data = user_data::write(previous_assignment, *generation)?;
        Ok(Some(user_data))
    }

    fn assign(
        &self,
        partition_counts: &PartitionCounts,
        members: &[GroupMember],
    ) -> Result<Vec<ConsumerProtocolAssignment>, AssignError> {
        let numbered = Numbered::new(partition_counts, members);
        let claims = Claims::new(
            &numbered,
            members
                .iter()
                .map(|member| user_data::read(member.subscription.user_data.as_ref())),
        );
        let targets = assign(&numbered, members, &claims.accepted());
        Ok(targets.iter().map(|t| numbered.assignment(t)).collect())
    }

    fn on_assignment(&mut self, assignment: &ConsumerProtocolAssignment, generation_id: i32) {
        self.last = Some((assignment.assigned_partitions.clone(), generation_id));
    }
}

/// What each member is to have, when it has had `before`.
pub(super) fn assign(
    numbered: &Numbered<'_>,
    members: &[GroupMember],
    before: &[TopicPartitions],
) -> Vec<TopicPartitions> {
    let group = numbered.members(members, before);
    let subscriptions = numbered.subscriptions(&group);
    let mut targets = vec![TopicPartitions::new(); members.len()];
    for part in uniform::parts(&subscriptions) {
        match part[..] {
            [class] => {
                let class = &subscriptions.classes[class];
                let topics: Vec<Topic> = class
                    .topics
                    .iter()
                    .map(|&topic| subscriptions.topics[topic as usize])
                    .collect();
                spread::assign(&group, &class.members, &topics, &mut targets);
            }
            _ => uniform::overlapping::assign(&group, &subscriptions, &part, &mut targets),
        }
    }
    targets
}
