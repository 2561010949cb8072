//! OffsetDelete, and the offsets of deleted topics.

use kohort_group::history::{Few, What};
use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::store;
use crate::{
    Id, Reply, Shard, Token,
    group::{Group, Members},
    step::Step,
};

impl Group {
    /// Whether a member subscribes to a topic, or may do so.
    pub(crate) fn subscribes_to(&self, topic: &str) -> bool {
        match &self.members {
            Members::Classic(group) => group.subscribes_to(topic),
            Members::Consumer(group) => group.may_subscribe_to(topic),
        }
    }
}

/// What the request will delete.
fn deleted(group: &Group, request: &OffsetDeleteRequest) -> (Id, Few<String>) {
    let topics = request.topics.iter();
    let partitions = topics
        .filter(|topic| !group.subscribes_to(&topic.name))
        .flat_map(|topic| {
            let indexes = topic.partitions.iter().map(|it| it.partition_index);
            let committed =
                indexes.filter(|&index| group.offsets.get(&topic.name, index).is_some());
            committed.map(|index| format!("{}-{index}", topic.name))
        });
    (group.id.clone(), partitions.collect())
}

impl Shard {
    pub(crate) fn offset_delete(
        &mut self,
        token: Token,
        request: OffsetDeleteRequest,
        step: &mut Step<'_>,
    ) {
        let mut response = OffsetDeleteResponse::default();
        match self.validate_offset_delete(&request) {
            Ok(()) => {
                let before = self.groups.get(&*request.group_id);
                let deleted = before.map(|group| deleted(group, &request));
                response.topics = request
                    .topics
                    .iter()
                    .map(|topic| self.delete_topic_offsets(&request.group_id, topic, step))
                    .collect();
                if let Some((group_id, partitions)) = deleted
                    && !partitions.is_empty()
                {
                    step.event(&group_id, What::OffsetsDeleted { partitions });
                }
            }
            Err(error_code) => response.error_code = error_code,
        }
        step.reply(token, Reply::OffsetDelete(response));
    }

    /// Of a group with members of another kind than consumers the coordinator cannot tell which
    /// topics are in use.
    fn validate_offset_delete(&self, request: &OffsetDeleteRequest) -> Result<(), ErrorCode> {
        if request.group_id.is_empty() {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        let group = self
            .groups
            .get(&*request.group_id)
            .ok_or(ErrorCode::GROUP_ID_NOT_FOUND)?;
        match group.classic() {
            Some(classic) if !classic.is_empty() && !classic.is_consumer_type() => {
                Err(ErrorCode::NON_EMPTY_GROUP)
            }
            _ => Ok(()),
        }
    }

    fn delete_topic_offsets(
        &mut self,
        group_id: &str,
        topic: &OffsetDeleteRequestTopic,
        step: &mut Step<'_>,
    ) -> OffsetDeleteResponseTopic {
        let in_use = self
            .groups
            .get(group_id)
            .is_some_and(|group| group.subscribes_to(&topic.name));
        let partitions = topic.partitions.iter().map(|partition| {
            let partition_index = partition.partition_index;
            let error_code = if in_use {
                ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC
            } else {
                self.delete_offset(group_id, &topic.name, partition_index, step);
                ErrorCode::NONE
            };
            OffsetDeleteResponsePartition {
                partition_index,
                error_code,
            }
        });
        let partitions = partitions.collect();
        OffsetDeleteResponseTopic {
            name: topic.name.clone(),
            partitions,
        }
    }

    fn delete_offset(&mut self, group_id: &str, topic: &str, partition: i32, step: &mut Step<'_>) {
        let group = self.groups.get(group_id);
        if group.is_some_and(|group| group.offsets.get(topic, partition).is_some()) {
            self.emit(store::tombstone(group_id, topic, partition), step);
        }
    }

    pub(crate) fn topics_deleted(
        &mut self,
        token: Token,
        topics: Vec<ByteString>,
        step: &mut Step<'_>,
    ) {
        self.forget_offsets_of(&topics, step);
        // The news of it may be yet to come: then the topic seems to be there, and its offsets stay
        // for so long.
        let is_known = |topic: &ByteString| self.topics.get(topic).is_some();
        let known: Vec<ByteString> = topics.into_iter().filter(is_known).collect();
        self.deleted_topics.extend(known);
        step.reply(token, Reply::TopicsDeleted);
    }

    /// There is news of topics: what was deleted is known to be.
    pub(crate) fn finish_topics_deleted(&mut self, step: &mut Step<'_>) {
        let topics = std::mem::take(&mut self.deleted_topics);
        self.forget_offsets_of(&topics, step);
    }

    fn forget_offsets_of(&mut self, topics: &[ByteString], step: &mut Step<'_>) {
        if topics.is_empty() {
            return;
        }
        let mut records = Vec::new();
        for group in self.groups.values() {
            for (topic, partitions) in group.offsets.iter() {
                if topics.iter().any(|deleted| **deleted == **topic) {
                    // What was committed for a topic that has come again meanwhile stays.
                    let id = self.topics.get(topic).map(|topic| topic.id);
                    let gone = partitions
                        .iter()
                        .filter(|(_, offset)| Some(offset.topic_id) != id)
                        .map(|(&p, _)| store::tombstone(&group.id, topic, p));
                    records.extend(gone);
                }
            }
        }
        for record in records {
            self.emit(record, step);
        }
    }
}
