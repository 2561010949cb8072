//! What each member is meant to own.

use std::sync::Arc;

use kohort_group::{
    TopicIds, TopicPartitions,
    assignor::{self, Assignor},
    history::What,
};
use rustc_hash::FxHashMap;

use super::{
    ConsumerGroup,
    member::{Names, Profile},
    records,
    step::ConsumerStep,
    work::{Outcome, Task, Work},
};
use crate::{Id, Millis, Shard, Topics, step::Step};

/// Groups with more members have their targets computed outside of the shard, where it may take its
/// time.
const INLINE_MEMBERS_MAX: usize = 1_000;

/// A target to be computed, with all that it depends on.
#[derive(Debug)]
pub(super) struct TargetTask {
    group_id: Id,
    epoch: i32,
    assignor: Assignor,
    members: Vec<Candidate>,
    topics: Arc<Topics>,
}

#[derive(Debug)]
struct Candidate {
    member_id: Id,
    instance_id: Option<Id>,
    subscribed: TopicIds,
    target: TopicPartitions,
}

/// A target that has been computed.
#[derive(Debug)]
pub(super) struct TargetOutcome {
    group_id: Id,
    epoch: i32,
    assignor: Assignor,
    targets: Vec<(Id, Option<Id>, TopicPartitions)>,
}

impl TargetTask {
    pub(super) fn run(self) -> TargetOutcome {
        let members: Vec<assignor::Member<'_>> = self
            .members
            .iter()
            .map(|member| assignor::Member {
                member_id: &member.member_id,
                instance_id: member.instance_id.as_deref(),
                subscribed_topic_ids: &member.subscribed,
                target: &member.target,
            })
            .collect();
        let partition_count = |topic_id| Some(self.topics.by_id(topic_id)?.partition_count);
        let targets = self.assignor.assign(&members, &partition_count);
        let members = self.members.into_iter().zip(targets);
        TargetOutcome {
            group_id: self.group_id,
            epoch: self.epoch,
            assignor: self.assignor,
            targets: members
                .map(|(member, target)| (member.member_id, member.instance_id, target))
                .collect(),
        }
    }
}

impl ConsumerStep<'_, '_> {
    /// Has a new target computed if the group's epoch asks for one and the last is old enough;
    /// otherwise sees to it that it is looked at in time.
    pub(super) fn refresh_target(&mut self) {
        let group = &self.group;
        if group.assignment_epoch >= group.epoch || group.is_assigning || group.is_empty() {
            return;
        }
        // A topic that the group has not looked at is not assigned.
        self.refresh_metadata(None);
        let due = self.next_target();
        if self.step.now < due {
            return self.look_at(due);
        }
        let task = self.target_task();
        if task.members.len() > INLINE_MEMBERS_MAX {
            self.group.is_assigning = true;
            self.step.work(Work::new(Task::Target(task)));
        } else {
            self.install_target(task.run())
        }
    }

    /// When the next target is due. Kafka waits for the assignment interval to be over, so that
    /// members that come one after the other cause few targets. It is enough to wait until no more
    /// of them come for a while: a tenth of the interval, or longer in a huge group, where a target
    /// is much work; and no longer than the interval.
    fn next_target(&self) -> Millis {
        let interval_ms = Millis::from(self.config.consumer_assignment_interval_ms(self.id));
        let group = &self.group;
        let last = group.assignment_timestamp;
        // A target from the future was computed before the clock was set back.
        if last == 0 || last > self.step.now {
            return 0;
        }
        let calm_ms = (interval_ms / 10)
            .max(group.len() as Millis / 10)
            .min(interval_ms);
        let calm_at = group.epoch_since.max(last).saturating_add(calm_ms);
        calm_at.min(last.saturating_add(interval_ms))
    }

    fn target_task(&self) -> TargetTask {
        let mut subscribed = Subscribed::default();
        let members = self
            .group
            .sorted_members()
            .into_iter()
            .map(|member| Candidate {
                member_id: member.id.clone(),
                instance_id: member.profile.instance_id.clone(),
                subscribed: subscribed.of(&member.profile, self.group, self.topics),
                target: self.group.target(&member.id).cloned().unwrap_or_default(),
            });
        TargetTask {
            group_id: self.id.clone(),
            epoch: self.group.epoch,
            assignor: self.group.assignor(self.config),
            members: members.collect(),
            topics: self.topics.clone(),
        }
    }

