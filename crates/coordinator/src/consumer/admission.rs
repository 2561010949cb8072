//! Which member a heartbeat comes from, and whether it is accepted or fenced.

use kohort_wire::{ErrorCode, messages::ConsumerGroupHeartbeatRequest};

use super::{
    heartbeat::refuse_if_full,
    member::{LEAVE_STATIC_EPOCH, Member, MemberState},
    reconcile::owns_only,
    refusal::Refusal,
    step::ConsumerStep,
};
use crate::Id;

/// The member that a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Admission {
    /// A member.
    Known(Id),
    /// A new member.
    New(Id),
    /// A member that replaces a static member.
    Replaces { old: Id, new: Id },
}

impl ConsumerStep<'_, '_> {
    pub(super) fn admit(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
    ) -> Result<Admission, Refusal> {
        let member_id = &*request.member_id;
        let instance_id = request.instance_id.as_deref();
        let is_known = self.member(member_id).is_some()
            || instance_id.is_some_and(|id| self.group.static_member(id).is_some());
        refuse_if_full(self.group.len(), is_known, self.config.consumer_max_size)?;

        let holder = instance_id.and_then(|id| self.group.static_member(id));
        let member = match (instance_id, holder) {
            _ if request.member_epoch == 0 => {
                return self.admit_joining(member_id, instance_id, request);
            }
            (None, _) => self
                .member(member_id)
                .ok_or_else(|| Refusal::unknown_member(member_id, self.id))?,
            (Some(instance_id), None) => return Err(unknown_instance(instance_id)),
            (Some(instance_id), Some(holder)) => {
                refuse_fenced_instance(holder, member_id, instance_id)?;
                holder
            }
        };
        refuse_other_epoch(member, request)?;
        refuse_unknown_state(member, request)?;
        Ok(Admission::Known(member.id.clone()))
    }

    fn admit_joining(
        &mut self,
        member_id: &str,
        instance_id: Option<&str>,
        request: &ConsumerGroupHeartbeatRequest,
    ) -> Result<Admission, Refusal> {
        if let Some(holder) = instance_id.and_then(|id| self.group.static_member(id)) {
            // One that speaks the classic protocol is replaced at once (KAFKA-17228).
            let is_released = holder.is_classic() || holder.current.epoch == LEAVE_STATIC_EPOCH;
            if is_released {
                let old = holder.id.clone();
                let new = self.group.intern(member_id);
                return Ok(Admission::Replaces { old, new });
            }
            // The same incarnation comes back after it was fenced: Kafka refuses it for as long as
            // its session lasts, although no other member can have its member id.
            if *holder.id != *member_id {
                return Err(Refusal::new(
                    ErrorCode::UNRELEASED_INSTANCE_ID,
                    format!(
                        "Instance {} is in use by member {}.",
                        instance_id.unwrap_or_default(),
                        holder.id
                    ),
                ));
            }
        }
        match self.member(member_id) {
            Some(member) => {
                refuse_unknown_state(member, request)?;
                Ok(Admission::Known(member.id.clone()))
            }
            None => Ok(Admission::New(self.group.intern(member_id))),
        }
    }
}

pub(super) fn unknown_instance(instance_id: &str) -> Refusal {
    Refusal::new(
        ErrorCode::UNKNOWN_MEMBER_ID,
        format!("No member has the instance id {instance_id}."),
    )
}

pub(super) fn refuse_fenced_instance(
    holder: &Member,
    member_id: &str,
    instance_id: &str,
) -> Result<(), Refusal> {
    if *holder.id == *member_id {
        Ok(())
    } else {
        Err(Refusal::new(
            ErrorCode::FENCED_INSTANCE_ID,
            format!(
                "Instance {instance_id} belongs to member {} now.",
                holder.id
            ),
        ))
    }
}

/// A member whose answer was lost comes with the epoch before its present one. It has learned
/// nothing of what it was given since, so what it owns must still be its own.
fn refuse_other_epoch(
    member: &Member,
    request: &ConsumerGroupHeartbeatRequest,
) -> Result<(), Refusal> {
    let (received, current) = (request.member_epoch, &member.current);
    let has_lost_answer = received == current.previous_epoch
        && received < current.epoch
        && request
            .topic_partitions
            .as_deref()
            .is_some_and(|owned| owns_only(owned, current.assigned.all()));
    if received == current.epoch || has_lost_answer {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::FENCED_MEMBER_EPOCH,
        format!(
            "The member is at epoch {}, not {received}: it has to give up its partitions and rejoin.",
            current.epoch
        ),
    ))
}

/// A newer coordinator has left the member in a state that this one does not know: it starts again.
fn refuse_unknown_state(
    member: &Member,
    request: &ConsumerGroupHeartbeatRequest,
) -> Result<(), Refusal> {
    let owns_nothing = request
        .topic_partitions
        .as_ref()
        .is_some_and(|owned| owned.is_empty());
    if member.current.state == MemberState::Unknown && !owns_nothing {
        Err(Refusal::new(
            ErrorCode::FENCED_MEMBER_EPOCH,
            "The member's state is unknown: it has to give up its partitions and rejoin.",
        ))
    } else {
        Ok(())
    }
}
