//! How members go: they leave, or they are fenced.

use kohort_group::history::{Cause, Causes, What};
use kohort_wire::messages::*;

use super::{
    admission::{refuse_fenced_instance, unknown_instance},
    member::{Current, LEAVE_STATIC_EPOCH, Member},
    owned::Owned,
    records,
    refusal::Refusal,
    step::ConsumerStep,
};
use crate::{Id, Shard, step::Step};

impl Shard {
    /// A heartbeat with epoch -1 or -2.
    pub(super) fn leave_consumer_group(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
        step: &mut Step<'_>,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let group_id = &*request.group_id;
        let Some(mut consumer) = self.consumer_step(group_id, step) else {
            return Err(Refusal::new(
                kohort_wire::ErrorCode::GROUP_ID_NOT_FOUND,
                format!("There is no consumer group {group_id}."),
            ));
        };
        let member = consumer.leaving_member(&request.member_id, request.instance_id.as_deref())?;
        let member_id = member.id.clone();
        if request.member_epoch == LEAVE_STATIC_EPOCH {
            consumer.leave_for_a_while(&member_id);
        } else {
            let group_id = consumer.id.clone();
            let cause = Cause::MemberLeft {
                member: consumer.who(&member_id),
                reason: None,
            };
            self.fence(&group_id, &[member_id], cause, step);
        }
        Ok(ConsumerGroupHeartbeatResponse {
            member_id: Some(request.member_id.clone()),
            member_epoch: request.member_epoch,
            ..ConsumerGroupHeartbeatResponse::default()
        })
    }

    /// Removes members. If only members of the classic protocol are left and the settings allow it,
    /// the group becomes a classic one.
    pub(crate) fn fence(
        &mut self,
        group_id: &Id,
        member_ids: &[Id],
        causes: impl Into<Causes>,
        step: &mut Step<'_>,
    ) {
        let causes = causes.into();
        if member_ids.is_empty() {
            return;
        }
        if self.can_downgrade_without(group_id, member_ids) {
            self.downgrade_without(group_id, member_ids, causes, step);
        } else if let Some(mut consumer) = self.consumer_step(group_id, step) {
            consumer.remove_members(member_ids, causes);
        }
    }
}

impl ConsumerStep<'_, '_> {
    pub(super) fn leaving_member(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
    ) -> Result<&Member, Refusal> {
        match instance_id {
            None => {
                let member = self.member(member_id);
                member.ok_or_else(|| Refusal::unknown_member(member_id, self.id))
            }
            Some(instance_id) => {
                let holder = self.group.static_member(instance_id);
                let holder = holder.ok_or_else(|| unknown_instance(instance_id))?;
                refuse_fenced_instance(holder, member_id, instance_id)?;
                Ok(holder)
            }
        }
    }

    /// A static member leaves and will come back. It keeps its partitions until its session ends.
    /// Commits under its member id are refused from now on, because its next incarnation owns the
    /// partitions from its start.
    fn leave_for_a_while(&mut self, member_id: &Id) {
        let Some(member) = self.member(member_id) else {
            return;
        };
        let left = Current {
            epoch: LEAVE_STATIC_EPOCH,
            assigned: member.current.assigned.since(0),
            revoking: Owned::default(),
            ..member.current.clone()
        };
        let paused = Cause::MemberPaused {
            member: member.who(),
        };
        self.emit(records::current(self.id, member_id, &left));
        self.unlimit(member_id, |rebalance| &mut rebalance.revoke);
        self.event(paused);
    }

    fn remove_members(&mut self, member_ids: &[Id], causes: Causes) {
        let mut regexes = Vec::new();
        for member_id in member_ids {
            if let Some(member) = self.member(member_id) {
                regexes.extend(member.profile.regex.clone());
                for record in records::removal(self.id, member_id) {
                    self.emit(record);
                }
            }
        }
        for regex in regexes {
            if !self.group.knows_regex(&regex) && self.group.resolved(&regex).is_some() {
                self.emit(records::no_regex(self.id, &regex));
            }
        }
        self.refresh_metadata(Some(causes));
        if self.group.is_empty() {
            // As a new group: the first member's target does not wait for the interval
            // (KAFKA-20442).
            self.emit(records::target_epoch(self.id, self.group.epoch, 0));
            let epoch = self.group.epoch;
            self.topics_and_group().0.emptied();
            self.event(What::Emptied { epoch });
            self.end_progress();
        }
        self.refresh_target();
    }
}
