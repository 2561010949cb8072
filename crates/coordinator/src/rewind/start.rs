//! A rewind is asked for.

use std::collections::BTreeMap;

use kohort_group::{
    history::What,
    rewind::{MarkError, RewindMark},
};
use kohort_wire::{ErrorCode, messages::*};

use super::{Goal, Rewind};
use crate::{
    Caller, Id, Reply, Shard, Token,
    group::Group,
    offsets::{check_leader_epoch, is_longer},
    step::Step,
};

/// An offset below this is none at all.
const FORGET: i64 = -1;

impl Shard {
    /// Takes a commit that asks for a rewind. `false`: it does not.
    pub(crate) fn rewind(
        &mut self,
        token: Token,
        caller: &Caller,
        request: &OffsetCommitRequest,
        step: &mut Step<'_>,
    ) -> bool {
        let has_members = self
            .groups
            .get(&*request.group_id)
            .is_some_and(|group| !group.is_empty());
        let marks = match RewindMark::read_all(request) {
            Ok(Some(marks)) => marks,
            Ok(None) if self.config.rewind_unmarked_commits && has_members => {
                match RewindMark::unmarked(request) {
                    Some(marks) => marks,
                    None => return false,
                }
            }
            Ok(None) => return false,
            Err(error) => {
                self.refuse_mark(token, caller, request, &error, step);
                return true;
            }
        };
        if marks.iter().flatten().any(|mark| mark.cancel) {
            self.cancel_rewind(token, caller, request, step);
            return true;
        }
        let goals = match self.goals(request, &marks) {
            Ok(goals) => goals,
            Err(refused) => {
                let response = OffsetCommitResponse {
                    topics: refused,
                    ..OffsetCommitResponse::default()
                };
                step.reply(token, Reply::OffsetCommit(response));
                return true;
            }
        };
        if goals.is_empty() {
            step.reply(token, answer(request, ErrorCode::NONE));
            return true;
        }
        let group = self.group_or_new(&request.group_id);
        let group_id = group.id.clone();
        match join_or_refuse(group, token, caller, &goals) {
            Ok(true) => return true,
            Ok(false) => {}
            Err((error_code, why)) => {
                if let Some(why) = why {
                    step.event(&group_id, refused(caller, why));
                }
                step.reply(token, answer(request, error_code));
                return true;
            }
        }
        if self.is_repeated(caller, &group_id, &goals, step) {
            self.told_of_rewind(&group_id, [token]);
            step.reply(token, answer(request, ErrorCode::NONE));
            return true;
        }
        self.start(token, caller, &group_id, goals, step);
        true
    }

    fn refuse_mark(
        &mut self,
        token: Token,
        caller: &Caller,
        request: &OffsetCommitRequest,
        error: &MarkError,
        step: &mut Step<'_>,
    ) {
        let group_id = Id::from(&*request.group_id);
        step.event(&group_id, refused(caller, error));
        step.reply(token, answer(request, ErrorCode::INVALID_REQUEST));
    }

