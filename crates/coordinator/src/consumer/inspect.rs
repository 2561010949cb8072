//! What a consumer group holds, laid open.

use std::collections::BTreeMap;

use super::{ConsumerGroup, member::Member, owned::Owned, records};
use crate::{
    Id,
    inspect::{ConsumerGroupState, ConsumerMemberState, Place, places, value},
};

pub(crate) fn durable(group: &ConsumerGroup, group_id: &Id) -> ConsumerGroupState {
    let members = group.sorted_members().into_iter();
    let targets = group.all_targets().into_iter();
    let resolved = group.all_resolved().map(|(regex, resolved)| {
        let topics = resolved.topics.to_vec();
        (regex.clone(), (topics, resolved.version, resolved.at))
    });
    let owners = group.owners().all();
    ConsumerGroupState {
        epoch: group.epoch,
        metadata_hash: group.metadata_hash,
        assignment_epoch: group.assignment_epoch,
        assignment_timestamp: group.assignment_timestamp,
        has_partition_metadata: group.has_partition_metadata,
        members: members
            .map(|member| (member.id.clone(), durable_member(member, group_id)))
            .collect(),
        targets: targets.map(|(id, target)| (id, places(&target))).collect(),
        instances: group
            .all_instances()
            .map(|(instance, id)| (instance.clone(), id.clone()))
            .collect(),
        resolved: resolved.collect(),
        owners: owners
            .map(|(topic_id, partition, owner)| ((topic_id, partition), owner.clone()))
            .collect(),
        subscriptions: group.subscriptions().inspect(),
    }
}

fn durable_member(member: &Member, group_id: &Id) -> ConsumerMemberState {
    let Member {
        id,
        profile,
        current,
        ..
    } = member;
    ConsumerMemberState {
        instance_id: profile.instance_id.clone(),
        is_classic: member.is_classic(),
        profile: value(&records::member(group_id, id, profile)),
        epoch: current.epoch,
        previous_epoch: current.previous_epoch,
        state: current.state.value(),
        assigned: owned(&current.assigned),
        revoking: owned(&current.revoking),
    }
}

fn owned(owned: &Owned) -> BTreeMap<Place, i32> {
    owned
        .iter()
        .map(|(topic_id, partition, epoch)| ((topic_id, partition), epoch))
        .collect()
}
