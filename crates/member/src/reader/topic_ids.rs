//! Topics that are deleted and created again: nothing of the old topic counts for the new one.

use kohort_wire::{ByteString, Uuid};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Reader, Seek, TopicPartition};

/// The ids of topics that have been deleted and created again since, by name.
#[derive(Debug, Default)]
pub(crate) struct ReplacedTopics(FxHashMap<ByteString, FxHashSet<Uuid>>);

impl ReplacedTopics {
    pub(crate) fn contains(&self, topic: &ByteString) -> bool {
        self.0.contains_key(topic)
    }

    fn is_replaced(&self, topic: &ByteString, id: Uuid) -> bool {
        self.0.get(topic).is_some_and(|ids| ids.contains(&id))
    }
}

impl Reader {
    /// The ids of the topics of these partitions, as far as they are known.
    pub fn topic_ids<'a>(
        &self,
        partitions: impl IntoIterator<Item = &'a TopicPartition>,
    ) -> FxHashMap<ByteString, Uuid> {
        let ids = partitions.into_iter().filter_map(|name| {
            let id = self.partitions.get(name)?.topic_id?;
            Some((name.topic.clone(), id))
        });
        ids.collect()
    }

    /// Compares the ids of topics with those that brokers know. Where a topic was replaced, reading
    /// starts again in the new one, unless the coordinator is about to assign it.
    pub(crate) fn note_topic_ids(&mut self, id_of: impl Fn(&str) -> Option<Uuid>) {
        let mut replaced = Vec::new();
        for (name, partition) in &mut self.partitions {
            let Some(id) = id_of(&name.topic).filter(|id| !id.is_zero()) else {
                continue;
            };
            if partition.topic_id == Some(id) || self.replaced_topics.is_replaced(&name.topic, id) {
                continue;
            }
            match partition.topic_id {
                None => partition.topic_id = Some(id),
                Some(old) => replaced.push((name.clone(), old, id)),
            }
        }
        for (name, old, id) in replaced {
            let ids = self.replaced_topics.0.entry(name.topic.clone());
            ids.or_default().insert(old);
            let partition = self.partitions.get(&name);
            if partition.is_none_or(|partition| partition.is_assigned_by_id) {
                continue;
            }
            tracing::warn!(partition = %name, "the topic was deleted and created again");
            let Some(before) = self.remove(&name) else {
                continue;
            };
            let start = if self.config.has_group {
                Seek::Committed
            } else {
                Seek::Earliest
            };
            self.insert(name.clone(), start);
            if let Some(partition) = self.partitions.get_mut(&name) {
                partition.topic_id = Some(id);
                partition.is_replacement = true;
                partition.is_paused = before.is_paused;
                partition.is_suspended = before.is_suspended;
            }
        }
    }
}
