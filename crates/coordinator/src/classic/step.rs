//! One step of a classic group.

use kohort_group::history::{What, Who};
use kohort_wire::{ErrorCode, messages::*};

use super::{ClassicGroup, ClassicState, HandedOut};
use crate::{
    Config, Id, Record, Reply, Shard, Token, Topics,
    alarm::{Alarm, Alarms},
    offsets::GroupOffsets,
    starts::{Look, Seen},
    step::Step,
};

/// A classic group, and all that a step of it may touch.
pub(crate) struct ClassicStep<'a, 'b> {
    pub(crate) id: &'a Id,
    pub(crate) group: &'a mut ClassicGroup,
    pub(crate) alarms: &'a mut Alarms,
    pub(super) handed_out: &'a mut HandedOut,
    pub(crate) config: &'a Config,
    pub(crate) topics: &'a Topics,
    pub(crate) seen: &'a mut Seen,
    pub(crate) offsets: &'a mut GroupOffsets,
    pub(crate) step: &'a mut Step<'b>,
}

impl Shard {
    /// The classic group of an id, ready for a step.
    pub(crate) fn classic_step<'a, 'b>(
        &'a mut self,
        group_id: &str,
        step: &'a mut Step<'b>,
    ) -> Option<ClassicStep<'a, 'b>> {
        let group = self.groups.get_mut(group_id)?;
        Some(ClassicStep {
            id: &group.id,
            group: group.members.classic_mut()?,
            alarms: &mut self.alarms,
            handed_out: &mut self.handed_out,
            config: &self.config,
            topics: &self.topics,
            seen: &mut group.seen,
            offsets: &mut group.offsets,
            step,
        })
    }
}

impl<'b> ClassicStep<'_, 'b> {
    /// Applies what the group is to be from now on, and has it written.
    pub(super) fn emit(&mut self, value: GroupMetadataValue) {
        let record = self.record(value);
        self.step.emit(self.group, record);
    }

    /// Has written what a coordinator that takes over is to begin with; the group is further.
    pub(crate) fn write(&mut self, value: GroupMetadataValue) {
        let record = self.record(value);
        self.step.write(record);
    }

    fn record(&self, value: GroupMetadataValue) -> Record {
        let key = GroupMetadataKey {
            group: (&**self.id).into(),
        };
        Record::GroupMetadata(key, Some(value))
    }

    pub(crate) fn event(&mut self, what: impl Into<What>) {
        self.step.event(self.id, what);
    }

    /// A member as events name it.
    pub(crate) fn who(&self, member_id: &str) -> Who {
        match self.group.member(member_id) {
            Some(member) => member.who(),
            None => Who::new(&member_id.into(), None, &"".into(), &"".into()),
        }
    }

    /// A look at the group's topics, beside the group.
    pub(super) fn topics_and_group(&mut self) -> (Look<'_, 'b>, &ClassicGroup) {
        let look = Look {
            group_id: self.id,
            seen: self.seen,
            offsets: self.offsets,
            topics: self.topics,
            commits: self.config.new_partitions_from_start(self.id),
            step: self.step,
        };
        (look, self.group)
    }

    /// Starts a member's session anew.
    pub(crate) fn restart_session(&mut self, member_id: &str) {
        if let Some(member) = self.group.member(member_id) {
            self.expect_member(member_id, member.session_timeout_ms);
        }
    }

    /// Wants to hear from a member within a time.
    pub(super) fn expect_member(&mut self, member_id: &str, timeout_ms: i32) {
        let at = self.step.now + i64::from(timeout_ms);
        if let Some(member) = self.group.member_mut(member_id)
            && let Some(at) = member.session.move_to(at)
        {
            let member_id = member.id.clone();
            self.alarms.set(
                at,
                Alarm::ClassicMember {
                    group_id: self.id.clone(),
                    member_id,
                },
            );
        }
    }

    /// Ends the current phase after a time.
    pub(super) fn expect_rebalance(&mut self, timeout_ms: i32) {
        let at = self.step.now + i64::from(timeout_ms);
        if let Some(at) = self.group.rebalance.move_to(at) {
            self.alarms.set(
                at,
                Alarm::ClassicRebalance {
                    group_id: self.id.clone(),
                },
            );
        }
    }

    pub(super) fn move_to(&mut self, state: ClassicState) {
        self.group.move_to(state, self.step.date());
    }

    /// Answers a parked JoinGroup.
    pub(crate) fn answer_join(&mut self, member_id: &str, response: JoinGroupResponse) {
        let mut parked = None;
        if self
            .group
            .member(member_id)
            .is_some_and(|member| member.parked_join.is_some())
        {
            self.group
                .update(member_id, |member| parked = member.parked_join.take());
        }
        if let Some(token) = parked {
            self.step.reply(token, Reply::JoinGroup(response));
        }
    }

    /// Answers a parked SyncGroup.
    pub(crate) fn answer_sync(&mut self, member_id: &str, response: SyncGroupResponse) -> bool {
        let member = self.group.member_mut(member_id);
        match member.and_then(|member| member.parked_sync.take()) {
            Some(token) => {
                self.step.reply(token, Reply::SyncGroup(response));
                true
            }
            None => false,
        }
    }

    /// The answer to a join of the current generation.
    pub(super) fn joined(&self, member_id: &str) -> JoinGroupResponse {
        let group = &self.group;
        JoinGroupResponse {
            generation_id: group.generation,
            protocol_type: group.protocol_type.as_deref().map(Into::into),
            protocol_name: group.protocol.as_deref().map(Into::into),
            leader: group.leader.as_deref().unwrap_or_default().into(),
            member_id: member_id.into(),
            members: if group.is_leader(member_id) {
                group.members_for_leader()
            } else {
                Vec::new()
            },
            ..JoinGroupResponse::default()
        }
    }

    /// The answer to a sync of the current generation.
    pub(super) fn synced(&self, member_id: &str) -> SyncGroupResponse {
        let group = &self.group;
        let member = group.member(member_id);
        SyncGroupResponse {
            protocol_type: group.protocol_type.as_deref().map(Into::into),
            protocol_name: group.protocol.as_deref().map(Into::into),
            assignment: member
                .map(|member| member.assignment.clone())
                .unwrap_or_default(),
            ..SyncGroupResponse::default()
        }
    }
}

/// A join that is refused. The protocol is an empty name, not null: versions before 7 have no null.
pub(crate) fn join_refused(member_id: &str, error_code: ErrorCode) -> JoinGroupResponse {
    JoinGroupResponse {
        error_code,
        member_id: member_id.into(),
        ..JoinGroupResponse::default()
    }
}

/// A sync that is refused.
pub(crate) fn sync_refused(error_code: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse {
        error_code,
        ..SyncGroupResponse::default()
    }
}

impl Step<'_> {
    pub(crate) fn refuse_join(&mut self, token: Token, member_id: &str, error_code: ErrorCode) {
        self.reply(token, Reply::JoinGroup(join_refused(member_id, error_code)));
    }

    pub(crate) fn refuse_sync(&mut self, token: Token, error_code: ErrorCode) {
        self.reply(token, Reply::SyncGroup(sync_refused(error_code)));
    }
}