    /// Where to, or why not: then what is wrong with some partitions keeps the others as they are.
    fn goals(
        &self,
        request: &OffsetCommitRequest,
        marks: &[Vec<RewindMark<'_>>],
    ) -> Result<BTreeMap<(Id, i32), Goal>, Vec<OffsetCommitResponseTopic>> {
        let mut goals = BTreeMap::new();
        let mut is_refused = false;
        let mut topics = Vec::with_capacity(request.topics.len());
        for (topic, marks) in request.topics.iter().zip(marks) {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for (partition, mark) in topic.partitions.iter().zip(marks) {
                let error_code = match self.goal(topic, partition, mark) {
                    Ok((place, goal)) => match goals.insert(place, goal) {
                        None => ErrorCode::OPERATION_NOT_ATTEMPTED,
                        // Named twice: which one is meant?
                        Some(_) => ErrorCode::INVALID_REQUEST,
                    },
                    Err(error_code) => error_code,
                };
                is_refused |= error_code != ErrorCode::OPERATION_NOT_ATTEMPTED;
                partitions.push(OffsetCommitResponsePartition {
                    partition_index: partition.partition_index,
                    error_code,
                });
            }
            topics.push(OffsetCommitResponseTopic {
                name: topic.name.clone(),
                topic_id: topic.topic_id,
                partitions,
            });
        }
        if is_refused { Err(topics) } else { Ok(goals) }
    }

    fn goal(
        &self,
        topic: &OffsetCommitRequestTopic,
        partition: &OffsetCommitRequestPartition,
        mark: &RewindMark<'_>,
    ) -> Result<((Id, i32), Goal), ErrorCode> {
        let known = self.topics.get(&topic.name);
        let known = known
            .filter(|known| (0..known.partition_count).contains(&partition.partition_index))
            .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        if partition.committed_offset < FORGET {
            return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
        }
        check_leader_epoch(partition)?;
        let metadata = partition.committed_metadata.as_deref().unwrap_or_default();
        if is_longer(metadata, self.config.offset_metadata_max_bytes) {
            return Err(ErrorCode::OFFSET_METADATA_TOO_LARGE);
        }
        let goal = Goal {
            topic_id: known.id,
            offset: partition.committed_offset,
            leader_epoch: partition.committed_leader_epoch,
            metadata: mark.metadata.into(),
        };
        Ok(((known.name.clone(), partition.partition_index), goal))
    }

    fn start(
        &mut self,
        token: Token,
        caller: &Caller,
        group_id: &Id,
        goals: BTreeMap<(Id, i32), Goal>,
        step: &mut Step<'_>,
    ) {
        let asker = (&*caller.client_id, &*caller.client_host);
        let rewind = Rewind::new(step.date(), asker, goals);
        if let Some(group) = self.groups.get(group_id) {
            let asked = What::RewindAsked {
                by: caller.into(),
                offsets: rewind.offsets(&group.offsets),
            };
            step.event(group_id, asked);
        }
        self.emit(rewind.to_record(group_id), step);
        if let Some(rewind) = self.rewind_mut(group_id) {
            rewind.waiting.push(token);
        }
    }

    pub(super) fn rewind_mut(&mut self, group_id: &Id) -> Option<&mut Rewind> {
        self.groups.get_mut(group_id)?.rewind.as_deref_mut()
    }
}

pub(super) fn refused(caller: &Caller, why: impl ToString) -> What {
    What::RewindRefused {
        by: caller.into(),
        why: why.to_string(),
    }
}

/// Whether the very same rewind is under way already, which the asker then waits for; or why the
/// group cannot be rewound now, unless the asker was told before.
fn join_or_refuse(
    group: &mut Group,
    token: Token,
    caller: &Caller,
    goals: &BTreeMap<(Id, i32), Goal>,
) -> Result<bool, (ErrorCode, Option<&'static str>)> {
    if let Some(rewind) = &mut group.rewind {
        if rewind.goals != *goals {
            // Java's Admin tries again until this one is over, and so has its turn.
            let asker = (Id::from(&*caller.client_id), Id::from(&*caller.client_host));
            let why = rewind.refused.insert(asker);
            let why = why.then_some("another one is under way");
            return Err((ErrorCode::REBALANCE_IN_PROGRESS, why));
        }
        rewind.waiting.push(token);
        return Ok(true);
    }
    match group.classic() {
        Some(classic) if !classic.is_empty() && !classic.is_consumer_type() => Err((
            ErrorCode::NON_EMPTY_GROUP,
            Some("its members are no consumers, they have to be stopped first"),
        )),
        _ => Ok(false),
    }
}

pub(super) fn answer(request: &OffsetCommitRequest, error_code: ErrorCode) -> Reply {
    let topics = request
        .topics
        .iter()
        .map(|topic| OffsetCommitResponseTopic {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions: topic
                .partitions
                .iter()
                .map(|partition| OffsetCommitResponsePartition {
                    partition_index: partition.partition_index,
                    error_code,
                })
                .collect(),
        });
    Reply::OffsetCommit(OffsetCommitResponse {
        topics: topics.collect(),
        ..OffsetCommitResponse::default()
    })
}
