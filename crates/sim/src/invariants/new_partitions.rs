//! New partitions start at their first record (`docs/new-partitions.md`).
//!
//! Between the moment at which a partition comes and that at which its group notices, records are
//! written. An application that begins where its client says to, which may be the end, does not see
//! them. So a group that has begun commits the first offset of whatever is new to it before anybody
//! is given that; and of nothing else: a new group starts where its clients say.
//!
//! What is new is told here from outside, by what applications have and not by what the coordinator
//! remembers: a topic that came after one of the group's applications had been given something; and a
//! partition that was added to a topic of which a member had a partition at that time, if the group
//! still subscribes to it. That is less
//! than what is promised, and none of it may be missed. From inside it is asked that no member is
//! given what the group has not seen: there would be a moment at which it is owned and nothing is
//! committed. And what was there when a group took its first look is never new to it.
//!
//! One thing is left out: where the coordinator's clock has gone back, what is younger than the group
//! may seem to be older.

use std::collections::{BTreeMap, BTreeSet};

use kohort_coordinator::{
    Record,
    inspect::{GroupState, MembersState, Place},
};
use kohort_group::Id;
use kohort_member::Millis;
use kohort_wire::Uuid;

use super::{Happened, Invariant, Step, one_owner::is_member};
use crate::world::World;

#[derive(Default)]
pub(super) struct NewPartitions {
    /// How many partitions each topic has had so far.
    counts: BTreeMap<Uuid, usize>,
    groups: BTreeMap<Id, Known>,
    /// What there was when each group took its first look, and when that was.
    first: BTreeMap<Id, (Millis, BTreeSet<Place>)>,
}

/// What is known of a group whose applications have been given something.
struct Known {
    /// When that was, by the coordinator's clock.
    since: Millis,
    new: BTreeSet<Place>,
}

impl Invariant for NewPartitions {
    fn name(&self) -> &'static str {
        "new partitions start at their first record"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        match happened {
            Happened::Owns => self.owned(world),
            Happened::TopicsChanged => self.topics_changed(world),
            Happened::Begins {
                node,
                place,
                finds_nothing: true,
                ..
            } => return self.begins(world, *node, *place),
            _ => {}
        }
        match happened.step() {
            Some(step) => self.decided(world, &step),
            None => Ok(()),
        }
    }
}

impl NewPartitions {
    fn owned(&mut self, world: &World) {
        let since = world.coordinator.clock(world.now);
        for node in &world.nodes {
            // A process that was removed, and does not know it yet, may still have partitions when its
            // group is deleted and begins again without it.
            let counts = !node.partitions.is_empty() && is_member(node, world);
            if counts && !self.groups.contains_key(&node.role.group) {
                let new = BTreeSet::new();
                let group = node.role.group.clone();
                self.groups.insert(group, Known { since, new });
            }
        }
        if self.counts.is_empty() {
            self.topics_changed(world);
        }
    }

    fn topics_changed(&mut self, world: &World) {
        for (_, topic) in world.cluster.iter() {
            let before = self.counts.insert(topic.id, topic.ends.len());
            let came = before.unwrap_or_default()..topic.ends.len();
            let came: Vec<Place> = came.map(|p| (topic.id, p as i32)).collect();
            for (group, known) in &mut self.groups {
                let is_new = match before {
                    None => topic.created_at > known.since,
                    Some(_) => has(world, group, topic.id),
                };
                if is_new {
                    known.new.extend(&came);
                }
            }
        }
    }

    fn begins(&self, world: &World, node: usize, place: Place) -> Result<(), String> {
        let it = &world.nodes[node];
        let known = self.groups.get(&it.role.group);
        let is_new = known.is_some_and(|known| known.new.contains(&place));
        let name = world.cluster.name(place.0);
        let is_confused = name.is_some_and(|name| world.confused.contains(name));
        // It was rewound to where nothing is committed.
        let is_rewound = world.ledger.account(&it.role.group, place).era > 0;
        let is_gone = world.cluster.by_id(place.0).is_none();
        let is_on = world.profile.config.new_partitions_from_start;
        // Who has been put out, and does not know, is not waited for.
        let is_new = is_new && is_member(it, world);
        if is_new && is_on && !is_gone && !is_confused && !is_rewound {
            Err(format!(
                "{} begins {place:?}, which is new to its group, and finds nothing committed",
                it.name(node)
            ))
        } else {
            Ok(())
        }
    }

