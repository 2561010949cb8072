//! One step of a consumer group.

use std::sync::Arc;

use kohort_group::{TopicPartitions, history::What};

use super::{ConsumerGroup, member::Member};
use crate::{
    Config, Id, Pace, Record, Shard, Topics,
    alarm::{Alarm, Alarms},
    offsets::GroupOffsets,
    starts::{Look, Seen},
    step::Step,
};

/// A consumer group, and all that a step of it may touch.
pub(crate) struct ConsumerStep<'a, 'b> {
    pub(crate) id: &'a Id,
    pub(crate) group: &'a mut ConsumerGroup,
    pub(crate) alarms: &'a mut Alarms,
    pub(crate) config: &'a Config,
    pub(crate) pace: Pace,
    pub(crate) topics: &'a Arc<Topics>,
    /// Partitions that must not be assigned, because they are being rewound.
    pub(crate) withheld: Option<&'a TopicPartitions>,
    pub(crate) seen: &'a mut Seen,
    pub(crate) offsets: &'a mut GroupOffsets,
    pub(crate) step: &'a mut Step<'b>,
}

impl Shard {
    /// The consumer group of an id, ready for a step.
    pub(crate) fn consumer_step<'a, 'b>(
        &'a mut self,
        group_id: &str,
        step: &'a mut Step<'b>,
    ) -> Option<ConsumerStep<'a, 'b>> {
        let group = self.groups.get_mut(group_id)?;
        Some(ConsumerStep {
            id: &group.id,
            group: group.members.consumer_mut()?,
            alarms: &mut self.alarms,
            config: &self.config,
            pace: self.pace,
            topics: &self.topics,
            withheld: group.rewind.as_deref().map(|rewind| &rewind.partitions),
            seen: &mut group.seen,
            offsets: &mut group.offsets,
            step,
        })
    }
}

impl<'b> ConsumerStep<'_, 'b> {
    /// Applies the record, and has it written.
    pub(crate) fn emit(&mut self, record: Record) {
        self.step.emit(self.group, record);
    }

    /// A look at the group's topics, beside the group.
    pub(super) fn topics_and_group(&mut self) -> (Look<'_, 'b>, &ConsumerGroup) {
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

    pub(crate) fn event(&mut self, what: impl Into<What>) {
        self.step.event(self.id, what);
    }

    pub(super) fn member(&self, member_id: &str) -> Option<&Member> {
        self.group.member(member_id)
    }

    /// Looks at the group again at `at`, or before.
    pub(super) fn look_at(&mut self, at: i64) {
        let look = &mut self.group.look;
        // The alarm that stands for an earlier look is enough.
        if look.at() > self.step.now && look.at() <= at {
            return;
        }
        if let Some(at) = look.move_to(at) {
            let group_id = self.id.clone();
            self.alarms.set(at, Alarm::ConsumerGroup { group_id });
        }
    }
}
