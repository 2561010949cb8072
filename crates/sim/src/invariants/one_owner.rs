//! No partition is owned by two members at once (KAFKA-16147, KAFKA-19974; KIP-848).
//!
//! Two applications that process one partition undo each other's work. What counts is what the
//! members themselves believe: what their applications have been given and have not let go of. A
//! belief counts for as long as the coordinator has the member, and has not begun a classic
//! generation without it (static members are kept through those). One that has been put out (its
//! session ended, it did not revoke in time, another took its instance id, an administrator removed
//! it) cannot know before its next heartbeat: for so long the protocol promises nothing but that its
//! commits are refused (see `commit_by_owner`). Neither does a belief count that the member itself
//! has taken back by a request that had been under way on a connection that it gave up, and that
//! came late: the coordinator has to take it at its word.
//!
//! A partition of a topic that was deleted and created again is another partition. A classic member
//! knows topics by name alone; what it was given of the old one counts for the old one.

use std::collections::BTreeMap;

use kohort_coordinator::inspect::{MembersState, Place};

use super::{Happened, Invariant};
use crate::{coordinator::Durable, node::Node, world::World};

pub(super) struct OneOwner;

impl Invariant for OneOwner {
    fn name(&self) -> &'static str {
        "no partition is owned by two members"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        match happened {
            Happened::Owns | Happened::Decided { .. } | Happened::Loaded { .. } => {}
            _ => return Ok(()),
        }
        believed(world)?;
        decided(&world.coordinator.live)
    }
}

/// By what the members believe.
fn believed(world: &World) -> Result<(), String> {
    let mut owners: BTreeMap<(&str, Place), usize> = BTreeMap::new();
    for (id, node) in world.nodes.iter().enumerate() {
        if !node.is_alive || node.partitions.is_empty() || !is_member(node, world) {
            continue;
        }
        for ((topic, partition), held) in &node.partitions {
            // Of a topic that was gone before anybody could tell which it was.
            if held.is_disowned || held.topic_id.is_zero() {
                continue;
            }
            let place = (held.topic_id, *partition);
            if let Some(other) = owners.insert((&*node.role.group, place), id) {
                return Err(format!(
                    "{topic}-{partition} of group {} is with {} and {}",
                    node.role.group,
                    world.nodes[other].name(other),
                    node.name(id)
                ));
            }
        }
    }
    Ok(())
}

/// Whether the coordinator has the member. What it has decided and not written counts as well: it
/// does not take that back unless it is lost, and then nobody has heard of it.
pub(super) fn is_member(node: &Node, world: &World) -> bool {
    let Some(member_id) = node.member_id() else {
        return false;
    };
    let Some(group) = world.coordinator.live.get(&node.role.group) else {
        return false;
    };
    match &group.members {
        MembersState::Consumer(group) => {
            let member = group.members.get(&*member_id);
            member.is_some_and(|member| !member.is_classic || member.epoch == node.admitted)
        }
        MembersState::Classic(group) => {
            group.members.contains_key(&*member_id) && group.generation == node.admitted
        }
    }
}

/// By what the coordinator has decided.
fn decided(live: &Durable) -> Result<(), String> {
    for (id, group) in live {
        let MembersState::Consumer(group) = &group.members else {
            continue;
        };
        let mut owners = BTreeMap::new();
        for (member_id, member) in &group.members {
            for place in member.assigned.keys().chain(member.revoking.keys()) {
                if let Some(other) = owners.insert(*place, member_id) {
                    return Err(format!(
                        "the coordinator has given {place:?} of group {id} to {other} and {member_id}"
                    ));
                }
                if group.owners.get(place) != Some(member_id) {
                    return Err(format!(
                        "{place:?} of group {id} is owned by {member_id}, and held to be owned by {:?}",
                        group.owners.get(place)
                    ));
                }
            }
        }
        if let Some(place) = group.owners.keys().find(|p| !owners.contains_key(*p)) {
            return Err(format!(
                "{place:?} of group {id} is held to be owned, and nobody owns it"
            ));
        }
    }
    Ok(())
}
