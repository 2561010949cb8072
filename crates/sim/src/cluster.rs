//! The topics and their records.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use kohort_coordinator::{LogStarts, Topic, Topics, inspect::Place};
use kohort_member::Millis;
use kohort_wire::{ByteString, Uuid};

use crate::{log::Logs, random::Random};

/// The topics of the cluster, and how many records each partition has. A record is known by its
/// topic's id, its partition and its offset; more it does not need to have.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    topics: BTreeMap<ByteString, TopicModel>,
    /// The names of all topics that there ever were.
    names: BTreeMap<Uuid, ByteString>,
    starts: Arc<Starts>,
    pub(crate) logs: Logs,
    version: i64,
    ids: u128,
}

/// Where logs start that do not start at 0. Whoever asks is told how it is now.
#[derive(Debug, Default)]
struct Starts(RwLock<BTreeMap<Place, i64>>);

impl LogStarts for Starts {
    fn log_start_offset(&self, topic_id: Uuid, partition: i32) -> Option<i64> {
        let starts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        starts.get(&(topic_id, partition)).copied()
    }
}

#[derive(Debug)]
pub(crate) struct TopicModel {
    pub(crate) id: Uuid,
    /// By the broker's clock.
    pub(crate) created_at: Millis,
    /// The offset after the last record of each partition.
    pub(crate) ends: Vec<i64>,
}

impl Cluster {
    pub(crate) fn create(&mut self, name: &str, partitions: i32, created_at: Millis) {
        self.ids += 1;
        self.version += 1;
        // The first bits of ids tell them apart when they are printed. There may be more topics than
        // a byte can count.
        let id = Uuid((self.ids & 0xff) << 120 | (self.ids >> 8) << 64 | 0x5ea);
        let name = ByteString::from(name);
        self.names.insert(id, name.clone());
        let ends = vec![0; partitions as usize];
        let topic = TopicModel {
            id,
            created_at,
            ends,
        };
        self.topics.insert(name, topic);
    }

    pub(crate) fn delete(&mut self, name: &str) -> bool {
        self.version += 1;
        self.topics.remove(name).is_some()
    }

    pub(crate) fn grow(&mut self, name: &str, by: usize) {
        self.version += 1;
        if let Some(topic) = self.topics.get_mut(name) {
            topic.ends.extend(std::iter::repeat_n(0, by));
        }
    }

    pub(crate) fn produce(
        &mut self,
        name: &str,
        partition: usize,
        records: i64,
        random: &mut Random,
    ) {
        if let Some(topic) = self.topics.get_mut(name)
            && let Some(end) = topic.ends.get_mut(partition)
        {
            let place = (topic.id, partition as i32);
            *end = self.logs.append(place, records, random);
        }
    }

    /// Removes the records before an offset, as retention and DeleteRecords do.
    pub(crate) fn remove_before(&mut self, place: Place, offset: i64) {
        let mut starts = self
            .starts
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        starts.insert(place, offset);
    }

    /// The offset of the first record that is left.
    pub(crate) fn start(&self, id: Uuid, partition: i32) -> i64 {
        let start = self.starts.log_start_offset(id, partition);
        start.unwrap_or_default()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&TopicModel> {
        self.topics.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ByteString, &TopicModel)> {
        self.topics.iter()
    }

    /// The topic of an id, if it still exists.
    pub(crate) fn by_id(&self, id: Uuid) -> Option<&TopicModel> {
        let topic = self.topics.get(self.names.get(&id)?)?;
        (topic.id == id).then_some(topic)
    }

    /// The ids of all topics that ever had the name.
    pub(crate) fn ids(&self, name: &str) -> Vec<Uuid> {
        let names = self.names.iter().filter(|(_, other)| ***other == *name);
        names.map(|(id, _)| *id).collect()
    }

    /// Whether there has been more than one topic of the name.
    pub(crate) fn was_recreated(&self, name: &str) -> bool {
        self.ids(name).len() > 1
    }

    /// What a topic was called, whether it still exists or not.
    pub(crate) fn name(&self, id: Uuid) -> Option<&ByteString> {
        self.names.get(&id)
    }

    /// The offset after the last record; `None` if there is no such partition.
    pub(crate) fn end(&self, id: Uuid, partition: i32) -> Option<i64> {
        self.by_id(id)?.ends.get(partition as usize).copied()
    }

    /// Grows with each change.
    pub(crate) fn version(&self) -> i64 {
        self.version
    }

    /// As the coordinator knows them.
    pub(crate) fn snapshot(&self) -> Arc<Topics> {
        let topics = self.topics.iter().map(|(name, topic)| Topic {
            id: topic.id,
            name: Arc::from(&**name),
            partition_count: topic.ends.len() as i32,
            is_internal: false,
            created_at: topic.created_at,
        });
        let topics = Topics::new(self.version, topics);
        Arc::new(topics.with_log_starts(self.starts.clone()))
    }
}
