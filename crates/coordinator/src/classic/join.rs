//! JoinGroup.

use kohort_group::history::{self, Cause};
use kohort_wire::{ErrorCode, messages::*};

use super::{
    ClassicMember, ClassicState, MemberProtocol,
    member::{instance_id, rebalance_timeout_ms},
    step::ClassicStep,
};
use crate::{
    Caller, Id, Reply, Shard, Token,
    alarm::{Alarm, Deadline},
    group::Members,
    step::Step,
};

/// How long a new member may wait for the answer to its first join. It does not know its id yet, so
/// it cannot heartbeat, and its absence would go unnoticed (KAFKA-7610).
const NEW_MEMBER_JOIN_TIMEOUT_MS: i32 = 5 * 60_000;

/// A join, with what it is about.
struct Join<'a> {
    token: Token,
    version: i16,
    caller: &'a Caller,
    request: &'a JoinGroupRequest,
}

impl Join<'_> {
    /// Why, in the client's words.
    fn reason(&self) -> Option<Id> {
        history::reason(self.request.reason.as_deref())
    }
}

impl Shard {
    pub(crate) fn join_group(
        &mut self,
        token: Token,
        caller: &Caller,
        version: i16,
        request: JoinGroupRequest,
        step: &mut Step<'_>,
    ) {
        if let Err(error_code) = self.validate_join(&request) {
            return step.refuse_join(token, &request.member_id, error_code);
        }
        if self.is_member_too_large(&request, step) {
            let error_code = ErrorCode::INVALID_REQUEST;
            return step.refuse_join(token, &request.member_id, error_code);
        }
        if self.keeps_rewound(&request, step) {
            let error_code = ErrorCode::UNKNOWN_MEMBER_ID;
            return step.refuse_join(token, &request.member_id, error_code);
        }
        if let Some(Members::Consumer(group)) =
            self.groups.get(&*request.group_id).map(|g| &g.members)
        {
            if !group.is_empty() {
                return self.consumer_join_group(token, caller, version, request, step);
            }
            self.convert_empty_consumer_group(&request.group_id, step);
        }
        let group = self.groups.get(&*request.group_id);
        if group.is_none() && !request.member_id.is_empty() {
            return step.refuse_join(token, &request.member_id, ErrorCode::UNKNOWN_MEMBER_ID);
        }
        let is_unwritten = group.is_none_or(|group| {
            group.offsets.is_empty() && group.classic().is_some_and(|it| it.state_since.is_none())
        });
        let new_member_id = match request.member_id.is_empty() {
            true => Some(self.new_member_id(&request.group_id, caller)),
            false => None,
        };
        self.group_or_new(&request.group_id);
        let records = step.record_count();
        let Some(mut classic) = self.classic_step(&request.group_id, step) else {
            return;
        };
        let join = Join {
            token,
            version,
            caller,
            request: &request,
        };
        classic.join(&join, new_member_id);
        if is_unwritten && classic.step.record_count() == records && !classic.group.is_empty() {
            // The group exists from now on, whatever becomes of its first member.
            let value = GroupMetadataValue {
                protocol: None,
                leader: None,
                current_state_timestamp: classic.step.date(),
                ..GroupMetadataValue::default()
            };
            classic.write(value);
        }
        self.limit_handed_out(step);
        // Nothing is left behind by a first join that was refused.
        self.forget_if_nothing_is_left(&request.group_id);
    }

    fn validate_join(&self, request: &JoinGroupRequest) -> Result<(), ErrorCode> {
        let config = &self.config;
        let session_timeout_ms =
            config.group_min_session_timeout_ms..=config.group_max_session_timeout_ms;
        if request.group_id.is_empty() {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        if !session_timeout_ms.contains(&request.session_timeout_ms) {
            return Err(ErrorCode::INVALID_SESSION_TIMEOUT);
        }
        Ok(())
    }
}

impl ClassicStep<'_, '_> {
    fn join(&mut self, join: &Join<'_>, new_member_id: Option<Id>) {
        let request = join.request;
        let member_id = &*request.member_id;
        let is_too_large = self.is_too_large_with(join.caller, request);
        if is_too_large || !self.has_room_for(member_id, request) {
            // A member that grows too large keeps its place, as it was, until its session ends.
            if !is_too_large || self.group.pending.contains(member_id) {
                self.group.remove(member_id);
            }
            let error_code = ErrorCode::GROUP_MAX_SIZE_REACHED;
            return self.step.refuse_join(join.token, "", error_code);
        }
        if !self
            .group
            .supports(&request.protocol_type, &request.protocols)
        {
            let error_code = ErrorCode::INCONSISTENT_GROUP_PROTOCOL;
            return self.step.refuse_join(join.token, member_id, error_code);
        }
        match new_member_id {
            Some(new_member_id) => self.join_unknown(join, new_member_id),
            None if self.group.pending.contains(member_id) => {
                self.add_member(join, member_id.into());
            }
            None => match self
                .group
                .validate(member_id, request.group_instance_id.as_deref())
            {
                Ok(()) => self.join_known(join, member_id),
                Err(error_code) => self.step.refuse_join(join.token, member_id, error_code),
            },
        }
    }

