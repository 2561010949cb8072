//! SyncGroup.

use std::collections::HashMap;

use bytes::Bytes;
use kohort_group::history::What;
use kohort_wire::{ErrorCode, messages::*};

use super::{ClassicState, step::ClassicStep};
use crate::{Reply, Shard, Token, group::Members, step::Step};

impl Shard {
    pub(crate) fn sync_group(
        &mut self,
        token: Token,
        version: i16,
        request: SyncGroupRequest,
        step: &mut Step<'_>,
    ) {
        if request.group_id.is_empty() {
            return step.refuse_sync(token, ErrorCode::INVALID_GROUP_ID);
        }
        match self
            .groups
            .get(&*request.group_id)
            .map(|group| &group.members)
        {
            Some(Members::Consumer(group)) if !group.is_empty() => {
                return self.consumer_sync_group(token, version, request, step);
            }
            Some(Members::Classic(group)) if !group.is_empty() => {}
            _ => return step.refuse_sync(token, ErrorCode::UNKNOWN_MEMBER_ID),
        }
        if let Some(mut classic) = self.classic_step(&request.group_id, step) {
            classic.sync(token, &request);
        }
    }
}

impl ClassicStep<'_, '_> {
    fn sync(&mut self, token: Token, request: &SyncGroupRequest) {
        if let Err(error_code) = self.validate_sync(request) {
            return self.step.refuse_sync(token, error_code);
        }
        let member_id = &*request.member_id;
        match self.group.state {
            ClassicState::Empty => self.step.refuse_sync(token, ErrorCode::UNKNOWN_MEMBER_ID),
            ClassicState::PreparingRebalance => {
                self.step
                    .refuse_sync(token, ErrorCode::REBALANCE_IN_PROGRESS);
            }
            ClassicState::CompletingRebalance => {
                let is_leader = self.group.is_leader(member_id);
                if is_leader && self.is_too_large_assigned(&request.assignments) {
                    return self.step.refuse_sync(token, ErrorCode::INVALID_REQUEST);
                }
                self.group.pending_sync.remove(member_id);
                let replaced = self
                    .group
                    .member_mut(member_id)
                    .and_then(|member| member.parked_sync.replace(token));
                if let Some(token) = replaced {
                    self.step
                        .refuse_sync(token, ErrorCode::REBALANCE_IN_PROGRESS);
                }
                if is_leader {
                    self.take_assignment(&request.assignments);
                }
            }
            ClassicState::Stable => {
                // A static member that comes back is given by name what was assigned before.
                self.look_at_new_topics();
                if self.group.pending_sync.remove(member_id) {
                    self.synced_late();
                }
                let response = self.synced(member_id);
                self.step.reply(token, Reply::SyncGroup(response));
            }
        }
    }

    fn validate_sync(&self, request: &SyncGroupRequest) -> Result<(), ErrorCode> {
        let group = &self.group;
        group.validate(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation_id != group.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        let differs = |sent: &Option<kohort_wire::ByteString>, own: Option<&str>| {
            sent.as_deref().is_some_and(|sent| Some(sent) != own)
        };
        if differs(&request.protocol_type, group.protocol_type.as_deref())
            || differs(&request.protocol_name, group.protocol.as_deref())
        {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        Ok(())
    }

    /// There may be other topics by now of the names that are assigned.
    pub(crate) fn look_at_new_topics(&mut self) {
        if self.group.topics_version != Some(self.topics.version()) {
            self.look_at_topics();
        }
    }

    /// Before anybody is assigned a new partition, its first offset is committed.
    fn look_at_topics(&mut self) {
        self.group.topics_version = Some(self.topics.version());
        let (look, group) = self.topics_and_group();
        if let Some(topics) = &group.subscribed_topics {
            look.at(topics.iter());
        }
    }

    /// Takes the leader's assignment: writes it, and answers every waiting SyncGroup. Later
    /// ones are answered at once.
    fn take_assignment(&mut self, assignments: &[SyncGroupAssignment]) {
        let by_member: HashMap<&str, &Bytes> = assignments
            .iter()
            .map(|one| (&*one.member_id, &one.assignment))
            .collect();
        self.look_at_topics();
        let now = self.step.date();
        let record = self.group.to_record(now, |member| {
            by_member
                .get(&*member.id)
                .copied()
                .cloned()
                .unwrap_or_default()
        });
        self.emit(record);
        let assigned = What::Assigned {
            epoch: self.group.generation,
            took_ms: self.group.progress.phase_ms(now),
            total_ms: self.group.progress.total_ms(now),
        };
        self.event(assigned);
        self.group.progress.end();
        if !self.group.pending_sync.is_empty() {
            self.begin_phase();
        }
        for member_id in self.group.member_ids() {
            let response = self.synced(&member_id);
            if self.answer_sync(&member_id, response) {
                self.restart_session(&member_id);
            }
        }
    }
}
