//! A classic group becomes a consumer group: a member of the consumer protocol joins it.
//!
//! The classic members stay, with the partitions that they own. What the group was doing is over:
//! who waited for the end of a rebalance is told to rejoin.

use std::sync::Arc;

use bytes::Bytes;
use kohort_group::{
    Run, TopicPartitions,
    history::{Causes, Protocol, What},
};
use kohort_wire::{ErrorCode, messages::*};

use super::{
    embedded,
    member::{Current, MemberState, Names, Profile},
    metadata_hash::TopicHashes,
    owned::Owned,
    records,
    refusal::Refusal,
};
use crate::{
    Id, Record, Shard, Topics,
    classic::{ClassicGroup, ClassicMember, ClassicState, join_refused, sync_refused},
    step::Step,
};

/// A classic member as it enters the consumer group.
struct Converted {
    member_id: Id,
    profile: Profile,
    assigned: TopicPartitions,
    /// What it owned when it joined, and has not been assigned again: a cooperative member may not
    /// have let go of it yet, and joins again once it has.
    revoking: TopicPartitions,
}

impl Shard {
    /// Makes a classic group that has members a consumer group; or refuses to, and changes nothing.
    pub(super) fn upgrade(&mut self, group_id: &str, step: &mut Step<'_>) -> Result<(), Refusal> {
        let Some(group) = self.groups.get(group_id) else {
            return Ok(());
        };
        let Some(classic) = group.classic() else {
            return Ok(());
        };
        let refuse = |why: &str| {
            Err(Refusal::new(
                ErrorCode::GROUP_ID_NOT_FOUND,
                format!("The classic group {group_id} cannot become a consumer group: {why}."),
            ))
        };
        if !self.config.consumer_migration_policy.upgrades() {
            return refuse("group.consumer.migration.policy forbids it");
        }
        if !classic.is_consumer_type() {
            return refuse("its members are no consumers");
        }
        if classic.members().len() > self.config.consumer_max_size {
            return refuse("it has more members than group.consumer.max.size");
        }
        let members = match convert(classic, &self.topics) {
            Ok(members) => members,
            Err(why) => return refuse(why),
        };
        // No member of a consumer group is at epoch 0, and no member has seen generation 0 through.
        let epoch = classic.generation.max(1);
        let group_id = group.id.clone();

        // A leader may not have assigned yet, or before there were other partitions.
        let is_complete = classic.is(ClassicState::Stable) && shares_all(&members, &self.topics);
        // Nothing is refused from here on.
        self.send_members_to_rejoin(&group_id, step);
        let key = GroupMetadataKey {
            group: (&*group_id).into(),
        };
        self.emit(Record::GroupMetadata(key, None), step);
        for member in &members {
            self.emit(
                records::member(&group_id, &member.member_id, &member.profile),
                step,
            );
        }
        let topics = self.topics.clone();
        let group = self.consumer_group_or_new(&group_id);
        // Without the hash the first member that is heard of brings another target: from now on
        // nobody but the coordinator looks whether one is due.
        let hash = if is_complete {
            TopicHashes::new(group.subscriptions().topics(), &topics).digest()
        } else {
            0
        };
        self.emit(records::group(&group_id, epoch, hash), step);
        for member in &members {
            self.emit(
                records::target(&group_id, &member.member_id, &member.assigned),
                step,
            );
        }
        self.emit(records::target_epoch(&group_id, epoch, 0), step);
        for member in &members {
            let current = Current {
                epoch,
                previous_epoch: epoch,
                state: if member.revoking.is_empty() {
                    MemberState::Stable
                } else {
                    MemberState::UnrevokedPartitions
                },
                assigned: Owned::at(epoch, member.assigned.clone()),
                revoking: Owned::at(epoch, member.revoking.clone()),
            };
            self.emit(
                records::current(&group_id, &member.member_id, &current),
                step,
            );
        }
        if let Some(mut consumer) = self.consumer_step(&group_id, step) {
            for member in &members {
                consumer.restart_session(&member.member_id);
            }
            consumer.event(What::Converted {
                to: Protocol::Consumer,
                members: members.len(),
                epoch,
                causes: Causes::default(),
            });
        }
        Ok(())
    }

