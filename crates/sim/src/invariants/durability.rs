//! No reply before what it says is durable (KAFKA-16973).
//!
//! Whoever is answered acts upon it. If the coordinator is lost a moment later, the next one knows
//! only what was durable, and must not contradict the answer. So whatever leaves is compared with a
//! shard that has loaded what is durable, and nothing else.

use std::collections::BTreeSet;

use kohort_coordinator::{
    Reply,
    inspect::{ConsumerGroupState, MembersState},
};
use kohort_group::Id;
use kohort_wire::messages::ConsumerGroupHeartbeatResponse;

use super::{Happened, Invariant};
use crate::{
    coordinator::{Durable, Origin},
    world::World,
};

#[derive(Default)]
pub(super) struct Durability {
    /// Groups that are consumer groups, or were when the last answers left: who is answered a sync
    /// there may be in a classic group by the end of the batch, which knows its target only.
    consumer_groups: BTreeSet<Id>,
}

impl Invariant for Durability {
    fn name(&self) -> &'static str {
        "no reply before what it says is durable"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        let groups = world.coordinator.live.iter();
        let consumer_groups = groups
            .filter(|(_, group)| matches!(group.members, MembersState::Consumer(_)))
            .map(|(id, _)| id.clone());
        let Happened::Answers(replies) = happened else {
            self.consumer_groups.extend(consumer_groups);
            return Ok(());
        };
        let were = std::mem::replace(&mut self.consumer_groups, consumer_groups.collect());
        if replies.is_empty() {
            return Ok(());
        }
        let durable = world.coordinator.standby.durable();
        for (index, (origin, reply)) in replies.iter().enumerate() {
            let Origin::Node { node, .. } = origin else {
                continue;
            };
            let group = &world.nodes[*node].role.group;
            let member_id = world.nodes[*node].member_id().unwrap_or_default();
            match reply {
                Reply::ConsumerGroupHeartbeat(answer) if !answer.error_code.is_error() => {
                    // A later answer of the same batch may say something newer.
                    let member = answer.member_id.as_deref().unwrap_or_default();
                    let is_last = replies[index + 1..].iter().all(|(_, later)| {
                        !matches!(later, Reply::ConsumerGroupHeartbeat(later)
                            if later.member_id.as_deref() == Some(member))
                    });
                    if is_last {
                        heartbeat(durable, group, answer)?;
                    }
                }
                Reply::SyncGroup(answer)
                    if !answer.error_code.is_error() && !were.contains(group) =>
                {
                    synced(durable, group, &member_id, &answer.assignment)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn consumer<'a>(durable: &'a Durable, group: &str) -> Option<&'a ConsumerGroupState> {
    match &durable.get(group)?.members {
        MembersState::Consumer(group) => Some(group),
        MembersState::Classic(_) => None,
    }
}

fn heartbeat(
    durable: &Durable,
    group: &str,
    answer: &ConsumerGroupHeartbeatResponse,
) -> Result<(), String> {
    let member_id = answer.member_id.as_deref().unwrap_or_default();
    let state = consumer(durable, group);
    let member = state.and_then(|state| state.members.get(member_id));
    if answer.member_epoch == -1 {
        return match member {
            Some(_) => Err(format!(
                "{member_id} was told that it has left, and has not"
            )),
            None => Ok(()),
        };
    }
    // Put out by what was decided after the answer, in the same batch.
    let Some(member) = member else {
        return Ok(());
    };
    if member.epoch != answer.member_epoch {
        return Err(format!(
            "{member_id} was told epoch {}, and has {}",
            answer.member_epoch, member.epoch
        ));
    }
    if let Some(assignment) = &answer.assignment {
        let told = assignment.topic_partitions.iter();
        let told = told.flat_map(|topic| topic.partitions.iter().map(|p| (topic.topic_id, *p)));
        let told: BTreeSet<_> = told.collect();
        if !told.iter().eq(member.assigned.keys()) {
            return Err(format!(
                "{member_id} was told that it owns {told:?}, and owns {:?}",
                member.assigned
            ));
        }
    }
    Ok(())
}

fn synced(
    durable: &Durable,
    group: &str,
    member_id: &str,
    assignment: &bytes::Bytes,
) -> Result<(), String> {
    match durable.get(group).map(|group| &group.members) {
        Some(MembersState::Classic(state)) => {
            let mut assignments = state.members.values();
            // The group may have gone on in the same batch, and without the member.
            let is_known = assignments.any(|(_, known)| known == assignment);
            if is_known || !state.members.contains_key(member_id) {
                Ok(())
            } else {
                Err(format!(
                    "a member of group {group} was told an assignment that is not durable"
                ))
            }
        }
        _ => Ok(()),
    }
}
