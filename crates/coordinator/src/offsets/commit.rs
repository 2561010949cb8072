//! OffsetCommit.

use kohort_group::history::{Few, Offset, What};
use kohort_wire::{ErrorCode, Uuid, messages::*};

use super::store;
use crate::{
    Caller, Record, Reply, Shard, Token,
    classic::ClassicState,
    group::{Group, Members},
    step::Step,
};

impl Shard {
    pub(crate) fn offset_commit(
        &mut self,
        token: Token,
        caller: &Caller,
        version: i16,
        request: OffsetCommitRequest,
        step: &mut Step<'_>,
    ) {
        if self.rewind(token, caller, &request, step) {
            return;
        }
        let topics = match self.validate_commit(version, &request) {
            Ok(()) if self.is_reset(&request) => {
                let before = self.committed(&request);
                let topics = self.commit(&request, step);
                self.tell_of_reset(caller, &request, before, step);
                topics
            }
            Ok(()) => self.commit(&request, step),
            Err(error_code) => {
                let topics = request.topics.iter();
                topics
                    .map(|topic| {
                        answer(topic, |partition| {
                            let place = self.topic_id_of(topic, partition);
                            place.err().unwrap_or(error_code)
                        })
                    })
                    .collect()
            }
        };
        let response = OffsetCommitResponse {
            topics,
            ..OffsetCommitResponse::default()
        };
        step.reply(token, Reply::OffsetCommit(response));
    }

    /// Whether the group accepts the commit. As in Kafka, only partitions that exist count: a request
    /// that names none of them is not a commit to the group at all.
    fn validate_commit(
        &self,
        version: i16,
        request: &OffsetCommitRequest,
    ) -> Result<(), ErrorCode> {
        let known: Vec<_> = self.known_partitions(request).collect();
        if known.is_empty() {
            return Ok(());
        }
        let epoch = request.generation_id_or_member_epoch;
        let instance_id = request.group_instance_id.as_deref();
        match self
            .groups
            .get(&*request.group_id)
            .map(|group| &group.members)
        {
            Some(Members::Classic(group)) => {
                group.validate_commit(&request.member_id, instance_id, epoch)
            }
            // A member that is behind its epoch may commit what it has owned since before (KIP-1251):
            // all that the request names, or nothing.
            Some(Members::Consumer(group)) => {
                let rule = group.validate_commit(version, request)?;
                known
                    .into_iter()
                    .filter(|(_, partition)| self.check_metadata(partition).is_ok())
                    .try_for_each(|(id, partition)| rule.check(id, partition.partition_index))
            }
            // A commit by a client that is not a member creates a group that only has offsets.
            None if epoch < 0 => Ok(()),
            None if version >= 9 => Err(ErrorCode::GROUP_ID_NOT_FOUND),
            None => Err(ErrorCode::ILLEGAL_GENERATION),
        }
    }

