//! What a rewind does to a classic group.

use kohort_group::history::{Cause, Failure};
use kohort_wire::messages::JoinGroupRequest;

use super::{Rewind, Rewound};
use crate::{
    Id, Shard, Topics,
    classic::{ClassicGroup, ClassicMember, ClassicState, ClassicStep},
    consumer::{Member, embedded},
    group::Members,
    step::Step,
};

/// The strategies whose members give up everything before they rejoin. Of others that is not known,
/// and so not relied on.
const EAGER: [&str; 3] = ["range", "roundrobin", "sticky"];

impl Rewind {
    pub(super) fn contains(&self, topic: &str, partition: i32) -> bool {
        // A look-up would need a key of the map's own type.
        let mut topics = self.goals.keys().filter(|(name, _)| **name == *topic);
        topics.any(|(_, index)| *index == partition)
    }

    /// Whether a client says with its join that it owns one of the partitions.
    fn is_claimed(&self, metadata: &bytes::Bytes) -> bool {
        let subscription = embedded::read_subscription(metadata).unwrap_or_default();
        self.contains_any(&subscription.owned_partitions)
    }

    /// Whether a member has said that it owns one of them.
    fn is_claimed_by(&self, member: &ClassicMember) -> bool {
        let mut protocols = member.protocols.iter();
        protocols.any(|protocol| self.is_claimed(&protocol.metadata))
    }

    /// Whether one of them is assigned to a member.
    fn is_assigned_to(&self, member: &ClassicMember) -> bool {
        let assignment = embedded::read_assignment(&member.assignment).unwrap_or_default();
        self.contains_any(&assignment.assigned_partitions)
    }

    fn contains_any(&self, topics: &[kohort_wire::messages::TopicPartitions]) -> bool {
        topics.iter().any(|topic| {
            let mut partitions = topic.partitions.iter();
            partitions.any(|&partition| self.contains(&topic.topic, partition))
        })
    }
}

impl Rewound {
    /// Whether a client says with its join that it has owned one of the partitions since before they
    /// were rewound.
    fn is_kept(&self, metadata: &bytes::Bytes) -> bool {
        let Ok(subscription) = embedded::read_subscription(metadata) else {
            return false;
        };
        let mut owned = subscription.owned_partitions.iter();
        (0..self.generation).contains(&subscription.generation_id)
            && owned.any(|topic| {
                let mut partitions = topic.partitions.iter();
                partitions.any(|&index| self.before.contains_key(&(Id::from(&*topic.topic), index)))
            })
    }
}

impl Rewound {
    /// Whether a member of a consumer group says with its join that it owns one of the partitions
    /// that it has not been assigned.
    fn is_kept_by(&self, member: &Member, topics: &Topics, metadata: &bytes::Bytes) -> bool {
        let subscription = embedded::read_subscription(metadata).unwrap_or_default();
        subscription.owned_partitions.iter().any(|claimed| {
            let topic = topics.get(&claimed.topic);
            topic.is_some_and(|topic| {
                let mut partitions = claimed.partitions.iter();
                partitions.any(|&index| {
                    let before = self.before.get(&(topic.name.clone(), index));
                    before.is_some_and(|before| before.topic_id == topic.id)
                        && !member.current.has(topic.id, index)
                })
            })
        })
    }
}

impl ClassicGroup {
    /// The first generation whose members have come by nothing that was owned before: this one
    /// while it is being completed, or the next.
    pub(super) fn generation_without_owners(&self) -> i32 {
        match self.state {
            ClassicState::PreparingRebalance => self.generation.saturating_add(1),
            _ => self.generation,
        }
    }

    /// Members that may hold partitions of the rewind: they have said so, or were assigned some and
    /// have not joined since, when they would have said so.
    pub(super) fn holders(&self, rewind: &Rewind) -> Vec<Id> {
        self.those(|member| {
            rewind.is_claimed_by(member)
                || rewind.is_assigned_to(member) && !self.has_joined_since_assigned(member)
        })
    }

    /// Whether the join that waits was sent by a client that knew what this generation assigned to
    /// it. One that a former connection delivered late says what its client owned before that, and
    /// the generation of it (KIP-792). Clients that leave out the generation may have sent theirs at
    /// any time.
    fn has_joined_since_assigned(&self, member: &ClassicMember) -> bool {
        member.parked_join.is_some()
            && member
                .protocols
                .iter()
                .any(|protocol| claimed_in(&protocol.metadata) == Some(self.assigned_generation))
    }

    /// Members that would keep partitions of the rewind through a rebalance.
    fn keepers(&self, rewind: &Rewind) -> Vec<Id> {
        let is_eager = self
            .protocol
            .as_deref()
            .is_none_or(|name| EAGER.contains(&name));
        match is_eager {
            true => self.those(|member| rewind.is_claimed_by(member)),
            false => self.holders(rewind),
        }
    }

    fn those(&self, is_one: impl Fn(&ClassicMember) -> bool) -> Vec<Id> {
        let those = self.members().filter(|member| is_one(member));
        those.map(|member| member.id.clone()).collect()
    }
}

