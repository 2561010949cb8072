//! A rewind interrupts nobody who does not own what is rewound (consumer protocol).
//!
//! A group is rewound while it runs: the rest of it goes on. Members of the consumer protocol are
//! told by their targets what to give up. So a rewind changes no target, puts nobody out when it is
//! asked for, and while one is under way nobody is asked to give up a partition that is meant for it
//! and was not named. (Members of the classic protocol rejoin; they know no other way.)

use std::collections::BTreeSet;

use kohort_coordinator::{
    Record,
    inspect::{ConsumerGroupState, GroupState, MembersState, Place},
};
use kohort_group::Id;
use kohort_wire::messages::ConsumerGroupMemberMetadataKey;

use super::{Happened, Invariant};
use crate::{coordinator::Origin, world::World};

pub(super) struct RewindInterruptsNobody;

impl Invariant for RewindInterruptsNobody {
    fn name(&self) -> &'static str {
        "a rewind interrupts nobody who does not own what is rewound"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        let Some(step) = happened.step() else {
            return Ok(());
        };
        for (id, before) in step.before {
            let Some(after) = world.coordinator.live.get(id) else {
                continue;
            };
            if before.rewind.is_none() && after.rewind.is_none() {
                continue;
            }
            let (MembersState::Consumer(was), MembersState::Consumer(is)) =
                (&before.members, &after.members)
            else {
                continue;
            };
            if before.rewind != after.rewind {
                same_targets(id, was, is)?;
            }
            if let Happened::Decided {
                origin: Origin::Administrator { .. },
                ..
            } = happened
                && let Some((member_id, _)) = was
                    .members
                    .iter()
                    .find(|(id, member)| !member.is_classic && !is.members.contains_key(*id))
            {
                return Err(format!("group {id}: {member_id} is put out"));
            }
            let mut named = named(world, before);
            named.extend(self::named(world, after));
            asked_to_give_up(world, id, (was, is), &named)?;
        }
        Ok(())
    }
}

fn same_targets(id: &Id, was: &ConsumerGroupState, is: &ConsumerGroupState) -> Result<(), String> {
    // Otherwise another target was due anyway.
    let is_at_rest = was.epoch == was.assignment_epoch
        && was.metadata_hash == is.metadata_hash
        && was.subscriptions == is.subscriptions
        && was.members.keys().eq(is.members.keys());
    if is_at_rest && was.targets != is.targets {
        Err(format!(
            "group {id} had the target {:?}, and has {:?}",
            was.targets, is.targets
        ))
    } else {
        Ok(())
    }
}

/// The partitions of the rewind that is under way.
fn named(world: &World, group: &GroupState) -> BTreeSet<Place> {
    let goals = group.rewind.iter().flat_map(|(goals, _)| goals.keys());
    let places = goals.filter_map(|(topic, partition)| {
        let known = world.coordinator.view.get(topic)?;
        Some((known.id, *partition))
    });
    places.collect()
}

fn asked_to_give_up(
    world: &World,
    id: &Id,
    (was, is): (&ConsumerGroupState, &ConsumerGroupState),
    named: &BTreeSet<Place>,
) -> Result<(), String> {
    for (member_id, member) in &is.members {
        let Some(before) = was.members.get(member_id).filter(|m| !m.is_classic) else {
            continue;
        };
        let target = is.targets.get(member_id);
        for place in member.revoking.keys() {
            let is_asked_now = before.assigned.contains_key(place);
            let is_meant = target.is_some_and(|target| target.contains(place));
            if is_asked_now
                && is_meant
                && !named.contains(place)
                && subscribes(world, is, (id, member_id), &member.profile, *place)
            {
                return Err(format!(
                    "group {id}: {member_id} has to give up {place:?}, which is meant for it, and rewound is {named:?}"
                ));
            }
        }
    }
    Ok(())
}

/// Whether the topic is there, and the member subscribes to it.
fn subscribes(
    world: &World,
    group: &ConsumerGroupState,
    (group_id, member_id): (&Id, &Id),
    profile: &bytes::Bytes,
    place: Place,
) -> bool {
    let Some(topic) = world.coordinator.view.by_id(place.0) else {
        return false;
    };
    let key = ConsumerGroupMemberMetadataKey {
        group_id: (&**group_id).into(),
        member_id: (&**member_id).into(),
    };
    let record = Record::ConsumerMemberMetadata(key, None)
        .encode()
        .ok()
        .and_then(|(key, _)| Record::decode(key, Some(profile.clone())).ok()?);
    let Some(Record::ConsumerMemberMetadata(_, Some(value))) = record else {
        return true;
    };
    let mut names = value.subscribed_topic_names.iter();
    let resolved = value
        .subscribed_topic_regex
        .as_deref()
        .and_then(|regex| group.resolved.get(regex));
    names.any(|name| **name == *topic.name)
        || resolved.is_some_and(|(topics, ..)| topics.contains(&topic.name))
}