    /// Whether the group takes another member, or this one again. While it rebalances, those count
    /// that have joined: the group may be over a limit that was lowered, and then the last to rejoin
    /// have to go.
    fn has_room_for(&self, member_id: &str, request: &JoinGroupRequest) -> bool {
        let group = &self.group;
        let known = group.member(member_id);
        let static_holder = request
            .group_instance_id
            .as_deref()
            .and_then(|instance_id| group.static_member_id(instance_id));
        // A static member that comes back takes its own place (KAFKA-20601).
        if static_holder.is_some() && member_id.is_empty() {
            return true;
        }
        match group.state {
            ClassicState::Empty => true,
            ClassicState::PreparingRebalance => {
                known.is_some_and(|member| member.parked_join.is_some())
                    || group.parked_joins() < self.config.group_max_size
            }
            ClassicState::CompletingRebalance | ClassicState::Stable => {
                known.is_some() || group.members().len() < self.config.group_max_size
            }
        }
    }

    fn join_unknown(&mut self, join: &Join<'_>, new_member_id: Id) {
        let instance_id = instance_id(join.request);
        let holder = instance_id
            .as_ref()
            .and_then(|id| self.group.static_member_id(id))
            .cloned();
        match (instance_id, holder) {
            (Some(_), Some(old_member_id)) => {
                self.replace_static_member(join, &old_member_id, new_member_id);
            }
            (None, _) if join.version >= 4 => self.give_out_id(join, &new_member_id),
            _ => self.add_member(join, new_member_id),
        }
    }

    /// Has a new member come back with its id (KIP-394), so that one whose answers get lost does not
    /// leave a member behind with each attempt.
    fn give_out_id(&mut self, join: &Join<'_>, member_id: &Id) {
        let mut deadline = Deadline::default();
        let at = self.step.now + i64::from(join.request.session_timeout_ms);
        if let Some(at) = deadline.move_to(at) {
            let (group_id, member_id) = (self.id.clone(), member_id.clone());
            self.alarms.set(
                at,
                Alarm::ClassicMember {
                    group_id,
                    member_id,
                },
            );
        }
        self.group.pending.insert(member_id.clone(), deadline);
        let connection = join.caller.connection;
        self.handed_out.push(self.id, member_id, connection);
        self.step
            .refuse_join(join.token, member_id, ErrorCode::MEMBER_ID_REQUIRED);
    }

    fn add_member(&mut self, join: &Join<'_>, member_id: Id) {
        if let Some(delay) = self.group.initial_delay {
            self.expect_rebalance(delay.left_ms(self.step.now));
        }
        let mut member = ClassicMember::new(member_id.clone(), join.caller, join.request);
        member.parked_join = Some(join.token);
        self.group.add(member, &join.request.protocol_type);
        self.expect_member(&member_id, NEW_MEMBER_JOIN_TIMEOUT_MS);
        let cause = Cause::MemberJoined {
            member: self.who(&member_id),
            reason: join.reason(),
        };
        if self.group.is(ClassicState::PreparingRebalance) {
            self.event(cause.clone());
        }
        self.rebalance_or_complete_join(&member_id, cause);
    }

