//! Whom a rebalance of a classic group waits for, as its history tells.

use kohort_group::history::{Few, Late, Needs, Phase, Waited, What, Who};

use super::{ClassicState, step::ClassicStep};
use crate::{
    Id,
    alarm::{Alarm, Fired},
};

impl ClassicStep<'_, '_> {
    /// The join phase begins, or that of assigning.
    pub(super) fn begin_phase(&mut self) {
        let look = self.group.progress.begin_phase(self.step.now);
        self.set_history_alarm(look);
    }

    /// A member has joined while the group waits for all.
    pub(super) fn rejoined(&mut self, member_id: &str) {
        let took_ms = self.group.progress.phase_ms(self.step.now);
        self.group.progress.last = Some(Late {
            member: self.who(member_id),
            needs: Needs::Rejoin,
            took_ms,
        });
        let left = self.group.members().len() - self.group.parked_joins();
        if self.group.progress.is_worth_saying(left) {
            self.say_whom_it_waits_for();
        }
    }

    /// A member has asked for its assignment after the others.
    pub(super) fn synced_late(&mut self) {
        let left = self.group.pending_sync.len();
        if left == 0 {
            if self.group.progress.has_said() {
                self.say_whom_it_waits_for();
            }
            self.group.progress.end();
        } else if self.group.progress.is_worth_saying(left) {
            self.say_whom_it_waits_for();
        }
    }

    pub(crate) fn on_history_alarm(&mut self) {
        match self.group.progress.look.fired(self.step.now) {
            Fired::Due if self.group.progress.began_at.is_some() => self.say_whom_it_waits_for(),
            Fired::Again(at) => self.set_history_alarm(Some(at)),
            Fired::Due | Fired::Stale => {}
        }
    }

    fn say_whom_it_waits_for(&mut self) {
        let group = &self.group;
        let deadline_at = Some(group.rebalance.at());
        let waited = |member: Who, needs: Needs| Waited {
            member,
            needs,
            partitions: Few::default(),
            deadline_at,
            blocks: Few::default(),
        };
        let (phase, members): (Phase, Few<Waited>) = match group.state {
            ClassicState::PreparingRebalance if group.initial_delay.is_some() => {
                (Phase::MoreMembers, Few::default())
            }
            ClassicState::PreparingRebalance => {
                let absent = group.members().filter(|m| m.parked_join.is_none());
                let absent = absent.map(|member| waited(member.who(), Needs::Rejoin));
                let pending = group.pending.ids().map(|id: &Id| {
                    let who = Who::new(id, None, &"".into(), &"".into());
                    waited(who, Needs::Join)
                });
                (Phase::Join, absent.chain(pending).collect())
            }
            ClassicState::CompletingRebalance => {
                let leader = group.leader.as_deref().unwrap_or_default();
                let leader = waited(self.who(leader), Needs::Assign);
                (Phase::Assign, [leader].into_iter().collect())
            }
            ClassicState::Stable => {
                let absent = group.pending_sync.iter();
                let absent = absent.map(|id| waited(self.who(id), Needs::Sync));
                (Phase::Sync, absent.collect())
            }
            ClassicState::Empty => return,
        };
        // Once is enough: each new member is told of.
        if phase == Phase::MoreMembers && group.progress.has_said() {
            return;
        }
        let waiting = What::Waiting {
            epoch: group.generation,
            phase,
            since: group.progress.phase_since,
            deadline_at,
            members,
        };
        self.event(waiting);
        let look = self.group.progress.said(self.step.now);
        self.set_history_alarm(look);
    }

    fn set_history_alarm(&mut self, at: Option<i64>) {
        if let Some(at) = at {
            let group_id = self.id.clone();
            self.alarms.set(at, Alarm::History { group_id });
        }
    }
}