    fn decided(&mut self, world: &World, step: &Step<'_>) -> Result<(), String> {
        let live = &world.coordinator.live;
        self.groups.retain(|group, _| live.contains_key(group));
        for record in step.records {
            match record {
                // Nobody subscribes to it, and nothing is committed: it is old when somebody does again.
                Record::TopicSeen(key, None) => {
                    if let Some(known) = self.groups.get_mut(&*key.group_id) {
                        let name = |place: &Place| world.cluster.name(place.0);
                        known.new.retain(|place| name(place) != Some(&key.topic));
                    }
                }
                Record::GroupSeen(key, Some(value)) => {
                    // A group that is deleted and begins again has another time. If its deletion was
                    // not written, it goes on with the same.
                    let first = self.first.get(&*key.group_id);
                    if first.is_none_or(|(began_at, _)| *began_at != value.began_at) {
                        let seen = (value.began_at, there_are(world));
                        self.first.insert(Id::from(&*key.group_id), seen);
                    }
                }
                Record::OffsetCommit(key, Some(value)) if value.metadata.is_empty() => {
                    let place = (value.topic_id, key.partition);
                    self.started(world, &key.group, place, value.offset)?;
                }
                // Whoever had it deleted, or rewound to nowhere, does not want to begin there.
                Record::OffsetCommit(key, None) => {
                    let before = step.before.get(&*key.group);
                    let committed = before.and_then(|before| {
                        let key = (Id::from(&*key.topic), key.partition);
                        before.offsets.get(&key)
                    });
                    if let (Some(committed), Some(known)) =
                        (committed, self.groups.get_mut(&*key.group))
                    {
                        known.new.remove(&(committed.topic_id, key.partition));
                    }
                }
                _ => {}
            }
        }
        for (id, group) in live {
            given(world, id, step.before.get(id), group)?;
        }
        Ok(())
    }

    /// The coordinator has committed an offset by itself.
    fn started(&self, world: &World, group: &str, place: Place, offset: i64) -> Result<(), String> {
        if !world.profile.config.new_partitions_from_start {
            return Err(format!("{place:?} is started, and that is turned off"));
        }
        let created_at = world.cluster.by_id(place.0).map(|topic| topic.created_at);
        let is_old = self.first.get(group).is_some_and(|(began_at, places)| {
            places.contains(&place) && created_at.is_some_and(|at| at < *began_at)
        });
        match (is_old, offset) {
            (true, _) => Err(format!(
                "{place:?} of group {group} was there when the group began, and is started"
            )),
            (false, _) if offset == world.cluster.start(place.0, place.1) => Ok(()),
            (false, _) => Err(format!("{place:?} of group {group} is started at {offset}")),
        }
    }
}

/// All partitions that the coordinator knows.
fn there_are(world: &World) -> BTreeSet<Place> {
    let topics = world.coordinator.view.iter();
    topics
        .flat_map(|topic| (0..topic.partition_count).map(|p| (topic.id, p)))
        .collect()
}

/// Whether a member of the group has something of a topic, and the group subscribes to it.
fn has(world: &World, group: &Id, topic_id: Uuid) -> bool {
    let live = world.coordinator.live.get(group);
    let mut seen = live.into_iter().flat_map(|live| live.seen.topics.values());
    if !seen.any(|(id, _)| *id == topic_id) {
        return false;
    }
    let nodes = world.nodes.iter();
    let mut members = nodes.filter(|node| node.role.group == *group && node.is_alive);
    members.any(|node| {
        let mut held = node.partitions.values();
        let has = held
            .any(|held| held.topic_id == topic_id && held.reads == topic_id && !held.is_disowned);
        has && is_member(node, world)
    })
}

/// No member of a consumer group is given what the group has not seen. (What its members had while it
/// was a classic group stays with them for the moment.)
fn given(
    world: &World,
    id: &Id,
    before: Option<&GroupState>,
    group: &GroupState,
) -> Result<(), String> {
    let MembersState::Consumer(state) = &group.members else {
        return Ok(());
    };
    let had = match before.map(|before| &before.members) {
        Some(MembersState::Consumer(before)) => Some(&before.owners),
        Some(MembersState::Classic(before)) if !before.members.is_empty() => return Ok(()),
        _ => None,
    };
    for (member_id, member) in &state.members {
        for place in member.assigned.keys() {
            let Some(name) = world.cluster.name(place.0) else {
                continue;
            };
            if had.is_some_and(|had| had.contains_key(place)) {
                continue;
            }
            let seen = group.seen.topics.get(&**name);
            // What it has of a topic that is gone goes with the next target; so does what it had of
            // another topic of the name that had more partitions.
            let known = world.coordinator.view.by_id(place.0);
            let is_gone = known.is_none_or(|known| place.1 >= known.partition_count);
            let is_seen =
                seen.is_some_and(|(topic_id, count)| *topic_id == place.0 && place.1 < *count);
            if !is_seen && !is_gone {
                return Err(format!(
                    "group {id} has given {place:?} to {member_id}, and has seen {seen:?} of {name}"
                ));
            }
        }
    }
    Ok(())
}