    fn install_target(&mut self, outcome: TargetOutcome) {
        if outcome.epoch <= self.group.assignment_epoch {
            return;
        }
        let mut changed = 0;
        let mut moved = 0;
        for (member_id, instance_id, target) in outcome.targets {
            // The place of a static member may have been taken meanwhile.
            let member_id = match instance_id.and_then(|id| self.group.static_member(&id)) {
                Some(holder) => holder.id.clone(),
                None => member_id,
            };
            if self.member(&member_id).is_some() && self.group.target(&member_id) != Some(&target) {
                moved += match self.group.target(&member_id) {
                    Some(before) => target.difference(before).len(),
                    None => target.len(),
                };
                self.emit(records::target(self.id, &member_id, &target));
                changed += 1;
            }
        }
        self.emit(records::target_epoch(self.id, outcome.epoch, self.step.now));
        let computed = What::TargetComputed {
            epoch: outcome.epoch,
            assignor: outcome.assignor.name().into(),
            members: self.group.len(),
            members_changed: changed,
            partitions_moved: moved,
            took_ms: self.group.progress.total_ms(self.step.now),
        };
        self.event(computed);
        self.begin_reconciling();
    }

    pub(super) fn target_done(&mut self, outcome: TargetOutcome) {
        self.group.is_assigning = false;
        self.install_target(outcome);
        // The group may have changed meanwhile.
        self.refresh_target();
    }
}

impl Shard {
    /// Something about the group is due: a target, or its regular expressions.
    pub(crate) fn on_consumer_group_alarm(&mut self, group_id: &Id, step: &mut Step<'_>) {
        use crate::alarm::{Alarm, Fired};
        let now = step.now;
        let Some(mut consumer) = self.consumer_step(group_id, step) else {
            return;
        };
        match consumer.group.look.fired(now) {
            Fired::Stale => {}
            Fired::Again(at) => {
                let group_id = group_id.clone();
                consumer.alarms.set(at, Alarm::ConsumerGroup { group_id });
            }
            Fired::Due => {
                consumer.refresh_metadata(None);
                consumer.refresh_regexes();
                consumer.refresh_target();
            }
        }
    }

    pub(crate) fn consumer_work_done(&mut self, done: super::WorkDone, step: &mut Step<'_>) {
        let (group_id, outcome) = match done.into_outcome() {
            Outcome::Target(outcome) => (outcome.group_id.clone(), Outcome::Target(outcome)),
            Outcome::Regexes(outcome) => (outcome.group_id.clone(), Outcome::Regexes(outcome)),
        };
        let Some(mut consumer) = self.consumer_step(&group_id, step) else {
            return;
        };
        match outcome {
            Outcome::Target(outcome) => consumer.target_done(outcome),
            Outcome::Regexes(outcome) => consumer.regexes_done(outcome),
        }
    }
}

/// The topic ids of each distinct subscription, computed once: members with equal subscriptions
/// share them, which the assignors profit from.
#[derive(Default)]
struct Subscribed(FxHashMap<(*const Id, Option<Id>), TopicIds>);

impl Subscribed {
    fn of(&mut self, profile: &Profile, group: &ConsumerGroup, topics: &Topics) -> TopicIds {
        // Equal lists of names are one allocation.
        let key = (profile.topics.as_ptr(), profile.regex.clone());
        let ids = self.0.entry(key).or_insert_with(|| {
            let matched: Option<&Names> = profile
                .regex
                .as_deref()
                .and_then(|regex| group.resolved(regex))
                .map(|resolved| &resolved.topics);
            let known = &group.topic_hashes;
            let matched = matched.into_iter().flat_map(|names| known.among(names));
            let names = known.among(&profile.topics).chain(matched);
            names
                .filter_map(|name| Some(topics.get(name)?.id))
                .collect()
        });
        ids.clone()
    }
}