    fn send_members_to_rejoin(&mut self, group_id: &Id, step: &mut Step<'_>) {
        if let Some(mut classic) = self.classic_step(group_id, step) {
            for member_id in classic.group.member_ids() {
                let error_code = ErrorCode::REBALANCE_IN_PROGRESS;
                classic.answer_join(&member_id, join_refused(&member_id, error_code));
                classic.answer_sync(&member_id, sync_refused(error_code));
            }
        }
    }
}

fn convert(classic: &ClassicGroup, topics: &Topics) -> Result<Vec<Converted>, &'static str> {
    let mut owned = TopicPartitions::new();
    let mut converted = Vec::with_capacity(classic.members().len());
    for member in classic.members() {
        let member = convert_member(classic, member, topics)?;
        // The leader of a classic group may give a partition to two members. The first has it.
        let assigned = member.assigned.difference(&owned);
        owned = owned.union(&assigned);
        converted.push(Converted { assigned, ..member });
    }
    for member in &mut converted {
        member.revoking = member.revoking.difference(&owned);
        owned = owned.union(&member.revoking);
    }
    Ok(converted)
}

/// Whether the members have between them what there is of the topics that they subscribe to.
fn shares_all(members: &[Converted], topics: &Topics) -> bool {
    let names = members
        .iter()
        .flat_map(|member| member.profile.topics.iter());
    let topics = names.filter_map(|name| topics.get(name));
    let due = topics.map(|topic| Run::new(topic.id, 0..topic.partition_count));
    let owned = members
        .iter()
        .fold(TopicPartitions::new(), |owned, member| {
            owned.union(&member.assigned)
        });
    owned == TopicPartitions::from_runs(due)
}

fn convert_member(
    classic: &ClassicGroup,
    member: &ClassicMember,
    topics: &Topics,
) -> Result<Converted, &'static str> {
    const MALFORMED: &str = "what its members say of themselves cannot be read";
    let chosen = classic.protocol.as_deref().and_then(|name| {
        let mut protocols = member.protocols.iter();
        protocols.find(|protocol| *protocol.name == *name)
    });
    // No protocol has been chosen before the first rebalance has ended.
    let protocol = chosen
        .or_else(|| member.protocols.first())
        .ok_or(MALFORMED)?;
    let subscription = embedded::read_subscription(&protocol.metadata).map_err(|_| MALFORMED)?;
    let assignment = embedded::read_assignment(&member.assignment).map_err(|_| MALFORMED)?;
    if assignment
        .user_data
        .as_ref()
        .is_some_and(|data| !data.is_empty())
    {
        return Err("its assignor keeps data of its own, which would be lost");
    }
    let supported = member.protocols.iter().map(|protocol| ClassicProtocol {
        name: (&*protocol.name).into(),
        metadata: Bytes::clone(&protocol.metadata),
    });
    let profile = Profile {
        instance_id: member.instance_id.clone(),
        rack_id: embedded::rack(&subscription).map(|rack| Id::from(&**rack)),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        topics: names(&subscription),
        regex: None,
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        server_assignor: None,
        classic: Some(Box::new(ClassicMemberMetadata {
            session_timeout_ms: member.session_timeout_ms,
            supported_protocols: supported.collect(),
        })),
    };
    let assigned = embedded::to_ids(&assignment.assigned_partitions, topics);
    let owned = embedded::to_ids(&subscription.owned_partitions, topics);
    Ok(Converted {
        member_id: member.id.clone(),
        profile,
        assigned: records::from_topics(&assigned),
        revoking: records::from_topics(&owned),
    })
}

fn names(subscription: &ConsumerProtocolSubscription) -> Names {
    let names = subscription.topics.iter().map(|topic| Id::from(&**topic));
    let mut names: Vec<Id> = names.collect();
    names.sort_unstable();
    names.dedup();
    Arc::from(names)
}
