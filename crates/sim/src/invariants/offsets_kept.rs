//! A committed offset goes only when it may.
//!
//! Where it is gone, whoever begins there begins where its client says: reads everything again or,
//! with `latest`, nothing of what came since. So it goes with its topic or its group; when it is
//! rewound to where there is none; by an administrator's OffsetDelete; and when it has been there for
//! the retention of offsets, or its group has been without members for so long. The last two never
//! take it from a member that reads the partition. And only a group without members goes.

use std::collections::BTreeMap;

use kohort_coordinator::{
    Request,
    inspect::{GroupState, MembersState, OffsetState},
};
use kohort_group::Id;
use kohort_member::Millis;
use kohort_wire::{
    codec::{Decoder, Message},
    messages::OffsetCommitValue,
};

use super::{Happened, Invariant, Step, one_owner::is_member};
use crate::{coordinator::Durable, eras::rewound, world::World};

#[derive(Default)]
pub(super) struct OffsetsKept {
    /// Since when groups have had no members, by the coordinator's clock.
    empty_since: BTreeMap<Id, Millis>,
}

/// Where an offset is committed.
struct Place<'a> {
    group: &'a Id,
    topic: &'a str,
    partition: i32,
}

impl Invariant for OffsetsKept {
    fn name(&self) -> &'static str {
        "a committed offset goes only when it may"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        let Some(step) = happened.step() else {
            return Ok(());
        };
        for (id, before) in step.before {
            let after = world.coordinator.live.get(id);
            // By itself, the shard may have put out the last member before, in the same step.
            let is_asked = matches!(happened, Happened::Decided { .. });
            if is_asked && after.is_none() && !is_empty(before) {
                return Err(format!("group {id} has members, and is gone"));
            }
            for ((topic, partition), committed) in &before.offsets {
                let key = (topic.clone(), *partition);
                if after.is_some_and(|after| !after.offsets.contains_key(&key)) {
                    let (group, topic, partition) = (id, &**topic, *partition);
                    let place = Place {
                        group,
                        topic,
                        partition,
                    };
                    self.deleted(world, happened, &step, &place, committed)?;
                }
            }
        }
        self.note(world.coordinator.clock(world.now), &world.coordinator.live);
        Ok(())
    }
}

impl OffsetsKept {
    fn note(&mut self, now: Millis, live: &Durable) {
        self.empty_since
            .retain(|id, _| live.get(id).is_some_and(is_empty));
        for (id, _) in live.iter().filter(|(_, group)| is_empty(group)) {
            self.empty_since.entry(id.clone()).or_insert(now);
        }
    }

    fn deleted(
        &self,
        world: &World,
        happened: &Happened<'_>,
        step: &Step<'_>,
        place: &Place<'_>,
        committed: &OffsetState,
    ) -> Result<(), String> {
        let view = &world.coordinator.view;
        let is_there = view
            .get(place.topic)
            .is_some_and(|known| known.id == committed.topic_id);
        let is_rewound = step.records.iter().flat_map(rewound).any(|rewound| {
            rewound.group == *place.group
                && rewound.place == (committed.topic_id, place.partition)
                && rewound.to < 0
        });
        if !is_there || is_rewound {
            return Ok(());
        }
        let words = format!(
            "the offset of {}-{} of group {}",
            place.topic, place.partition, place.group
        );
        if !is_asked_for(happened) && !self.has_expired(world, place.group, committed) {
            return Err(format!("{words} is deleted"));
        }
        match reader(world, place, committed) {
            Some(name) => Err(format!("{words} is deleted, and {name} reads it")),
            None => Ok(()),
        }
    }

    fn has_expired(&self, world: &World, group: &Id, committed: &OffsetState) -> bool {
        let now = world.coordinator.clock(world.now);
        let since = [
            committed_at(committed),
            self.empty_since.get(group).copied(),
        ];
        let retention_ms = world.profile.config.offsets_retention_ms;
        let mut since = since.into_iter().flatten();
        since.any(|since| now - since >= retention_ms)
    }
}

fn is_asked_for(happened: &Happened<'_>) -> bool {
    matches!(
        happened,
        Happened::Decided {
            request: Request::OffsetDelete { .. },
            ..
        }
    )
}

fn committed_at(committed: &OffsetState) -> Option<Millis> {
    let mut value = Decoder::new(committed.record.clone());
    let version = value.i16().ok()?;
    let value = OffsetCommitValue::decode(&mut value, version).ok()?;
    Some(value.commit_timestamp)
}

/// A member that reads the partition, and subscribes to its topic. One that has told the coordinator
/// that it no longer does so cannot take that back before the next time it is heard of.
fn reader(world: &World, place: &Place<'_>, committed: &OffsetState) -> Option<String> {
    let mut nodes = world.nodes.iter().enumerate();
    let reads = nodes.find(|(_, node)| {
        let key = (place.topic.into(), place.partition);
        let held = node.partitions.get(&key);
        node.role.group == *place.group
            && node.is_alive
            && is_member(node, world)
            && node.subscribes_to(place.topic)
            && node.has_told_of(place.topic)
            && held.is_some_and(|held| {
                held.reads == committed.topic_id && !held.is_revoking && !held.is_disowned
            })
    });
    reads.map(|(id, node)| node.name(id))
}

fn is_empty(group: &GroupState) -> bool {
    match &group.members {
        MembersState::Classic(state) => state.state == "Empty",
        MembersState::Consumer(state) => state.members.is_empty(),
    }
}
