//! The join phase: its beginning and its end.

use bytes::Bytes;
use kohort_group::history::{Cause, Causes, Failure, Few, Protocol, What, Who, clean};
use kohort_wire::ErrorCode;

use super::{
    ClassicState,
    group::InitialDelay,
    step::{ClassicStep, join_refused, sync_refused},
};
use crate::{
    Id, Shard,
    alarm::{Alarm, Fired},
    step::Step,
};

/// The shortest interval at which a rebalance that no member has joined is checked again.
const STATIC_WAIT_MIN_MS: i32 = 1_000;

impl Shard {
    /// Starts the sessions of the members of a group that has been loaded.
    pub(crate) fn classic_loaded(&mut self, group_id: &Id, step: &mut Step<'_>) {
        if let Some(mut classic) = self.classic_step(group_id, step) {
            let member_ids = classic.group.member_ids();
            if !member_ids.is_empty() {
                let loaded = What::Loaded {
                    protocol: Protocol::Classic,
                    epoch: classic.group.generation,
                    members: member_ids.len(),
                };
                classic.event(loaded);
            }
            let has_members = !member_ids.is_empty();
            for member_id in member_ids {
                classic.restart_session(&member_id);
            }
            if has_members && classic.group.leader.is_none() {
                classic.prepare_rebalance("nobody leads it since it became a classic group");
            }
        }
    }

    pub(crate) fn on_classic_member_alarm(
        &mut self,
        group_id: &Id,
        member_id: &Id,
        step: &mut Step<'_>,
    ) {
        if let Some(mut classic) = self.classic_step(group_id, step) {
            classic.on_member_alarm(member_id);
        }
        self.forget_if_nothing_is_left(group_id);
    }

    pub(crate) fn on_classic_rebalance_alarm(&mut self, group_id: &Id, step: &mut Step<'_>) {
        if let Some(mut classic) = self.classic_step(group_id, step) {
            classic.on_rebalance_alarm();
        }
    }
}

impl ClassicStep<'_, '_> {
    pub(super) fn rebalance_or_complete_join(&mut self, member_id: &str, cause: Cause) {
        match self.group.state {
            ClassicState::PreparingRebalance => {
                self.rejoined(member_id);
                self.maybe_complete_join();
            }
            _ => self.prepare_rebalance(cause),
        }
    }

    /// Begins the join phase. All members are told, with their next heartbeat or the answer to
    /// their sync, to join again.
    pub(crate) fn prepare_rebalance(&mut self, causes: impl Into<Causes>) {
        let causes = causes.into();
        let now = self.step.now;
        let initial_delay = self.group.is_empty().then(|| {
            let delay_ms = self.config.group_initial_rebalance_delay_ms;
            InitialDelay::new(now, delay_ms, self.group.rebalance_timeout_ms())
        });
        let timeout_ms = match initial_delay {
            Some(delay) => delay.left_ms(now),
            None => self.group.rebalance_timeout_ms(),
        };
        self.event(What::RebalanceBegan {
            epoch: self.group.generation,
            causes,
            deadline_at: Some(now + i64::from(timeout_ms)),
        });
        if self.group.is(ClassicState::Stable) {
            // Members that have not synced belong to the previous rebalance.
            self.group.progress.end();
        }
        self.begin_phase();
        // A generation without an assignment has nothing to show.
        let is_cut_short = self.group.is(ClassicState::CompletingRebalance);
        for member_id in self.group.member_ids() {
            if self.answer_sync(&member_id, sync_refused(ErrorCode::REBALANCE_IN_PROGRESS)) {
                self.restart_session(&member_id);
            }
            if is_cut_short && let Some(member) = self.group.member_mut(&member_id) {
                member.assignment = Bytes::new();
            }
        }
        self.group.pending_sync.clear();
        self.group.is_overdue = false;
        self.group.initial_delay = initial_delay;
        self.move_to(ClassicState::PreparingRebalance);
        if initial_delay.is_some() {
            self.expect_rebalance(timeout_ms);
            if timeout_ms == 0 {
                self.complete_join();
            }
        } else if self.group.have_all_joined() {
            self.complete_join();
        } else {
            self.expect_rebalance(timeout_ms);
        }
    }

    pub(crate) fn maybe_complete_join(&mut self) {
        if self.group.is(ClassicState::PreparingRebalance)
            && self.group.initial_delay.is_none()
            && self.group.have_all_joined()
        {
            self.complete_join();
        }
    }

