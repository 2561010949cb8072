//! Epochs and generations never go back.
//!
//! Everything that is fenced is fenced by them: a member, a commit or an assignment from before is
//! known by its smaller number. Looked at is what is durable; what a coordinator had only decided
//! may be lost with it, and then nobody has heard of it (a classic generation that no leader has
//! assigned yet is not durable either, in Kafka too).

use std::collections::{BTreeMap, BTreeSet};

use kohort_coordinator::{
    Reply,
    inspect::{ConsumerGroupState, MembersState},
};
use kohort_group::Id;

use super::{Happened, Invariant};
use crate::{
    coordinator::{Durable, Origin},
    world::World,
};

#[derive(Default)]
pub(super) struct Epochs {
    groups: BTreeMap<Id, Seen>,
    /// Groups that have come to an end since: one batch may hold that, and all that became of them
    /// after it.
    ended: BTreeSet<Id>,
    /// By node and life: the last member epoch that it was answered with.
    answered: BTreeMap<(usize, u64), i32>,
}

enum Seen {
    Consumer {
        epoch: i32,
        assignment_epoch: i32,
        members: BTreeMap<Id, i32>,
    },
    /// Of one with members.
    Classic(i32),
}

impl Invariant for Epochs {
    fn name(&self) -> &'static str {
        "epochs never go back"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        let live = &world.coordinator.live;
        let replies = match happened {
            Happened::Decided { before, .. } => {
                self.ended.extend(ended(before, live));
                self.ended.extend(without_members(&self.groups, live));
                return Ok(());
            }
            Happened::Acted { .. } => {
                self.ended.extend(without_members(&self.groups, live));
                return Ok(());
            }
            Happened::Answers(replies) => replies,
            _ => return Ok(()),
        };
        let durable = world.coordinator.standby.durable();
        // One that was lost with its coordinator has not ended; it is looked at from here on.
        let ended = std::mem::take(&mut self.ended);
        self.groups.retain(|id, _| !ended.contains(id));
        self.answered
            .retain(|(node, _), _| !ended.contains(&world.nodes[*node].role.group));
        self.groups.retain(|id, _| durable.contains_key(id));
        for (id, group) in durable {
            let before = self.groups.remove(id);
            let seen = match &group.members {
                MembersState::Consumer(group) => consumer(id, before, group)?,
                MembersState::Classic(group) => {
                    let generation = group.generation;
                    if let Some(Seen::Classic(before)) = before
                        && generation < before
                        && generation != 0
                    {
                        return Err(format!(
                            "the generation of group {id} goes from {before} to {generation}"
                        ));
                    }
                    if group.state == "Empty" {
                        // Without members nobody is left who could be mistaken.
                        continue;
                    } else {
                        Seen::Classic(generation)
                    }
                }
            };
            self.groups.insert(id.clone(), seen);
        }
        for (origin, reply) in *replies {
            let group = match origin {
                Origin::Node { node, .. } => &world.nodes[*node].role.group,
                _ => continue,
            };
            // It may have been given before the group came to an end, in the same batch, or after.
            if !ended.contains(group) {
                self.answer(*origin, reply)?;
            }
        }
        Ok(())
    }
}

impl Epochs {
    /// What one process is told, as long as it is not sent away.
    fn answer(&mut self, origin: Origin, reply: &Reply) -> Result<(), String> {
        let (
            Origin::Node {
                node,
                life,
                is_ghost: false,
                ..
            },
            Reply::ConsumerGroupHeartbeat(answer),
        ) = (origin, reply)
        else {
            return Ok(());
        };
        let epoch = if answer.error_code.is_error() || answer.member_epoch < 0 {
            0
        } else {
            answer.member_epoch
        };
        let before = self.answered.insert((node, life), epoch).unwrap_or(0);
        if epoch != 0 && epoch < before {
            Err(format!(
                "node {node}.{life} is told epoch {epoch} after {before}"
            ))
        } else {
            Ok(())
        }
    }
}

/// The groups that are gone, or classic ones without members: nobody is left who could be mistaken.
fn without_members(seen: &BTreeMap<Id, Seen>, now: &Durable) -> impl Iterator<Item = Id> {
    let ids = seen.keys().filter(|id| {
        now.get(*id).is_none_or(|group| match &group.members {
            MembersState::Classic(group) => group.members.is_empty(),
            MembersState::Consumer(_) => false,
        })
    });
    ids.cloned()
}

/// The consumer groups without members that are none any more.
fn ended(before: &Durable, now: &Durable) -> impl Iterator<Item = Id> {
    let groups = before.iter().filter(|(id, group)| {
        let is_empty = match &group.members {
            MembersState::Consumer(group) => group.members.is_empty(),
            MembersState::Classic(_) => false,
        };
        let now = now.get(*id).map(|group| &group.members);
        is_empty && !matches!(now, Some(MembersState::Consumer(_)))
    });
    groups.map(|(id, _)| id.clone())
}

fn consumer(id: &Id, before: Option<Seen>, group: &ConsumerGroupState) -> Result<Seen, String> {
    let members = group.members.iter();
    let members: BTreeMap<Id, i32> = members.map(|(id, m)| (id.clone(), m.epoch)).collect();
    match before {
        Some(Seen::Consumer {
            epoch,
            assignment_epoch,
            members: before,
        }) => {
            if group.epoch < epoch || group.assignment_epoch < assignment_epoch {
                return Err(format!(
                    "group {id} goes from epoch {epoch} (target {assignment_epoch}) to {} (target {})",
                    group.epoch, group.assignment_epoch
                ));
            }
            for (member_id, &epoch) in &members {
                // One that has left for a while is at −2; one that takes its place begins at 0.
                if epoch > 0 && before.get(member_id).is_some_and(|&before| epoch < before) {
                    return Err(format!("member {member_id} goes back to epoch {epoch}"));
                }
            }
        }
        // It takes over the generation.
        Some(Seen::Classic(generation)) if group.epoch < generation => {
            return Err(format!(
                "group {id} has generation {generation} and then epoch {}",
                group.epoch
            ));
        }
        _ => {}
    }
    if group.assignment_epoch > group.epoch {
        return Err(format!(
            "the target of group {id} is of epoch {}, and the group at {}",
            group.assignment_epoch, group.epoch
        ));
    }
    if let Some((member_id, epoch)) = members.iter().find(|(_, e)| **e > group.assignment_epoch) {
        return Err(format!(
            "member {member_id} is at epoch {epoch}, ahead of the target of {}",
            group.assignment_epoch
        ));
    }
    Ok(Seen::Consumer {
        epoch: group.epoch,
        assignment_epoch: group.assignment_epoch,
        members,
    })
}
