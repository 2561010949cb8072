//! A heartbeat is taken at the member's epoch, or at the one before if the answer was lost.
//!
//! A member that is told a new epoch, and does not hear of it, says the one before once more. It has
//! not let go of anything for it, so it is answered again, if what it says it owns is still its own.
//! Fenced, it would lose everything for a message that the network has lost. At any other epoch it is
//! somebody who was put out, or was restored from long ago, and must not be taken for the member.
//!
//! Which epoch was the one before is noted here from outside: what the coordinator remembers of it is
//! what may be wrong.

use std::collections::BTreeMap;

use kohort_coordinator::{
    Reply, Request,
    inspect::{ConsumerMemberState, MembersState},
};
use kohort_group::Id;
use kohort_wire::{
    ErrorCode,
    messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse},
};

use super::{Happened, Invariant};
use crate::{
    coordinator::{Durable, Origin},
    world::World,
};

#[derive(Default)]
pub(super) struct LostAnswers {
    /// By group and member: its epoch, and the one before.
    epochs: BTreeMap<(Id, Id), (i32, i32)>,
}

impl Invariant for LostAnswers {
    fn name(&self) -> &'static str {
        "a heartbeat is taken at the member's epoch, or the one before if its answer was lost"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        if let Happened::Decided {
            origin,
            request: Request::ConsumerGroupHeartbeat { request, .. },
            before,
            reply: Some(Reply::ConsumerGroupHeartbeat(answer)),
            ..
        } = happened
        {
            self.heartbeat(*origin, request, before, answer)?;
        }
        if let Happened::Loaded { before, .. } = happened {
            // What was decided and not written has never been.
            self.epochs.clear();
            self.note(before);
        }
        if happened.step().is_some() {
            self.note(&world.coordinator.live);
        }
        Ok(())
    }
}

impl LostAnswers {
    fn heartbeat(
        &self,
        origin: Origin,
        request: &ConsumerGroupHeartbeatRequest,
        before: &Durable,
        answer: &ConsumerGroupHeartbeatResponse,
    ) -> Result<(), String> {
        let group = Id::from(&*request.group_id);
        let member_id = Id::from(&*request.member_id);
        let epoch = request.member_epoch;
        let Some(member) = member(before, &group, &member_id) else {
            return Ok(());
        };
        if epoch <= 0 {
            return Ok(());
        }
        let known = self.epochs.get(&(group, member_id));
        let (present, previous) = known.copied().unwrap_or((member.epoch, -1));
        let is_lost = epoch == previous && epoch < present && owns_only(request, member);
        let is_fenced = answer.error_code == ErrorCode::FENCED_MEMBER_EPOCH;
        // What comes late, from a connection that was given up, may be of a member before it.
        let is_late = matches!(origin, Origin::Node { is_ghost: true, .. });
        let words = format!(
            "{} is at epoch {present}, was at {previous} before, and says {epoch}",
            request.member_id
        );
        match epoch == present || is_lost {
            true if is_fenced && !is_late => Err(format!("{words}: it is fenced")),
            false if !answer.error_code.is_error() => Err(format!("{words}: it is taken")),
            _ => Ok(()),
        }
    }

    fn note(&mut self, live: &Durable) {
        let known = std::mem::take(&mut self.epochs);
        for (group, state) in live {
            let MembersState::Consumer(state) = &state.members else {
                continue;
            };
            for (id, member) in &state.members {
                let key = (group.clone(), id.clone());
                let epochs = match known.get(&key) {
                    None => (member.epoch, member.previous_epoch),
                    Some((epoch, previous)) if *epoch == member.epoch => (*epoch, *previous),
                    Some((epoch, _)) => (member.epoch, *epoch),
                };
                self.epochs.insert(key, epochs);
            }
        }
    }
}

fn member<'a>(live: &'a Durable, group: &Id, member_id: &Id) -> Option<&'a ConsumerMemberState> {
    match &live.get(group)?.members {
        MembersState::Consumer(state) => state.members.get(member_id),
        MembersState::Classic(_) => None,
    }
}

/// Whether all that the member says it owns is its own.
fn owns_only(request: &ConsumerGroupHeartbeatRequest, member: &ConsumerMemberState) -> bool {
    request.topic_partitions.as_ref().is_some_and(|topics| {
        topics.iter().all(|topic| {
            let mut partitions = topic.partitions.iter();
            partitions.all(|p| member.assigned.contains_key(&(topic.topic_id, *p)))
        })
    })
}
