//! A fetch session with one broker (KIP-227): only what changed is said again.

use kohort_wire::{ErrorCode, Uuid, messages::*};
use rustc_hash::FxHashMap;

use super::topic_partition::{TopicPartition, by_topic};

/// What is wanted of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) topic_id: Uuid,
    pub(super) offset: i64,
    pub(super) leader_epoch: i32,
    pub(super) last_fetched_epoch: i32,
    pub(super) bytes_max: i32,
}

/// What a broker remembers of what is wanted.
#[derive(Debug, Default)]
pub(super) struct Session {
    id: i32,
    epoch: i32,
    known: FxHashMap<TopicPartition, Wanted>,
}

impl Session {
    /// The session's id and epoch, the partitions to name, and those to forget.
    pub(super) fn next(
        &mut self,
        wanted: &FxHashMap<TopicPartition, Wanted>,
    ) -> (i32, i32, Vec<FetchTopic>, Vec<ForgottenTopic>) {
        // A topic that was created again is another one to the broker.
        let recreated = self.known.iter().any(|(name, known)| {
            wanted
                .get(name)
                .is_some_and(|wanted| wanted.topic_id != known.topic_id)
        });
        if recreated {
            self.reset();
        }
        let changed = wanted
            .iter()
            .filter(|(name, wanted)| self.id == 0 || self.known.get(*name) != Some(wanted));
        let changed = changed.map(|(name, wanted)| (name.clone(), *wanted));
        let topics = by_topic(changed).into_iter().map(|(topic, partitions)| {
            let topic_id = partitions
                .first()
                .map_or(Uuid(0), |(_, wanted)| wanted.topic_id);
            let partitions = partitions
                .into_iter()
                .map(|(partition, wanted)| FetchPartition {
                    partition,
                    current_leader_epoch: wanted.leader_epoch,
                    fetch_offset: wanted.offset,
                    last_fetched_epoch: wanted.last_fetched_epoch,
                    partition_max_bytes: wanted.bytes_max,
                    ..Default::default()
                });
            FetchTopic {
                topic,
                topic_id,
                partitions: partitions.collect(),
            }
        });
        let topics = topics.collect();
        let gone = self
            .known
            .iter()
            .filter(|(name, _)| !wanted.contains_key(*name));
        let gone = gone.map(|(name, known)| (name.clone(), known.topic_id));
        let forgotten = by_topic(gone)
            .into_iter()
            .map(|(topic, partitions)| ForgottenTopic {
                topic,
                topic_id: partitions.first().map_or(Uuid(0), |(_, id)| *id),
                partitions: partitions
                    .into_iter()
                    .map(|(partition, _)| partition)
                    .collect(),
            });
        let forgotten = match self.id {
            0 => Vec::new(),
            _ => forgotten.collect(),
        };
        self.known = wanted.clone();
        (self.id, self.epoch, topics, forgotten)
    }

    /// Takes over what the broker answered.
    pub(super) fn answered(&mut self, session_id: i32, code: ErrorCode) {
        if code.is_error() {
            self.reset();
        } else if session_id == 0 {
            // The broker keeps no session for us.
            self.reset();
        } else if self.id == 0 {
            self.id = session_id;
            self.epoch = 1;
        } else {
            self.epoch = self.epoch.checked_add(1).unwrap_or(1);
        }
    }

    /// Begins anew.
    pub(super) fn reset(&mut self) {
        *self = Session::default();
    }
}