    /// Ends the join phase: who has not joined is out, and the rest is the next generation. Static
    /// members are not put out before their session ends, unless a rewind waits for them.
    fn complete_join(&mut self) {
        self.group.initial_delay = None;
        self.group.is_overdue = false;
        let absent = self
            .group
            .members()
            .filter(|member| member.parked_join.is_none() && !member.is_static())
            .map(|member| member.id.clone())
            .collect();
        if let Some(cause) = self.put_out(absent, Failure::Rejoin) {
            self.event(cause);
        }
        if self.group.members().len() == 0 {
            return self.become_empty();
        }
        if !self.group.elect_joined_leader() {
            // Only static members that have not come: their sessions decide.
            self.group.is_overdue = true;
            // A timeout of 0 or less would expire again at once, without end.
            let timeout_ms = self.group.rebalance_timeout_ms().max(STATIC_WAIT_MIN_MS);
            return self.expect_rebalance(timeout_ms);
        }
        self.group.generation = next_generation(self.group.generation);
        self.group.protocol = self.group.select_protocol();
        self.group.subscribed_topics = self.group.read_subscribed_topics();
        self.move_to(ClassicState::CompletingRebalance);
        self.group.pending_sync = self.group.member_ids().into_iter().collect();
        let last = self.group.progress.last.take();
        let ended = What::JoinEnded {
            epoch: self.group.generation,
            members: self.group.members().len(),
            leader: self.who(self.group.leader.as_deref().unwrap_or_default()),
            assignor: clean(self.group.protocol.as_deref().unwrap_or_default()),
            took_ms: self.group.progress.phase_ms(self.step.now),
            last,
        };
        self.event(ended);
        self.begin_phase();
        for member_id in self.group.member_ids() {
            let response = self.joined(&member_id);
            self.answer_join(&member_id, response);
            if let Some(member) = self.group.member_mut(&member_id) {
                member.is_new = false;
            }
            self.restart_session(&member_id);
        }
        let timeout_ms = self.group.rebalance_timeout_ms();
        self.expect_rebalance(timeout_ms);
    }

    fn become_empty(&mut self) {
        self.group.generation = next_generation(self.group.generation);
        self.group.protocol = None;
        self.group.leader = None;
        let now = self.step.date();
        let record = self.group.to_record(now, |_| Bytes::new());
        self.emit(record);
        self.topics_and_group().0.emptied();
        self.group.progress.end();
        self.event(What::Emptied {
            epoch: self.group.generation,
        });
    }

    fn on_rebalance_alarm(&mut self) {
        match self.group.rebalance.fired(self.step.now) {
            Fired::Due => {}
            Fired::Again(at) => {
                return self.alarms.set(
                    at,
                    Alarm::ClassicRebalance {
                        group_id: self.id.clone(),
                    },
                );
            }
            Fired::Stale => return,
        }
        match self.group.state {
            ClassicState::PreparingRebalance => self.complete_join(),
            ClassicState::CompletingRebalance | ClassicState::Stable => self.end_sync_phase(),
            ClassicState::Empty => {}
        }
    }

    /// Puts out who has not synced in time.
    fn end_sync_phase(&mut self) {
        let absent = self.group.pending_sync.iter().cloned().collect();
        if let Some(cause) = self.put_out(absent, Failure::Sync) {
            self.prepare_rebalance(cause);
        }
    }

    fn on_member_alarm(&mut self, member_id: &Id) {
        let now = self.step.now;
        let deadline = match self.group.pending.deadline_mut(member_id) {
            Some(deadline) => Some(deadline),
            None => self
                .group
                .member_mut(member_id)
                .map(|member| &mut member.session),
        };
        match deadline.map(|deadline| deadline.fired(now)) {
            Some(Fired::Due) => {}
            Some(Fired::Again(at)) => {
                let (group_id, member_id) = (self.id.clone(), member_id.clone());
                return self.alarms.set(
                    at,
                    Alarm::ClassicMember {
                        group_id,
                        member_id,
                    },
                );
            }
            Some(Fired::Stale) | None => return,
        }
        if self.group.pending.remove(member_id) {
            return self.handed_out_is_gone(member_id);
        }
        let Some(member) = self
            .group
            .member(member_id)
            .filter(|member| !member.is_excused())
        else {
            return;
        };
        let who = member.who();
        let cause = if member.is_new {
            Cause::FirstJoinExpired { member: who }
        } else {
            Cause::SessionExpired {
                member: who,
                timeout_ms: member.session_timeout_ms.into(),
            }
        };
        self.remove_member(member_id);
        self.member_gone(cause);
    }

    /// Removes members that did not do in time what they had to, if there are any.
    pub(crate) fn put_out(&mut self, member_ids: Vec<Id>, failure: Failure) -> Option<Cause> {
        let timeout_ms = self.group.rebalance_timeout_ms().into();
        let members: Few<Who> = member_ids.iter().map(|id| self.who(id)).collect();
        for member_id in &member_ids {
            self.group.remove(member_id);
        }
        (!members.is_empty()).then(|| Cause::MembersFenced {
            members,
            failure,
            timeout_ms,
            partitions: Few::default(),
        })
    }

    /// Removes a member. If it waits for the answer to a join, it is told that it is not known, and
    /// joins anew if it still lives.
    pub(crate) fn remove_member(&mut self, member_id: &str) {
        self.answer_join(member_id, join_refused("", ErrorCode::UNKNOWN_MEMBER_ID));
        self.answer_sync(member_id, sync_refused(ErrorCode::UNKNOWN_MEMBER_ID));
        self.group.remove(member_id);
    }

    /// Goes on without members that have been removed.
    pub(crate) fn member_gone(&mut self, causes: impl Into<Causes>) {
        let causes = causes.into();
        match self.group.state {
            ClassicState::Stable | ClassicState::CompletingRebalance => {
                self.prepare_rebalance(causes);
            }
            ClassicState::PreparingRebalance => {
                for cause in causes.first {
                    self.event(cause);
                }
                self.maybe_complete_join();
            }
            ClassicState::Empty => {}
        }
    }
}

/// Generations are never negative: a client takes a negative one for "none".
fn next_generation(generation: i32) -> i32 {
    generation.checked_add(1).unwrap_or(1)
}