    /// The partitions of the request that exist, each with its topic's id.
    fn known_partitions<'a>(
        &'a self,
        request: &'a OffsetCommitRequest,
    ) -> impl Iterator<Item = (Uuid, &'a OffsetCommitRequestPartition)> {
        request.topics.iter().flat_map(move |topic| {
            let partitions = topic.partitions.iter();
            partitions.filter_map(move |partition| {
                let topic_id = self.topic_id_of(topic, partition).ok()?;
                Some((topic_id, partition))
            })
        })
    }

    /// The id of the topic, if the partition exists and no other topic of that name is meant.
    fn topic_id_of(
        &self,
        topic: &OffsetCommitRequestTopic,
        partition: &OffsetCommitRequestPartition,
    ) -> Result<Uuid, ErrorCode> {
        let known = self.topics.get(&topic.name);
        let known =
            known.filter(|known| (0..known.partition_count).contains(&partition.partition_index));
        let topic_id = known.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?.id;
        if topic.topic_id.is_zero() || topic.topic_id == topic_id {
            Ok(topic_id)
        } else {
            Err(ErrorCode::UNKNOWN_TOPIC_ID)
        }
    }

    fn check_metadata(&self, partition: &OffsetCommitRequestPartition) -> Result<(), ErrorCode> {
        let metadata = partition.committed_metadata.as_deref().unwrap_or_default();
        if is_longer(metadata, self.config.offset_metadata_max_bytes) {
            Err(ErrorCode::OFFSET_METADATA_TOO_LARGE)
        } else {
            Ok(())
        }
    }

    /// Whether an administrator sets the offsets of a group whose members are away. A client
    /// that commits for a group that never had members is a consumer without a membership.
    fn is_reset(&self, request: &OffsetCommitRequest) -> bool {
        let has_had_members = |group: &Group| match &group.members {
            Members::Classic(classic) => classic.protocol_type.is_some(),
            Members::Consumer(_) => true,
        };
        request.generation_id_or_member_epoch < 0
            && request.member_id.is_empty()
            && self
                .groups
                .get(&*request.group_id)
                .is_some_and(|group| group.is_empty() && has_had_members(group))
    }

    fn committed(&self, request: &OffsetCommitRequest) -> Vec<Option<i64>> {
        let group = self.groups.get(&*request.group_id);
        let committed =
            |topic: &str, partition: i32| Some(group?.offsets.get(topic, partition)?.offset);
        let topics = request.topics.iter();
        topics
            .flat_map(|topic| {
                let partitions = topic.partitions.iter();
                partitions.map(|partition| committed(&topic.name, partition.partition_index))
            })
            .collect()
    }

    fn tell_of_reset(
        &self,
        caller: &Caller,
        request: &OffsetCommitRequest,
        before: Vec<Option<i64>>,
        step: &mut Step<'_>,
    ) {
        let now = self.committed(request);
        let named = request.topics.iter().flat_map(|topic| {
            let partitions = topic.partitions.iter();
            partitions.map(|partition| (&topic.name, partition.partition_index))
        });
        let offsets: Few<Offset> = named
            .zip(before.into_iter().zip(now))
            .filter_map(|((topic, partition), (from, to))| {
                Some(Offset {
                    partition: format!("{topic}-{partition}"),
                    from,
                    to: to.filter(|_| from != to)?,
                })
            })
            .collect();
        if let Some(group) = self.groups.get(&*request.group_id)
            && !offsets.is_empty()
        {
            let by = caller.into();
            step.event(&group.id, What::OffsetsReset { by, offsets });
        }
    }

    fn commit(
        &mut self,
        request: &OffsetCommitRequest,
        step: &mut Step<'_>,
    ) -> Vec<OffsetCommitResponseTopic> {
        // A commit is as good as a heartbeat in the classic protocol.
        if self.known_partitions(request).next().is_some()
            && let Some(mut classic) = self.classic_step(&request.group_id, step)
            && matches!(
                classic.group.state,
                ClassicState::Stable | ClassicState::PreparingRebalance
            )
        {
            classic.restart_session(&request.member_id);
        }
        let topics = request.topics.iter();
        topics
            .map(|topic| {
                answer(topic, |partition| {
                    match self.commit_partition(request, topic, partition, step) {
                        Ok(()) => ErrorCode::NONE,
                        Err(error_code) => error_code,
                    }
                })
            })
            .collect()
    }

    fn commit_partition(
        &mut self,
        request: &OffsetCommitRequest,
        topic: &OffsetCommitRequestTopic,
        partition: &OffsetCommitRequestPartition,
        step: &mut Step<'_>,
    ) -> Result<(), ErrorCode> {
        let topic_id = self.topic_id_of(topic, partition)?;
        self.check_metadata(partition)?;
        check_numbers(partition)?;
        if let Some(group) = self.consumer_group(&request.group_id) {
            group.refuse_other_owner(request, topic_id, partition.partition_index)?;
        }
        if let Some(group) = self.groups.get_mut(&*request.group_id) {
            let place = (topic_id, &*topic.name);
            group.refuse_former_owner(request, place, partition.partition_index)?;
        }
        let metadata = partition.committed_metadata.as_deref().unwrap_or_default();
        let key = store::key(&request.group_id, &topic.name, partition.partition_index);
        let value = OffsetCommitValue {
            offset: partition.committed_offset,
            leader_epoch: partition.committed_leader_epoch,
            metadata: metadata.into(),
            commit_timestamp: step.date(),
            expire_timestamp: match request.retention_time_ms {
                ..0 => -1,
                retention_ms => step.date().saturating_add(retention_ms),
            },
            // Whatever the request names it by: when a topic is created again under the name, the
            // offset is not one of its own.
            topic_id,
        };
        self.emit(Record::OffsetCommit(key, Some(value)), step);
        Ok(())
    }
}

/// Refuses what is not an offset, and what is not a leader's epoch. Kafka stores such numbers; clients
/// read them back as "nothing committed", or fail.
fn check_numbers(partition: &OffsetCommitRequestPartition) -> Result<(), ErrorCode> {
    if partition.committed_offset < 0 {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    check_leader_epoch(partition)
}

/// Refuses a negative leader epoch other than -1, which means that the committer does not know it.
pub(crate) fn check_leader_epoch(
    partition: &OffsetCommitRequestPartition,
) -> Result<(), ErrorCode> {
    if partition.committed_leader_epoch < -1 {
        Err(ErrorCode::INVALID_REQUEST)
    } else {
        Ok(())
    }
}

/// Whether a text has more than `max` characters as Java counts them, which is what Kafka limits.
pub(crate) fn is_longer(text: &str, max: usize) -> bool {
    text.len() > max && text.encode_utf16().count() > max
}

fn answer(
    topic: &OffsetCommitRequestTopic,
    mut outcome: impl FnMut(&OffsetCommitRequestPartition) -> ErrorCode,
) -> OffsetCommitResponseTopic {
    let partitions = topic
        .partitions
        .iter()
        .map(|partition| OffsetCommitResponsePartition {
            partition_index: partition.partition_index,
            error_code: outcome(partition),
        });
    OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: partitions.collect(),
    }
}
