//! How a rewind comes closer to its end: looked at after each step of the shard.

use kohort_group::TopicPartitions;
use kohort_wire::ErrorCode;

use super::Rewind;
use crate::{
    Id, Shard, Topics,
    classic::{ClassicGroup, ClassicState},
    consumer::ConsumerGroup,
    group::{Group, Members},
    step::Step,
};

/// What is to be done for a rewind.
enum Next {
    Wait,
    /// A topic is gone.
    GiveUp(Id),
    /// No member owns any of the partitions.
    Finish,
    /// Owners have to be told.
    TakeFromConsumers,
    TakeFromClassic,
    /// Members may hold some of them, and it is not known which.
    PutOut(Vec<Id>),
    /// Members have not revoked in time.
    PutOutOverdue(Vec<Id>),
}

impl Shard {
    /// Continues pending rewinds.
    pub(crate) fn advance_rewinds(&mut self, step: &mut Step<'_>) {
        if self.rewinding.is_empty() {
            return;
        }
        for group_id in self.rewinding.clone() {
            self.advance_rewind(&group_id, step);
        }
    }

    fn advance_rewind(&mut self, group_id: &Id, step: &mut Step<'_>) {
        // Members are removed at most once, and owners told at most once. After that, either there was
        // no owner left to tell, or the rewind waits.
        for _ in 0..3 {
            let Some(next) = self
                .groups
                .get_mut(group_id)
                .and_then(|group| next(group, &self.topics))
            else {
                return;
            };
            match next {
                Next::Wait => return,
                Next::GiveUp(topic) => {
                    let why = format!("topic {topic} was deleted");
                    let error_code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                    return self.give_up_rewind(group_id, why, error_code, step);
                }
                Next::Finish => return self.finish_rewind(group_id, step),
                Next::TakeFromConsumers => {
                    let cause = self.rewind_mut(group_id).map(|rewind| rewind.cause());
                    if let (Some(cause), Some(mut consumer)) =
                        (cause, self.consumer_step(group_id, step))
                    {
                        consumer.take_back(cause);
                    }
                }
                Next::TakeFromClassic => self.take_back_from_classic(group_id, step),
                Next::PutOut(member_ids) => {
                    for member_id in member_ids {
                        self.put_out_for_rewind(group_id, &member_id, step);
                    }
                }
                Next::PutOutOverdue(member_ids) => {
                    if let Some(mut classic) = self.classic_step(group_id, step) {
                        classic.put_out_overdue(member_ids);
                    }
                }
            }
        }
    }

    /// The end of loading: what was under way goes on.
    pub(crate) fn rewinds_loaded(&mut self, step: &mut Step<'_>) {
        for group_id in &self.rewinding {
            if let Some(rewind) = self.groups.get(group_id).and_then(|g| g.rewind.as_deref()) {
                let (by, named) = (rewind.by(), rewind.named());
                let text = format!("the rewind of {named} that {by} asked for goes on");
                step.event(group_id, text);
            }
        }
        self.advance_rewinds(step);
    }
}

fn next(group: &mut Group, topics: &Topics) -> Option<Next> {
    let rewind = group.rewind.as_deref_mut()?;
    let mut goals = rewind.goals.iter();
    if let Some(((topic, _), _)) = goals.find(|(_, goal)| topics.by_id(goal.topic_id).is_none()) {
        return Some(Next::GiveUp(topic.clone()));
    }
    Some(match &group.members {
        Members::Consumer(consumer) => {
            rewind.begun_at = None;
            next_of_consumers(consumer, &rewind.partitions, topics)
        }
        Members::Classic(classic) => next_of_classic(classic, rewind),
    })
}

fn next_of_consumers(group: &ConsumerGroup, partitions: &TopicPartitions, topics: &Topics) -> Next {
    let unclear = group.with_topics_that_are_gone(topics);
    if !unclear.is_empty() {
        return Next::PutOut(unclear);
    }
    let mut is_held = false;
    for (topic_id, partition) in partitions.iter() {
        let Some(owner) = group.owner(topic_id, partition) else {
            continue;
        };
        is_held = true;
        // A member behind the target's epoch reaches it only by revoking.
        let is_told = group.member(owner).is_some_and(|member| {
            !member.has_left_for_a_while() && member.current.epoch < group.assignment_epoch
        });
        if !is_told {
            return Next::TakeFromConsumers;
        }
    }
    if is_held { Next::Wait } else { Next::Finish }
}

fn next_of_classic(group: &ClassicGroup, rewind: &Rewind) -> Next {
    match (group.state, rewind.begun_at) {
        (ClassicState::Empty, _) => Next::Finish,
        // All its members are new, and have never had anything.
        (ClassicState::PreparingRebalance, _) if group.initial_delay.is_some() => Next::Finish,
        // Static members that do not rejoin stay in the group as long as they send heartbeats.
        (ClassicState::PreparingRebalance, Some(_)) if group.is_overdue => {
            match group.holders(rewind) {
                none if none.is_empty() => Next::Finish,
                holders => Next::PutOutOverdue(holders),
            }
        }
        (ClassicState::PreparingRebalance, Some(_)) => Next::Wait,
        // The members of this generation have joined since.
        (_, Some(begun_at)) if group.generation != begun_at => Next::Finish,
        _ => Next::TakeFromClassic,
    }
}