    fn join_known(&mut self, join: &Join<'_>, member_id: &str) {
        let matches = self
            .group
            .member(member_id)
            .is_some_and(|member| member.matches(&join.request.protocols));
        let leads = match self.group.state {
            ClassicState::Empty => {
                let error_code = ErrorCode::UNKNOWN_MEMBER_ID;
                return self.step.refuse_join(join.token, member_id, error_code);
            }
            ClassicState::PreparingRebalance => false,
            // The answer to its join got lost: here it is again.
            ClassicState::CompletingRebalance if matches => {
                return self.join_again(join, member_id);
            }
            // A leader that joins wants a rebalance, for reasons that the coordinator does not see,
            // such as new partitions.
            ClassicState::Stable if self.group.is_leader(member_id) => true,
            ClassicState::Stable if matches => return self.join_again(join, member_id),
            _ => false,
        };
        self.update_member(member_id, join);
        let cause = Cause::MemberRejoined {
            member: self.who(member_id),
            leads,
            reason: join.reason(),
        };
        self.rebalance_or_complete_join(member_id, cause);
    }

    fn join_again(&mut self, join: &Join<'_>, member_id: &str) {
        let response = self.joined(member_id);
        let members = match self.group.is(ClassicState::Stable) {
            true => Vec::new(),
            false => response.members,
        };
        let response = JoinGroupResponse {
            members,
            ..response
        };
        self.step.reply(join.token, Reply::JoinGroup(response));
    }

    /// Takes over what a known member brings, and parks its join. A join that it had parked before,
    /// over a connection that broke, is answered as lost.
    fn update_member(&mut self, member_id: &str, join: &Join<'_>) {
        let mut replaced = None;
        self.group.update(member_id, |member| {
            member.protocols = MemberProtocol::copy_all(&join.request.protocols);
            member.rebalance_timeout_ms = rebalance_timeout_ms(join.request);
            member.session_timeout_ms = join.request.session_timeout_ms;
            replaced = member.parked_join.replace(join.token);
        });
        if let Some(token) = replaced {
            self.step
                .refuse_join(token, member_id, ErrorCode::REBALANCE_IN_PROGRESS);
        }
    }

    /// A static member came back under a new id: the old one is fenced, and nothing moves unless
    /// the group's protocol has to change (KIP-345), or it subscribes to other topics than before.
    fn replace_static_member(&mut self, join: &Join<'_>, old_id: &Id, new_id: Id) {
        self.fence(old_id);
        let old_leader = self.group.leader.clone();
        let old_topics = self.group.topics_of(old_id);
        self.group.update(old_id, |member| {
            member.id = new_id.clone();
            member.session = Deadline::default();
            member.is_new = false;
            // Show the member that took over the instance (redpanda PR 23693).
            member.client_id = Id::from(&*join.caller.client_id);
            member.client_host = Id::from(&*join.caller.client_host);
        });
        self.update_member(&new_id, join);
        self.restart_session(&new_id);
        let cause = Cause::MemberReturned {
            member: self.who(&new_id),
            old_member_id: history::short(old_id),
            reason: join.reason(),
        };
        match self.group.state {
            ClassicState::Stable
                if self.group.select_protocol() == self.group.protocol
                    && self.group.topics_of(&new_id) == old_topics =>
            {
                self.event(cause);
                let now = self.step.date();
                let record = self
                    .group
                    .to_record(now, |member| member.assignment.clone());
                self.emit(record);
                let response = self.static_member_joined(join, old_leader.as_deref(), &new_id);
                self.answer_join(&new_id, response);
            }
            ClassicState::Stable | ClassicState::CompletingRebalance => {
                self.prepare_rebalance(cause);
            }
            ClassicState::Empty | ClassicState::PreparingRebalance => {
                self.event(cause);
                self.rejoined(&new_id);
                self.maybe_complete_join();
            }
        }
    }

    /// Before version 9 a leader cannot be told to leave the assignment as it is (KIP-814): it is
    /// told that its old id leads, so that it does not assign.
    fn static_member_joined(
        &self,
        join: &Join<'_>,
        old_leader: Option<&str>,
        member_id: &str,
    ) -> JoinGroupResponse {
        let response = self.joined(member_id);
        if join.version >= 9 {
            let skip_assignment = self.group.is_leader(member_id);
            return JoinGroupResponse {
                skip_assignment,
                ..response
            };
        }
        JoinGroupResponse {
            leader: old_leader.unwrap_or_default().into(),
            members: Vec::new(),
            ..response
        }
    }

    /// Tells a member whose instance id another has taken.
    fn fence(&mut self, member_id: &str) {
        let error_code = ErrorCode::FENCED_INSTANCE_ID;
        self.answer_join(member_id, super::step::join_refused(member_id, error_code));
        self.answer_sync(member_id, super::step::sync_refused(error_code));
    }
}
