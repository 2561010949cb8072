//! The handles of a consumer: each clone reads for itself, and finishes only what it was given.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    TopicPartition,
    progress::{HandleId, Progress},
};

/// What is known of each handle.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    last_id: HandleId,
    handles: FxHashMap<HandleId, Handle>,
}

#[derive(Debug, Default)]
struct Handle {
    /// The partitions of the records that it holds.
    held: FxHashSet<TopicPartition>,
    /// Partitions that were lost with progress in them which is not committed; the value says
    /// whether that progress is finished.
    lost: BTreeMap<TopicPartition, bool>,
}

impl Handles {
    /// Adds a handle.
    pub(crate) fn add(&mut self) -> HandleId {
        self.last_id += 1;
        self.handles.insert(self.last_id, Handle::default());
        self.last_id
    }

    /// Removes a handle. Returns the partitions whose records it held.
    pub(crate) fn remove(&mut self, id: HandleId) -> Vec<TopicPartition> {
        let removed = self.handles.remove(&id);
        removed.map_or_else(Vec::new, |handle| handle.held.into_iter().collect())
    }

    /// Whether this is the last handle.
    pub(crate) fn is_last(&self, id: HandleId) -> bool {
        self.handles.keys().all(|other| *other == id)
    }

    /// Records of a partition were delivered to a handle.
    pub(crate) fn note_delivered(&mut self, id: HandleId, partition: &TopicPartition) {
        if let Some(handle) = self.handles.get_mut(&id)
            && !handle.held.contains(partition)
        {
            handle.held.insert(partition.clone());
        }
    }

    /// A handle has finished what it holds, of lost partitions too. Returns the partitions.
    pub(crate) fn note_finished(&mut self, id: HandleId) -> Vec<TopicPartition> {
        let Some(handle) = self.handles.get_mut(&id) else {
            return Vec::new();
        };
        handle
            .lost
            .values_mut()
            .for_each(|finished| *finished = true);
        handle.held.drain().collect()
    }

    /// A partition is gone. What was not committed of it cannot be any more: handles that hold
    /// records of it are told at their next commit, and all of them if records were `finished`.
    pub(crate) fn note_lost(
        &mut self,
        partition: &TopicPartition,
        progress: &Progress,
        finished: bool,
    ) {
        for (id, handle) in &mut self.handles {
            if finished || progress.is_held_by(*id) {
                *handle.lost.entry(partition.clone()).or_default() |= finished;
            }
        }
    }

    /// The partitions that were lost before what the handle has finished in them was committed.
    /// Each is told once.
    pub(crate) fn take_lost(&mut self, id: HandleId) -> Vec<TopicPartition> {
        let Some(handle) = self.handles.get_mut(&id) else {
            return Vec::new();
        };
        let lost = std::mem::take(&mut handle.lost).into_iter();
        lost.filter_map(|(partition, finished)| finished.then_some(partition))
            .collect()
    }

    /// The application reads on without a commit of its own: what it lost it was told by then.
    pub(crate) fn forget_lost(&mut self, id: HandleId) {
        if let Some(handle) = self.handles.get_mut(&id) {
            handle.lost.clear();
        }
    }
}