/// The generation in which a client came to own what its subscription says it owns, if it says so.
fn claimed_in(metadata: &bytes::Bytes) -> Option<i32> {
    let subscription = embedded::read_subscription(metadata).ok()?;
    Some(subscription.generation_id).filter(|&generation| generation >= 0)
}

impl Shard {
    /// Makes sure that no member owns the partitions once the next generation has joined.
    pub(super) fn take_back_from_classic(&mut self, group_id: &Id, step: &mut Step<'_>) {
        let Some(rewind) = self.rewind_mut(group_id).map(|rewind| rewind.clone()) else {
            return;
        };
        let Some(mut classic) = self.classic_step(group_id, step) else {
            return;
        };
        let generation = classic.group.generation;
        classic.take_back(&rewind);
        if let Some(rewind) = self.rewind_mut(group_id) {
            rewind.begun_at = Some(generation);
        }
    }

    /// Whether a join is to be refused because its client still owns what is being rewound, or owns
    /// it since before the last rewind. It loses what it has, and comes back as a new member.
    ///
    /// The latter happens if a join that a former connection delivered late had the coordinator
    /// believe that the member had let go. In a consumer group it happens if the topic was created
    /// anew, and the member, which knows it by its name, went on with the new one.
    pub(crate) fn keeps_rewound(
        &mut self,
        request: &JoinGroupRequest,
        step: &mut Step<'_>,
    ) -> bool {
        let Some(group) = self.groups.get(&*request.group_id) else {
            return false;
        };
        let (rewind, rewound) = (group.rewind.as_deref(), group.rewound.as_deref());
        let keeps = |metadata| match &group.members {
            Members::Classic(classic) => {
                let is_member = classic.member(&request.member_id).is_some();
                rewind.is_some_and(|it| it.is_claimed(metadata))
                    || is_member && rewound.is_some_and(|it| it.is_kept(metadata))
            }
            Members::Consumer(consumer) => {
                let member = consumer.member(&request.member_id).zip(rewound);
                member.is_some_and(|(member, rewound)| {
                    rewound.is_kept_by(member, &self.topics, metadata)
                })
            }
        };
        let mut protocols = request.protocols.iter();
        if !protocols.any(|protocol| keeps(&protocol.metadata)) {
            return false;
        }
        let member_id = Id::from(&*request.member_id);
        if let Some(mut classic) = self.classic_step(&request.group_id, step) {
            let member = classic.who(&member_id);
            classic.remove_member(&member_id);
            classic.member_gone(Cause::PutOutForRewind { member });
        } else if let Some(consumer) = self.consumer_step(&request.group_id, step) {
            let member = consumer.who(&member_id);
            let group_id = consumer.id.clone();
            self.fence(
                &group_id,
                &[member_id],
                Cause::PutOutForRewind { member },
                step,
            );
        }
        true
    }

    /// A coordinator that died after a rewind, and before the members of its generation had been
    /// assigned anything, left a log with the members of an earlier generation: they have to rejoin.
    pub(crate) fn classic_rewound_loaded(&mut self, group_id: &Id, step: &mut Step<'_>) {
        let Some(rewound) = self.groups.get(group_id).and_then(|g| g.rewound.as_deref()) else {
            return;
        };
        let generation = rewound.generation;
        if let Some(mut classic) = self.classic_step(group_id, step)
            && !classic.group.is_empty()
            && classic.group.generation < generation
        {
            classic.group.generation = generation;
            classic.prepare_rebalance(Cause::RestartedAfterRewind);
        }
    }
}

impl ClassicStep<'_, '_> {
    fn take_back(&mut self, rewind: &Rewind) {
        let keepers = self.group.keepers(rewind);
        self.put_out_keepers(&keepers);
        if !keepers.is_empty() && self.group.members().len() > 0 {
            self.write_members(self.group.generation);
        }
        if self.group.is(ClassicState::PreparingRebalance) {
            return self.maybe_complete_join();
        }
        self.prepare_rebalance(rewind.cause());
    }

    /// Puts out members that have had their time to rejoin, and have not. In Kafka they would stay.
    pub(super) fn put_out_overdue(&mut self, member_ids: Vec<Id>) {
        if let Some(cause) = self.put_out(member_ids, Failure::Rejoin) {
            self.event(cause);
        }
        self.maybe_complete_join();
        if self.group.is(ClassicState::PreparingRebalance) {
            self.write_members(self.group.generation);
        }
    }

    fn put_out_keepers(&mut self, member_ids: &[Id]) {
        for member_id in member_ids {
            let member = self.who(member_id);
            self.remove_member(member_id);
            self.event(Cause::PutOutForRewind { member });
        }
    }

    /// Writes who is left, as members of a generation before this one, so that a coordinator that
    /// takes over does not know the former owners any more.
    pub(super) fn write_members_before(&mut self, generation: i32) {
        if self.group.is(ClassicState::CompletingRebalance) {
            self.write_members(generation.saturating_sub(1));
        }
    }

    fn write_members(&mut self, generation: i32) {
        let now = self.step.date();
        let mut value = self
            .group
            .to_record(now, |member| member.assignment.clone());
        value.generation = generation;
        self.write(value);
    }
}
