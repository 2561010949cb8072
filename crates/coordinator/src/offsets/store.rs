//! The committed offsets of a group.

use std::collections::BTreeMap;

use kohort_wire::{Uuid, messages::*};

use crate::{Id, Millis, Record, Shard};

/// The committed offsets of a group.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupOffsets {
    /// Sorted, so that what follows from the order is the same each time.
    topics: BTreeMap<Id, BTreeMap<i32, CommittedOffset>>,
}

/// A committed offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommittedOffset {
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) metadata: Box<str>,
    pub(crate) committed_at: Millis,
    /// When it expires, if its client said so (OffsetCommit before version 5).
    pub(crate) expires_at: Option<Millis>,
    /// The topic that was meant, if that is known: one created again under the same name has
    /// another.
    pub(crate) topic_id: Uuid,
}

impl CommittedOffset {
    /// The offset as it is written.
    pub(crate) fn to_record(&self, group_id: &str, topic: &str, partition: i32) -> Record {
        let value = OffsetCommitValue {
            offset: self.offset,
            leader_epoch: self.leader_epoch,
            metadata: (&*self.metadata).into(),
            commit_timestamp: self.committed_at,
            expire_timestamp: self.expires_at.unwrap_or(-1),
            topic_id: self.topic_id,
        };
        Record::OffsetCommit(key(group_id, topic, partition), Some(value))
    }
}

impl GroupOffsets {
    pub(crate) fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    pub(crate) fn get(&self, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.topics.get(topic)?.get(&partition)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Id, &BTreeMap<i32, CommittedOffset>)> + '_ {
        self.topics.iter()
    }

    pub(crate) fn has_topic(&self, topic: &str) -> bool {
        self.topics.contains_key(topic)
    }

    /// Takes up what a record says.
    pub(crate) fn apply(&mut self, key: &OffsetCommitKey, value: Option<&OffsetCommitValue>) {
        let Some(value) = value else {
            return self.remove(&key.topic, key.partition);
        };
        let offset = CommittedOffset {
            offset: value.offset,
            leader_epoch: value.leader_epoch.max(-1),
            metadata: (&*value.metadata).into(),
            committed_at: value.commit_timestamp,
            expires_at: Some(value.expire_timestamp).filter(|&at| at >= 0),
            topic_id: value.topic_id,
        };
        self.set(&key.topic, key.partition, offset);
    }

    fn set(&mut self, topic: &str, partition: i32, offset: CommittedOffset) {
        match self.topics.get_mut(topic) {
            Some(partitions) => {
                partitions.insert(partition, offset);
            }
            None => {
                self.topics
                    .insert(topic.into(), BTreeMap::from([(partition, offset)]));
            }
        }
    }

    fn remove(&mut self, topic: &str, partition: i32) {
        if let Some(partitions) = self.topics.get_mut(topic) {
            partitions.remove(&partition);
            if partitions.is_empty() {
                self.topics.remove(topic);
            }
        }
    }

    /// The records that delete all of them.
    pub(crate) fn tombstones(&self, group_id: &str) -> Vec<Record> {
        let partitions = self
            .topics
            .iter()
            .flat_map(|(topic, partitions)| partitions.keys().map(move |&p| (topic, p)));
        partitions
            .map(|(topic, partition)| tombstone(group_id, topic, partition))
            .collect()
    }
}

/// The record that deletes an offset.
pub(crate) fn tombstone(group_id: &str, topic: &str, partition: i32) -> Record {
    Record::OffsetCommit(key(group_id, topic, partition), None)
}

pub(crate) fn key(group_id: &str, topic: &str, partition: i32) -> OffsetCommitKey {
    OffsetCommitKey {
        group: group_id.into(),
        topic: topic.into(),
        partition,
    }
}

impl Shard {
    pub(crate) fn apply_offset_commit(
        &mut self,
        key: &OffsetCommitKey,
        value: Option<&OffsetCommitValue>,
    ) {
        // Kafka, and kohort before it refused them, may have written negative offsets. Clients take
        // them for "nothing committed", and so they are.
        let value = value.filter(|value| value.offset >= 0);
        if value.is_some() {
            self.group_or_new(&key.group).offsets.apply(key, value);
        } else if let Some(group) = self.groups.get_mut(&*key.group) {
            group.offsets.apply(key, None);
            self.forget_if_nothing_is_left(&key.group);
        }
    }

    pub(crate) fn apply_legacy_offset_commit(
        &mut self,
        key: &LegacyOffsetCommitKey,
        value: Option<&LegacyOffsetCommitValue>,
    ) {
        let key = OffsetCommitKey {
            group: key.group.clone(),
            topic: key.topic.clone(),
            partition: key.partition,
        };
        let value = value.map(|value| OffsetCommitValue {
            offset: value.offset,
            metadata: value.metadata.clone(),
            commit_timestamp: value.commit_timestamp,
            ..OffsetCommitValue::default()
        });
        self.apply_offset_commit(&key, value.as_ref());
    }
}
