//! Commits of one partition count in the order in which they were asked for: what is sent again
//! must not undo a later one, nor reach into a time when others have the partition.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{
    partition::Partition,
    shared::{Shared, State},
};
use crate::{CommittedOffset, Result, TopicPartition, Uuid};

/// The commits of one assignment of a partition, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Commits {
    begun: u64,
    under_way: Vec<u64>,
    /// The last one that is known to have been carried out.
    done: u64,
}

impl Commits {
    /// Whether a commit has begun and not ended.
    pub(super) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }
}

/// A commit that has its place in the order.
pub(super) struct InOrder {
    shared: Arc<Shared>,
    /// What is still to be committed, and for partitions of this consumer, its place.
    left: Vec<(TopicPartition, CommittedOffset, Option<Place>)>,
    /// Partitions that were taken away before their offsets could be committed.
    lost: Vec<TopicPartition>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    number: u64,
    since: u64,
    lease: u64,
}

impl State {
    fn same(&mut self, name: &TopicPartition, place: Option<Place>) -> Option<&mut Partition> {
        let since = place?.since;
        let partition = self.partitions.get_mut(name);
        partition.filter(|partition| partition.since == since)
    }
}

impl InOrder {
    /// Begins to commit `offsets`. What was to be committed of the `lost` partitions cannot be any
    /// more, which makes the outcome an error.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        state: &mut State,
        offsets: Vec<(TopicPartition, CommittedOffset)>,
        mut lost: Vec<TopicPartition>,
    ) -> InOrder {
        let left = offsets.into_iter().filter_map(|(name, mut offset)| {
            if let Some(partition) = state.partitions.get(&name)
                && offset.topic_id.is_none()
            {
                offset.topic_id = partition.topic_id;
                let position = partition
                    .progress
                    .position()
                    .map(|position| position.offset);
                if partition.is_replacement && Some(offset.offset) > position {
                    // It can only belong to the topic that was there before.
                    lost.push(name);
                    return None;
                }
            }
            let place = state.partitions.get_mut(&name).map(|partition| {
                let commits = &mut partition.commits;
                commits.begun += 1;
                commits.under_way.push(commits.begun);
                Place {
                    number: commits.begun,
                    since: partition.since,
                    lease: partition.lease,
                }
            });
            Some((name, offset, place))
        });
        let left = left.collect();
        InOrder {
            left,
            shared: shared.clone(),
            lost,
        }
    }

    /// Leaves out offsets of topics that have been deleted and created again: they mean nothing in
    /// the new ones.
    pub(super) fn drop_replaced(&mut self, id_of: impl Fn(&str) -> Option<Uuid>) {
        let replaced = |(name, offset, _): &(TopicPartition, CommittedOffset, Option<Place>)| {
            let now = id_of(&name.topic).filter(|id| !id.is_zero());
            matches!((now, offset.topic_id), (Some(now), Some(then)) if now != then)
        };
        let gone = self.left.iter().filter(|left| replaced(left));
        let gone: Vec<_> = gone.map(|(name, ..)| name.clone()).collect();
        if gone.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        for (name, _, place) in self.left.extract_if(.., |left| replaced(left)) {
            if let (Some(partition), Some(place)) = (state.same(&name, place), place) {
                let under_way = &mut partition.commits.under_way;
                under_way.retain(|other| *other != place.number);
            }
        }
        self.lost.extend(gone);
    }

    /// How many offsets are still to be committed.
    pub(super) fn len(&self) -> usize {
        self.left.len()
    }

    /// What is to be sent.
    pub(super) fn offsets(&self) -> Vec<(TopicPartition, CommittedOffset)> {
        let left = self.left.iter();
        left.map(|(name, offset, _)| (name.clone(), offset.clone()))
            .collect()
    }

    /// Before it is sent: what has been overtaken, or concerns partitions that were taken
    /// away, is left out. Returns whether later ones are under way, whose outcome decides.
    pub(super) fn is_overtaken(&mut self) -> bool {
        let mut state = self.shared.lock();
        // Manually assigned partitions go to no other member.
        let subscribed = state.subscribed;
        let mut wait = false;
        let lost = &mut self.lost;
        self.left.retain(|(name, _, place)| {
            let Some(number) = place.map(|place| place.number) else {
                return true;
            };
            let Some(partition) = state.same(name, *place) else {
                if subscribed {
                    lost.push(name.clone());
                }
                return !subscribed;
            };
            let commits = &mut partition.commits;
            let overtaken = commits.done > number;
            match overtaken {
                true => commits.under_way.retain(|other| *other != number),
                false => wait |= commits.under_way.iter().any(|other| *other > number),
            }
            !overtaken
        });
        wait
    }

    /// Whether there is nothing left to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// These have been committed, and are not left any more.
    pub(super) fn done(&mut self, done: &FxHashSet<TopicPartition>) {
        let mut state = self.shared.lock();
        self.left.retain(|(name, offset, place)| {
            if !done.contains(name) {
                return true;
            }
            if let (Some(partition), Some(place)) = (state.same(name, *place), place) {
                let commits = &mut partition.commits;
                commits.under_way.retain(|other| *other != place.number);
                commits.done = commits.done.max(place.number);
                // After a seek, the records before the new position are not finished.
                let finished = place.lease == partition.lease;
                partition.committed_at(offset, finished);
            }
            false
        });
    }

    /// The consumer is not a member of its group: nothing of what is left can be committed.
    pub(super) fn give_up(&mut self) {
        let left = self.left.iter().map(|(name, ..)| name.clone());
        self.lost.extend(left);
    }

    /// An error if something was taken away before it could be committed.
    pub(super) fn outcome(&self) -> Result<()> {
        if self.lost.is_empty() {
            return Ok(());
        }
        Err(self.shared.not_committed(self.lost.clone()))
    }
}

impl Drop for InOrder {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        for (name, _, place) in &self.left {
            if let (Some(partition), Some(place)) = (state.same(name, *place), place) {
                let under_way = &mut partition.commits.under_way;
                under_way.retain(|other| *other != place.number);
            }
        }
    }
}
