//! The current owner of each partition.

use kohort_group::TopicPartitions;
use kohort_wire::Uuid;
use rustc_hash::FxHashMap;

use crate::Id;

/// The current owner of each partition: the member that has it assigned, or still has to revoke it.
///
/// Kafka keeps the owner's epoch for each partition, which two owners may share (KAFKA-19974); the
/// owner itself says the same and cannot be mistaken for another. While a compacted log is loaded, a
/// member may appear to own what another has been given since: the last to take a partition has it,
/// and only who has it can let go of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owners(FxHashMap<Uuid, FxHashMap<i32, Id>>);

impl Owners {
    pub(crate) fn owner(&self, topic_id: Uuid, partition: i32) -> Option<&Id> {
        self.0.get(&topic_id)?.get(&partition)
    }

    /// Every owned partition, in no particular order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Uuid, i32, &Id)> {
        self.0.iter().flat_map(|(topic_id, owners)| {
            owners
                .iter()
                .map(|(&partition, owner)| (*topic_id, partition, owner))
        })
    }

    pub(crate) fn take(&mut self, partitions: &TopicPartitions, member_id: &Id) {
        for (topic_id, runs) in partitions.topics() {
            let owners = self.0.entry(topic_id).or_default();
            for partition in runs.iter().flat_map(|run| run.partitions()) {
                owners.insert(partition, member_id.clone());
            }
        }
    }

    pub(crate) fn release(&mut self, partitions: &TopicPartitions, member_id: &str) {
        for (topic_id, runs) in partitions.topics() {
            let Some(owners) = self.0.get_mut(&topic_id) else {
                continue;
            };
            for partition in runs.iter().flat_map(|run| run.partitions()) {
                if owners
                    .get(&partition)
                    .is_some_and(|owner| **owner == *member_id)
                {
                    owners.remove(&partition);
                }
            }
            if owners.is_empty() {
                self.0.remove(&topic_id);
            }
        }
    }
}
