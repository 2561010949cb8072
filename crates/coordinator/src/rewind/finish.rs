//! A rewind has happened, or is given up.

use kohort_group::history::{Cause, What};
use kohort_wire::{ErrorCode, messages::*};

use super::{Before, Goal, Rewind, Rewound, apply::no_rewind};
use crate::{
    Id, Record, Reply, Shard,
    group::{Group, Members},
    offsets::store,
    step::Step,
};

impl Shard {
    /// Writes the new offsets, and the end of the rewind behind them: what a crash leaves of the
    /// batch is either all of it, or a rewind that is still under way and is finished again.
    pub(super) fn finish_rewind(&mut self, group_id: &Id, step: &mut Step<'_>) {
        let Some(group) = self.groups.get(group_id) else {
            return;
        };
        let Some(rewind) = group.rewind.as_deref().cloned() else {
            return;
        };
        let rewound = rewound(group, &rewind, step.date());
        let offsets: Vec<Record> = rewind
            .goals
            .iter()
            .filter_map(|((topic, partition), goal)| {
                new_offset(group, topic, *partition, goal, step.date())
            })
            .collect();
        let happened = What::Rewound {
            by: rewind.by(),
            offsets: rewind.offsets(&group.offsets),
            took_ms: (step.date() - rewind.asked_at).max(0),
        };
        step.event(group_id, happened);
        for record in offsets {
            self.emit(record, step);
        }
        let generation = rewound.generation;
        self.emit(rewound.to_record(group_id), step);
        if let Some(mut consumer) = self.consumer_step(group_id, step) {
            consumer.hand_out_again(cause(&rewind));
        }
        if let Some(mut classic) = self.classic_step(group_id, step) {
            classic.write_members_before(generation);
        }
        self.end_rewind(group_id, &rewind, ErrorCode::NONE, step);
        self.rewind_happened(group_id, &rewind.waiting, step.date());
    }

    /// Ends a rewind that does not happen; nothing that was committed has changed.
    pub(super) fn give_up_rewind(
        &mut self,
        group_id: &Id,
        why: String,
        error_code: ErrorCode,
        step: &mut Step<'_>,
    ) {
        let Some(rewind) = self.rewind_mut(group_id).map(|rewind| rewind.clone()) else {
            return;
        };
        let given_up = What::RewindGivenUp {
            by: rewind.by(),
            why,
        };
        step.event(group_id, given_up);
        if let Some(mut consumer) = self.consumer_step(group_id, step) {
            consumer.hand_out_again(cause(&rewind));
        }
        self.end_rewind(group_id, &rewind, error_code, step);
    }

    fn end_rewind(
        &mut self,
        group_id: &Id,
        rewind: &Rewind,
        error_code: ErrorCode,
        step: &mut Step<'_>,
    ) {
        self.emit(no_rewind(group_id), step);
        for &token in &rewind.waiting {
            step.reply(token, answer(rewind, error_code));
        }
    }
}

/// What is to be remembered of the rewind. One to where the last one went, after which nobody has
/// committed anything, leaves as it is what an undo goes back to.
fn rewound(group: &Group, rewind: &Rewind, now: i64) -> Rewound {
    let before = rewind.goals.iter().map(|((topic, partition), goal)| {
        if let Some(before) = group.still_rewound(topic, *partition, goal) {
            return ((topic.clone(), *partition), before.clone());
        }
        let before = Before::of(&group.offsets, &(topic.clone(), *partition), goal);
        ((topic.clone(), *partition), before)
    });
    let fenced_before = group.rewound.as_ref().map(|rewound| &rewound.fenced);
    Rewound {
        at: now,
        generation: match &group.members {
            Members::Classic(classic) => classic.generation_without_owners(),
            Members::Consumer(_) => -1,
        },
        before: before.collect(),
        fenced: match fenced_before {
            Some(fenced) => fenced.union(&rewind.partitions),
            None => rewind.partitions.clone(),
        },
    }
}

fn new_offset(group: &Group, topic: &Id, partition: i32, goal: &Goal, now: i64) -> Option<Record> {
    if goal.offset < 0 {
        let committed = group.offsets.get(topic, partition);
        return committed.map(|_| store::tombstone(&group.id, topic, partition));
    }
    let value = OffsetCommitValue {
        offset: goal.offset,
        leader_epoch: goal.leader_epoch,
        metadata: (&*goal.metadata).into(),
        commit_timestamp: now,
        expire_timestamp: -1,
        topic_id: goal.topic_id,
    };
    let key = store::key(&group.id, topic, partition);
    Some(Record::OffsetCommit(key, Some(value)))
}

fn cause(rewind: &Rewind) -> Cause {
    Cause::RewindEnded {
        partitions: rewind.named(),
    }
}

fn answer(rewind: &Rewind, error_code: ErrorCode) -> Reply {
    let mut topics: Vec<OffsetCommitResponseTopic> = Vec::new();
    for (topic, partition) in rewind.goals.keys() {
        let answered = OffsetCommitResponsePartition {
            partition_index: *partition,
            error_code,
        };
        match topics.last_mut() {
            Some(last) if *last.name == **topic => last.partitions.push(answered),
            _ => topics.push(OffsetCommitResponseTopic {
                name: (&**topic).into(),
                partitions: vec![answered],
                ..OffsetCommitResponseTopic::default()
            }),
        }
    }
    Reply::OffsetCommit(OffsetCommitResponse {
        topics,
        ..OffsetCommitResponse::default()
    })
}
