//! The cooperative sticky assignor.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kohort_wire::{
    ByteString,
    messages::{ConsumerProtocolAssignment, ConsumerProtocolSubscription},
};

use super::{
    AssignError, ConsumerPartitionAssignor, GroupMember, NO_GENERATION, PartitionCounts,
    RebalanceProtocol,
    numbered::Numbered,
    sticky::{self, Claim, Claims},
};

/// As [`Sticky`](super::Sticky), for members that keep their partitions through a rebalance
/// (KIP-429): a partition that changes hands is first given to nobody; its owner lets go of it and
/// joins again, and the rebalance that follows gives it to its new owner.
#[derive(Debug, Clone)]
pub struct CooperativeSticky {
    generation: i32,
}

impl Default for CooperativeSticky {
    fn default() -> CooperativeSticky {
        CooperativeSticky {
            generation: NO_GENERATION,
        }
    }
}

impl ConsumerPartitionAssignor for CooperativeSticky {
    fn name(&self) -> &str {
        "cooperative-sticky"
    }

    /// Eager too, so that a group can be moved over in two rolling restarts.
    fn supported_protocols(&self) -> &[RebalanceProtocol] {
        &[RebalanceProtocol::Cooperative, RebalanceProtocol::Eager]
    }

    /// The generation, for leaders that do not read it from the subscription (before KIP-792).
    fn subscription_user_data(&self, _: &[ByteString]) -> Result<Option<Bytes>, AssignError> {
        let mut user_data = BytesMut::with_capacity(4);
        user_data.put_i32(self.generation);
        Ok(Some(user_data.freeze()))
    }

    fn assign(
        &self,
        partition_counts: &PartitionCounts,
        members: &[GroupMember],
    ) -> Result<Vec<ConsumerProtocolAssignment>, AssignError> {
        let numbered = Numbered::new(partition_counts, members);
        let claims = Claims::new(&numbered, members.iter().map(|m| claim(&m.subscription)));
        let before = claims.accepted();
        let targets = sticky::assign(&numbered, members, &before);
        let assignments = targets.iter().zip(&before).enumerate();
        let assignments = assignments.map(|(member, (target, before))| {
            let waits = target
                .difference(before)
                .iter()
                .filter(|&(topic, partition)| claims.must_wait(member, topic, partition))
                .collect();
            numbered.assignment(&target.difference(&waits))
        });
        Ok(assignments.collect())
    }

    fn on_assignment(&mut self, _: &ConsumerProtocolAssignment, generation_id: i32) {
        self.generation = generation_id;
    }
}

/// What a member has. Its generation is in the subscription since version 2, else in the user data.
fn claim(subscription: &ConsumerProtocolSubscription) -> Claim {
    let mut generation = subscription.generation_id;
    if generation < 0 {
        let user_data = subscription.user_data.as_deref();
        generation = user_data
            .and_then(|mut bytes| bytes.try_get_i32().ok())
            .unwrap_or(NO_GENERATION);
    }
    Claim {
        partitions: subscription.owned_partitions.clone(),
        generation,
    }
}
