//! Commits that ask for a rewind of a live group: the coordinator decides, but only the broker has
//! the logs that the offsets have to lie in.

use std::sync::Arc;

use kohort_group::rewind::{MARK, RewindMark};
use kohort_wire::{ErrorCode, messages::*};

use crate::{
    settings::{BROKER, View},
    topics::Snapshot,
};

/// The offset that stands for none: what was committed is to be forgotten.
const NO_OFFSET: i64 = -1;

/// What a commit is.
#[derive(Debug, PartialEq)]
pub(super) enum Commit {
    /// A commit as always, or a rewind that the coordinator refuses.
    Plain(OffsetCommitRequest),
    /// Perhaps a rewind; its offsets lie within the logs.
    Rewind(OffsetCommitRequest),
    /// A rewind to where no log is.
    Refused(Vec<OffsetCommitResponseTopic>),
}

/// Whether it has to be examined.
pub(super) fn may_be_rewind(snapshot: &Snapshot, request: &OffsetCommitRequest) -> bool {
    if request.generation_id_or_member_epoch >= 0 || !request.member_id.is_empty() {
        return false;
    }
    let mut partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    let is_marked = partitions.any(|partition| {
        let metadata = partition.committed_metadata.as_deref();
        metadata.is_some_and(|metadata| metadata.starts_with(MARK))
    });
    is_marked || is_unmarked_rewind(snapshot)
}

/// Looks at a commit. Reads the bounds of logs if it asks for a rewind, which may take time.
pub(super) fn examine(snapshot: &Arc<Snapshot>, request: OffsetCommitRequest) -> Commit {
    let marks = match RewindMark::read_all(&request) {
        // Where the logs are does not matter to who gives a rewind up.
        Ok(Some(marks)) if marks.iter().flatten().any(|mark| mark.cancel) => {
            return Commit::Plain(request);
        }
        Ok(Some(marks)) => marks
            .into_iter()
            .map(|marks| marks.into_iter().map(|mark| mark.clamp).collect())
            .collect(),
        Ok(None) if is_unmarked_rewind(snapshot) => Vec::new(),
        Ok(None) | Err(_) => return Commit::Plain(request),
    };
    bounded(snapshot, request, &marks)
}

/// Whether groups may be rewound although nothing is marked.
fn is_unmarked_rewind(snapshot: &Snapshot) -> bool {
    let settings = View {
        table: BROKER,
        values: &snapshot.effective,
    };
    settings.flag("kohort.group.rewind.unmarked.commits")
}

/// Clamps offsets where that is asked for (`clamps`, by topic and partition), and refuses all if
/// another one is outside of its log.
fn bounded(snapshot: &Snapshot, mut request: OffsetCommitRequest, clamps: &[Vec<bool>]) -> Commit {
    let mut is_refused = false;
    let mut topics = Vec::with_capacity(request.topics.len());
    for (topic_index, topic) in request.topics.iter_mut().enumerate() {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for (index, partition) in topic.partitions.iter_mut().enumerate() {
            let clamps = clamps.get(topic_index).and_then(|clamps| clamps.get(index));
            let clamp = clamps.copied().unwrap_or_default();
            let error_code = match bound(snapshot, &topic.name, partition, clamp) {
                Ok(()) => ErrorCode::OPERATION_NOT_ATTEMPTED,
                Err(error_code) => {
                    is_refused = true;
                    error_code
                }
            };
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
    if is_refused {
        Commit::Refused(topics)
    } else {
        Commit::Rewind(request)
    }
}

fn bound(
    snapshot: &Snapshot,
    topic: &str,
    partition: &mut OffsetCommitRequestPartition,
    clamp: bool,
) -> Result<(), ErrorCode> {
    if partition.committed_offset == NO_OFFSET {
        return Ok(());
    }
    let log = snapshot
        .partition(topic, partition.partition_index)?
        .log()
        .map_err(|error| error.code())?;
    let within = log.start_offset()..=log.end_offset();
    if within.contains(&partition.committed_offset) {
        return Ok(());
    }
    if !clamp {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    partition.committed_offset = partition
        .committed_offset
        .clamp(*within.start(), *within.end());
    partition.committed_leader_epoch = -1;
    Ok(())
}
