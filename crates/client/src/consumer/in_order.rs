//! Commits of one partition count in the order in which they were asked for: what is sent again
//! must not undo a later one, nor reach into a time when others have the partition.

use rustc_hash::FxHashSet;

use super::{
    partition::Partition,
    shared::{Shared, State},
};
use crate::{CommittedOffset, Error, Result, TopicPartition};

/// The commits of one assignment of a partition, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Commits {
    begun: u64,
    under_way: Vec<u64>,
    /// The last one that is known to have been carried out.
    done: u64,
}

/// A commit that has its place in the order.
pub(super) struct InOrder<'a> {
    shared: &'a Shared,
    /// What is still to be committed, and for partitions of this consumer, its place.
    left: Vec<(TopicPartition, CommittedOffset, Option<Place>)>,
    /// It was taken away meanwhile.
    lost: Option<TopicPartition>,
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

impl<'a> InOrder<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> InOrder<'a> {
        let mut state = shared.lock();
        let left = offsets.iter().map(|(name, offset)| {
            let place = state.partitions.get_mut(name).map(|partition| {
                let commits = &mut partition.commits;
                commits.begun += 1;
                commits.under_way.push(commits.begun);
                Place {
                    number: commits.begun,
                    since: partition.since,
                    lease: partition.lease,
                }
            });
            (name.clone(), offset.clone(), place)
        });
        let left = left.collect();
        InOrder {
            shared,
            left,
            lost: None,
        }
    }

    /// What is to be sent.
    pub(super) fn offsets(&self) -> Vec<(TopicPartition, CommittedOffset)> {
        let left = self.left.iter();
        left.map(|(name, offset, _)| (name.clone(), offset.clone()))
            .collect()
    }

    /// Before it is sent again: what has been overtaken, or concerns partitions that were taken
    /// away, is left out. Returns whether later ones are under way, whose outcome decides.
    pub(super) fn is_overtaken(&mut self) -> bool {
        let mut state = self.shared.lock();
        // What is assigned by hand goes to nobody else.
        let subscribed = state.subscribed;
        let mut wait = false;
        let lost = &mut self.lost;
        self.left.retain(|(name, _, place)| {
            let Some(number) = place.map(|place| place.number) else {
                return true;
            };
            let Some(partition) = state.same(name, *place) else {
                if subscribed {
                    *lost = Some(name.clone());
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
                // Who has gone elsewhere since has not finished with what comes before.
                let finished = place.lease == partition.lease;
                partition.committed_at(offset, finished);
            }
            false
        });
    }

    /// An error if something was taken away before it could be committed.
    pub(super) fn outcome(&self) -> Result<()> {
        match &self.lost {
            None => Ok(()),
            Some(name) => Err(Error::State(format!(
                "{name} was taken away before its offset could be committed"
            ))),
        }
    }
}

impl Drop for InOrder<'_> {
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
