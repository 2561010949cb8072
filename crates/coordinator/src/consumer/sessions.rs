//! When members are given up.

use kohort_group::history::{Cause, Failure};

use super::{
    member::{Member, MemberState, Rebalance},
    step::ConsumerStep,
    waiting::named,
};
use crate::{
    Id, Millis, Shard,
    alarm::{Alarm, Alarms, Deadline, Fired},
    step::Step,
};

impl ConsumerStep<'_, '_> {
    fn session_timeout_ms(&self, member_id: &str) -> i32 {
        let member = self.group.member(member_id);
        match member.and_then(|member| member.profile.classic.as_ref()) {
            Some(classic) => classic.session_timeout_ms,
            None => self.config.consumer_session_timeout_ms(self.id),
        }
    }

    /// Starts the member's session anew. In the steady state this moves a number.
    pub(super) fn restart_session(&mut self, member_id: &Id) {
        let default_ms = self.config.consumer_session_timeout_ms(self.id);
        let now = self.step.now;
        if let Some(member) = self.group.member_mut(member_id) {
            let classic = member.profile.classic.as_ref();
            let timeout_ms = classic.map_or(default_ms, |classic| classic.session_timeout_ms);
            member.session_was = None;
            end_session_at(member, now + i64::from(timeout_ms), self.id, self.alarms);
        }
    }

    /// Gives the member its rebalance timeout for what it has to revoke; or no time limit, if it
    /// has nothing to revoke. A classic member is told to rejoin instead, and has a limit for that.
    pub(super) fn restart_revocation(&mut self, member_id: &Id) {
        let Some(member) = self.group.member(member_id) else {
            return;
        };
        let must_revoke = member.current.state == MemberState::UnrevokedPartitions;
        if must_revoke && !member.is_classic() {
            let timeout_ms = member.profile.rebalance_timeout_ms;
            self.limit(member_id, timeout_ms, |rebalance| &mut rebalance.revoke);
        } else {
            self.unlimit(member_id, |rebalance| &mut rebalance.revoke)
        }
    }

    /// Gives a classic member that has joined again with partitions of a rewind its rebalance timeout
    /// to let go of them, once. Kafka waits for as long as it says that it has them.
    pub(super) fn limit_rewound(&mut self, member_id: &Id) {
        let (Some(withheld), Some(member)) = (self.withheld, self.group.member(member_id)) else {
            return;
        };
        let is_limited = member.rebalance.revoke.is_some();
        if !is_limited && !member.current.revoking.all().is_disjoint(withheld) {
            let timeout_ms = member.profile.rebalance_timeout_ms;
            self.limit(member_id, timeout_ms, |rebalance| &mut rebalance.revoke);
        }
    }

    /// The limits that the member had while it spoke the classic protocol mean nothing any more.
    pub(super) fn forget_classic_limits(&mut self, member_id: &Id) {
        if let Some(member) = self.group.member_mut(member_id) {
            member.rebalance.join = None;
            member.rebalance.sync = None;
        }
    }

    /// Gives the member a time for one of the things that a rebalance asks of it.
    pub(super) fn limit(
        &mut self,
        member_id: &Id,
        timeout_ms: i32,
        which: impl Fn(&mut Rebalance) -> &mut Option<Deadline>,
    ) {
        let at = self.step.now + i64::from(timeout_ms.max(0));
        if let Some(member) = self.group.member_mut(member_id)
            && let Some(at) = which(&mut member.rebalance)
                .get_or_insert_default()
                .move_to(at)
        {
            self.set_rebalance_alarm(member_id, at);
        }
    }

    pub(super) fn unlimit(
        &mut self,
        member_id: &Id,
        which: impl Fn(&mut Rebalance) -> &mut Option<Deadline>,
    ) {
        if let Some(member) = self.group.member_mut(member_id) {
            *which(&mut member.rebalance) = None;
        }
    }

    fn set_rebalance_alarm(&mut self, member_id: &Id, at: Millis) {
        let alarm = Alarm::ConsumerRebalance {
            group_id: self.id.clone(),
            member_id: member_id.clone(),
        };
        self.alarms.set(at, alarm);
    }
}

/// Moves the end of a member's session.
pub(super) fn end_session_at(member: &mut Member, at: Millis, group_id: &Id, alarms: &mut Alarms) {
    if let Some(at) = member.session.move_to(at) {
        let alarm = Alarm::ConsumerSession {
            group_id: group_id.clone(),
            member_id: member.id.clone(),
        };
        alarms.set(at, alarm);
    }
}

impl Shard {
    pub(crate) fn on_consumer_session_alarm(
        &mut self,
        group_id: &Id,
        member_id: &Id,
        step: &mut Step<'_>,
    ) {
        let now = step.now;
        let Some(consumer) = self.consumer_step(group_id, step) else {
            return;
        };
        let Some(member) = consumer.group.member_mut(member_id) else {
            return;
        };
        match member.session.fired(now) {
            Fired::Stale => {}
            Fired::Again(at) => {
                let (group_id, member_id) = (group_id.clone(), member_id.clone());
                consumer.alarms.set(
                    at,
                    Alarm::ConsumerSession {
                        group_id,
                        member_id,
                    },
                );
            }
            Fired::Due => {
                let was_cut = member.session_was.is_some();
                let member = consumer.who(member_id);
                let cause = if was_cut {
                    Cause::ConnectionLost {
                        member,
                        grace_ms: consumer.connection_grace_ms(),
                    }
                } else {
                    Cause::SessionExpired {
                        member,
                        timeout_ms: consumer.session_timeout_ms(member_id).into(),
                    }
                };
                self.fence(group_id, std::slice::from_ref(member_id), cause, step);
            }
        }
    }

    pub(crate) fn on_consumer_rebalance_alarm(
        &mut self,
        group_id: &Id,
        member_id: &Id,
        step: &mut Step<'_>,
    ) {
        let now = step.now;
        let Some(mut consumer) = self.consumer_step(group_id, step) else {
            return;
        };
        let Some(member) = consumer.group.member_mut(member_id) else {
            return;
        };
        let Rebalance { revoke, join, sync } = &mut member.rebalance;
        let failures = [
            (revoke, Failure::Revoke),
            (join, Failure::Rejoin),
            (sync, Failure::Sync),
        ];
        let mut failed = None;
        let mut again = Vec::new();
        for (deadline, failure) in failures {
            match deadline.as_mut().map(|deadline| deadline.fired(now)) {
                Some(Fired::Due) => failed = Some(failure),
                Some(Fired::Again(at)) => again.push(at),
                Some(Fired::Stale) | None => {}
            }
        }
        for at in again {
            consumer.set_rebalance_alarm(member_id, at);
        }
        if let Some(failure) = failed {
            let Some(member) = consumer.member(member_id) else {
                return;
            };
            let cause = Cause::MembersFenced {
                members: [member.who()].into_iter().collect(),
                failure,
                timeout_ms: member.profile.rebalance_timeout_ms.into(),
                partitions: named(member.current.revoking.all(), consumer.topics),
            };
            self.fence(group_id, std::slice::from_ref(member_id), cause, step);
        }
    }
}
