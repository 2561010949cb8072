//! How a consumer group gets to its target, as its history tells: how long that takes, whom it waits
//! for, and whom they block.

use kohort_group::{
    TopicPartitions,
    history::{Few, Late, Needs, Phase, Waited, What, Who},
};

use super::{
    member::{Member, MemberState},
    step::ConsumerStep,
};
use crate::{
    Id, Shard, Topics,
    alarm::{Alarm, Fired},
    step::Step,
};

/// How many members are searched for those that another member blocks.
const BLOCKED_SEARCH_MAX: usize = 1_000;

impl ConsumerStep<'_, '_> {
    /// A member as events name it.
    pub(crate) fn who(&self, member_id: &str) -> Who {
        match self.member(member_id) {
            Some(member) => member.who(),
            None => Who::new(&member_id.into(), None, &"".into(), &"".into()),
        }
    }

    /// A target has been computed: from now on members have to get there.
    pub(crate) fn begin_reconciling(&mut self) {
        let epoch = self.group.assignment_epoch;
        self.group.progress.lagging = self.group.lagging(epoch);
        let look = self.group.progress.begin_phase(self.step.now);
        self.set_history_alarm(look);
        self.end_if_stable();
    }

    /// A member has come a step closer to its target.
    pub(super) fn has_moved(&mut self, member_id: &Id, before: MemberState) {
        let Some(member) = self.group.member(member_id) else {
            return;
        };
        let has_revoked = before == MemberState::UnrevokedPartitions
            && member.current.state != MemberState::UnrevokedPartitions;
        let has_arrived = member.is_reconciled_to(self.group.assignment_epoch);
        if !has_revoked && !has_arrived {
            return;
        }
        let late = Late {
            member: member.who(),
            needs: if has_revoked {
                Needs::Revoke
            } else {
                Needs::Heartbeat
            },
            took_ms: self.group.progress.phase_ms(self.step.now),
        };
        let progress = &mut self.group.progress;
        if has_revoked {
            progress.last_to_revoke = Some(late.clone());
        }
        progress.last = Some(late);
        if has_arrived && progress.lagging.remove(member_id) {
            self.end_if_stable();
        }
        let left = self.group.progress.lagging.len();
        if self.group.progress.is_worth_saying(left) {
            self.say_whom_it_waits_for();
        }
    }

    /// The group has no members any more: there is nothing to wait for.
    pub(super) fn end_progress(&mut self) {
        self.group.progress.end();
    }

    fn end_if_stable(&mut self) {
        let progress = &self.group.progress;
        let is_over = progress.began_at.is_some()
            && progress.lagging.is_empty()
            && self.withheld.is_none()
            && self.group.assignment_epoch >= self.group.epoch;
        if !is_over {
            return;
        }
        let now = self.step.now;
        let took_ms = progress.phase_ms(now);
        // A member that receives what another had to revoke finishes after it, and is not to blame.
        let revoker = progress.last_to_revoke.clone();
        let last = revoker
            .filter(|late| 2 * late.took_ms >= took_ms)
            .or_else(|| progress.last.clone());
        let stable = What::Stable {
            epoch: self.group.epoch,
            total_ms: progress.total_ms(now),
            took_ms,
            last,
        };
        self.event(stable);
        self.group.progress.end();
    }

    fn on_history_alarm(&mut self) {
        match self.group.progress.look.fired(self.step.now) {
            Fired::Due if self.group.progress.began_at.is_some() => self.say_whom_it_waits_for(),
            Fired::Again(at) => self.set_history_alarm(Some(at)),
            Fired::Due | Fired::Stale => {}
        }
    }

    fn say_whom_it_waits_for(&mut self) {
        let group = &self.group;
        let mut lagging: Vec<&Member> = group
            .progress
            .lagging
            .iter()
            .filter_map(|id| group.member(id))
            .filter(|member| !self.is_blocked(member))
            .collect();
        // Those that have to revoke come first: others may wait for them.
        lagging.sort_unstable_by_key(|member| {
            (
                member.current.state != MemberState::UnrevokedPartitions,
                &*member.id,
            )
        });
        if lagging.is_empty() {
            return;
        }
        let first = lagging.iter().take(Few::<Waited>::NAMED_MAX);
        let waiting = What::Waiting {
            epoch: group.epoch,
            phase: Phase::Reconcile,
            since: group.progress.phase_since,
            deadline_at: None,
            members: Few {
                count: lagging.len(),
                first: first.map(|member| self.waited(member)).collect(),
            },
        };
        self.event(waiting);
        let look = self.group.progress.said(self.step.now);
        self.set_history_alarm(look);
    }

    /// Whether the member has done what it can, and waits for others.
    fn is_blocked(&self, member: &Member) -> bool {
        member.current.state == MemberState::UnreleasedPartitions
            && self.group.waits_for_others(member, self.topics)
    }

    fn waited(&self, member: &Member) -> Waited {
        let must_revoke = member.current.state == MemberState::UnrevokedPartitions;
        let revoking = member.current.revoking.all();
        let (needs, deadline) = match must_revoke {
            true if member.is_classic() => (Needs::Rejoin, member.rebalance.join.as_ref()),
            true => (Needs::Revoke, member.rebalance.revoke.as_ref()),
            false if member.is_classic() => (Needs::Rejoin, member.rebalance.join.as_ref()),
            false => (Needs::Heartbeat, None),
        };
        Waited {
            member: member.who(),
            needs,
            partitions: named(revoking, self.topics),
            deadline_at: Some(deadline.map_or(member.session.at(), |deadline| deadline.at())),
            blocks: if revoking.is_empty() {
                Few::default()
            } else {
                self.blocked_by(member)
            },
        }
    }

    /// The members that will get what the member still has to revoke.
    fn blocked_by(&self, member: &Member) -> Few<Who> {
        let revoking = member.current.revoking.all();
        let waiting = self.group.progress.lagging.iter().take(BLOCKED_SEARCH_MAX);
        let mut blocked: Vec<&Member> = waiting
            .filter(|id| **id != member.id)
            .filter(|id| {
                self.group
                    .target(id)
                    .is_some_and(|target| !target.is_disjoint(revoking))
            })
            .filter_map(|id| self.group.member(id))
            .collect();
        blocked.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        blocked.into_iter().map(Member::who).collect()
    }

    fn set_history_alarm(&mut self, at: Option<i64>) {
        if let Some(at) = at {
            let group_id = self.id.clone();
            self.alarms.set(at, Alarm::History { group_id });
        }
    }
}

/// Partitions as `topic-partition`.
pub(super) fn named(partitions: &TopicPartitions, topics: &Topics) -> Few<String> {
    let first = partitions.iter().take(Few::<String>::NAMED_MAX);
    let named = first.map(|(topic_id, partition)| match topics.by_id(topic_id) {
        Some(topic) => format!("{}-{partition}", topic.name),
        None => format!("{topic_id}-{partition}"),
    });
    Few {
        first: named.collect(),
        count: partitions.len(),
    }
}

impl Shard {
    /// Time to say whom a group waits for.
    pub(crate) fn on_history_alarm(&mut self, group_id: &Id, step: &mut Step<'_>) {
        if let Some(mut classic) = self.classic_step(group_id, step) {
            classic.on_history_alarm();
        } else if let Some(mut consumer) = self.consumer_step(group_id, step) {
            consumer.on_history_alarm();
        }
    }
}
