//! Partitions that a member owns, and since when.

use std::fmt;

use kohort_group::TopicPartitions;
use kohort_wire::{Uuid, messages::CurrentAssignmentTopicPartitions};

/// Partitions with the epoch at which each was assigned (KIP-1251): a commit from an older epoch of
/// the member still holds for partitions that it has owned since before that epoch.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Owned {
    all: TopicPartitions,
    /// Ascending epochs, each with partitions of its own, none empty. Almost always one.
    by_epoch: Vec<(i32, TopicPartitions)>,
}

impl Owned {
    /// Partitions that were all assigned at one epoch.
    pub(crate) fn at(epoch: i32, partitions: TopicPartitions) -> Owned {
        Owned::from_parts([(epoch, partitions)])
    }

    /// Partitions by epoch. One that is named at several epochs counts from the last of them.
    fn from_parts(parts: impl IntoIterator<Item = (i32, TopicPartitions)>) -> Owned {
        let mut owned = Owned::default();
        for (epoch, partitions) in parts {
            owned.insert(epoch, partitions);
        }
        owned
    }

    fn insert(&mut self, epoch: i32, partitions: TopicPartitions) {
        if partitions.is_empty() {
            return;
        }
        if !self.all.is_disjoint(&partitions) {
            self.by_epoch.retain_mut(|(_, others)| {
                *others = others.difference(&partitions);
                !others.is_empty()
            });
        }
        self.all = self.all.union(&partitions);
        match self
            .by_epoch
            .binary_search_by_key(&epoch, |(epoch, _)| *epoch)
        {
            Ok(found) => {
                let merged = self.by_epoch[found].1.union(&partitions);
                self.by_epoch[found].1 = merged;
            }
            Err(place) => self.by_epoch.insert(place, (epoch, partitions)),
        }
        if let [(_, only)] = &mut self.by_epoch[..] {
            *only = self.all.clone();
        }
    }

    /// The partitions without their epochs.
    pub(crate) fn all(&self) -> &TopicPartitions {
        &self.all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Since which epoch the partition is owned.
    pub(crate) fn epoch_of(&self, topic_id: Uuid, partition: i32) -> Option<i32> {
        let mut parts = self.by_epoch.iter();
        let found = parts.find(|(_, partitions)| partitions.contains(topic_id, partition));
        found.map(|(epoch, _)| *epoch)
    }

    /// The partitions with the epochs since which they are owned.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Uuid, i32, i32)> {
        self.by_epoch.iter().flat_map(|(epoch, partitions)| {
            partitions
                .iter()
                .map(|(topic_id, partition)| (topic_id, partition, *epoch))
        })
    }

    /// What is in `partitions` too.
    pub(crate) fn intersection(&self, partitions: &TopicPartitions) -> Owned {
        if self.all.is_subset(partitions) {
            self.clone()
        } else {
            self.map(|own| own.intersection(partitions))
        }
    }

    /// What is not in `partitions`.
    pub(crate) fn difference(&self, partitions: &TopicPartitions) -> Owned {
        if self.all.is_disjoint(partitions) {
            self.clone()
        } else {
            self.map(|own| own.difference(partitions))
        }
    }

    /// This and the other's.
    pub(crate) fn union(&self, other: &Owned) -> Owned {
        let mut union = self.clone();
        for (epoch, partitions) in &other.by_epoch {
            union.insert(*epoch, partitions.clone());
        }
        union
    }

    /// The same partitions, as if they had all been assigned at `epoch`.
    pub(crate) fn since(&self, epoch: i32) -> Owned {
        Owned::at(epoch, self.all.clone())
    }

    fn map(&self, change: impl Fn(&TopicPartitions) -> TopicPartitions) -> Owned {
        Owned::from_parts(
            self.by_epoch
                .iter()
                .map(|(epoch, own)| (*epoch, change(own))),
        )
    }

    pub(crate) fn to_record(&self) -> Vec<CurrentAssignmentTopicPartitions> {
        let topics = self.all.topics().map(|(topic_id, _)| topic_id);
        topics
            .map(|topic_id| {
                let partitions: Vec<i32> = self.all.partitions(topic_id).collect();
                let epochs = match &self.by_epoch[..] {
                    [(epoch, _)] => vec![*epoch; partitions.len()],
                    _ => {
                        let epoch_of = |&p: &i32| self.epoch_of(topic_id, p).unwrap_or_default();
                        partitions.iter().map(epoch_of).collect()
                    }
                };
                CurrentAssignmentTopicPartitions {
                    topic_id,
                    partitions,
                    assignment_epochs: Some(epochs),
                }
            })
            .collect()
    }

    /// Brokers before 4.3 wrote no epochs: the member's epoch stands for them, or 0 for a static
    /// member that has left.
    pub(crate) fn from_record(
        topics: &[CurrentAssignmentTopicPartitions],
        member_epoch: i32,
    ) -> Owned {
        let mut by_epoch: Vec<(i32, Vec<(Uuid, i32)>)> = Vec::new();
        for topic in topics {
            let epochs = topic
                .assignment_epochs
                .as_ref()
                .filter(|epochs| epochs.len() == topic.partitions.len());
            for (index, &partition) in topic.partitions.iter().enumerate() {
                let epoch = epochs.map_or(member_epoch.max(0), |epochs| epochs[index]);
                let place = (topic.topic_id, partition);
                match by_epoch.iter_mut().rev().find(|(known, _)| *known == epoch) {
                    Some((_, places)) => places.push(place),
                    None => by_epoch.push((epoch, vec![place])),
                }
            }
        }
        by_epoch.sort_unstable_by_key(|(epoch, _)| *epoch);
        Owned::from_parts(
            by_epoch
                .into_iter()
                .map(|(epoch, places)| (epoch, places.into_iter().collect())),
        )
    }
}

impl fmt::Debug for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.by_epoch.iter().map(|(epoch, own)| (epoch, own)))
            .finish()
    }
}
