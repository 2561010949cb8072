//! OffsetFetch.

use kohort_wire::{ErrorCode, Uuid, messages::*};

use super::store::{CommittedOffset, GroupOffsets};
use crate::{Reply, Shard, Token, Topics, group::Members, step::Step};

impl Shard {
    pub(crate) fn offset_fetch(
        &mut self,
        token: Token,
        request: OffsetFetchRequestGroup,
        _require_stable: bool,
        step: &mut Step<'_>,
    ) {
        let mut response = OffsetFetchResponseGroup {
            group_id: request.group_id.clone(),
            ..OffsetFetchResponseGroup::default()
        };
        if let Some(topics) = self.fetch_rewind(&request) {
            response.topics = topics;
            return step.reply(token, Reply::OffsetFetch(response));
        }
        match self.validate_fetch(&request) {
            Ok(()) => {
                self.look_for_classic_members(&request.group_id, step);
                let offsets = self
                    .groups
                    .get(&*request.group_id)
                    .map(|group| &group.offsets);
                response.topics = match &request.topics {
                    Some(topics) => {
                        let topics = topics.iter();
                        topics.map(|t| some(t, offsets, &self.topics)).collect()
                    }
                    None => {
                        let all = offsets.map(|offsets| all(offsets, &self.topics));
                        all.unwrap_or_default()
                    }
                };
            }
            Err(error_code) => response.error_code = error_code,
        }
        step.reply(token, Reply::OffsetFetch(response));
    }

    /// Members of the classic protocol know topics by name. Of the names that they were assigned
    /// there may be other topics by now, which are new to the group: they start at their first record.
    fn look_for_classic_members(&mut self, group_id: &str, step: &mut Step<'_>) {
        if let Some(mut classic) = self.classic_step(group_id, step) {
            if !classic.group.is_empty() {
                classic.look_at_new_topics();
            }
        } else if let Some(mut consumer) = self.consumer_step(group_id, step) {
            consumer.look_for_classic_members();
        }
    }

    fn validate_fetch(&self, request: &OffsetFetchRequestGroup) -> Result<(), ErrorCode> {
        let group = self.groups.get(&*request.group_id);
        match group.map(|group| &group.members) {
            Some(Members::Consumer(group)) => group.validate_fetch(request),
            Some(Members::Classic(_)) | None => Ok(()),
        }
    }
}

fn some(
    topic: &OffsetFetchRequestTopics,
    offsets: Option<&GroupOffsets>,
    known: &Topics,
) -> OffsetFetchResponseTopics {
    // A name means the topic that has it now.
    let wanted = match (topic.topic_id, known.get(&topic.name)) {
        (Uuid::ZERO, Some(known)) => known.id,
        (topic_id, _) => topic_id,
    };
    let partitions = topic.partition_indexes.iter().map(|&partition| {
        let committed = offsets.and_then(|offsets| offsets.get(&topic.name, partition));
        answer(
            partition,
            committed.filter(|committed| is_of(committed, wanted)),
        )
    });
    OffsetFetchResponseTopics {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: partitions.collect(),
    }
}

fn all(offsets: &GroupOffsets, known: &Topics) -> Vec<OffsetFetchResponseTopics> {
    let topics = offsets.iter().map(|(topic, partitions)| {
        let wanted = known.get(topic).map_or(Uuid::ZERO, |known| known.id);
        OffsetFetchResponseTopics {
            name: (&**topic).into(),
            partitions: partitions
                .iter()
                .filter(|(_, committed)| is_of(committed, wanted))
                .map(|(&partition, committed)| answer(partition, Some(committed)))
                .collect(),
            ..OffsetFetchResponseTopics::default()
        }
    });
    topics
        .filter(|topic| !topic.partitions.is_empty())
        .collect()
}

/// Whether an offset was committed for this topic, and not for one that had its name before.
fn is_of(committed: &CommittedOffset, topic_id: Uuid) -> bool {
    [committed.topic_id, topic_id].contains(&Uuid::ZERO) || committed.topic_id == topic_id
}

/// A partition without an offset gets −1 and no error.
fn answer(partition: i32, committed: Option<&CommittedOffset>) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index: partition,
        committed_offset: committed.map_or(-1, |committed| committed.offset),
        committed_leader_epoch: committed.map_or(-1, |committed| committed.leader_epoch),
        metadata: Some(committed.map(|c| (&*c.metadata).into()).unwrap_or_default()),
        error_code: ErrorCode::NONE,
    }
}
