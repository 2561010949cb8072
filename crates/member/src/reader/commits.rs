//! The order of commits. Commits of one partition count in the order in which they were begun: a
//! commit that is sent again must not undo a later one, nor reach into a time when another member
//! has the partition.

use kohort_wire::Uuid;
use rustc_hash::FxHashSet;

use super::{
    Reader, TopicPartition, offsets::CommittedOffset, partition::Partition, progress::HandleId,
};
use crate::Identity;

/// The commits of one assignment of a partition, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct CommitOrder {
    begun: u64,
    in_flight: Vec<u64>,
    /// The last one that is known to have been committed.
    done: u64,
}

impl CommitOrder {
    /// Whether a commit has begun and not ended.
    pub(crate) fn is_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.in_flight.push(self.begun);
        self.begun
    }

    fn end(&mut self, number: u64) {
        self.in_flight.retain(|other| *other != number);
    }

    fn is_overtaken(&self, number: u64) -> bool {
        self.done > number
    }

    fn is_overtaking(&self, number: u64) -> bool {
        self.in_flight.iter().any(|other| *other > number)
    }
}

/// A commit that has its place in the order. It has to be ended with [`Reader::end_commit`].
#[derive(Debug)]
pub struct Commit {
    left: Vec<Offset>,
    /// Partitions that were revoked or lost before their offsets could be committed.
    lost: Vec<TopicPartition>,
    was_sent: bool,
}

#[derive(Debug)]
struct Offset {
    partition: TopicPartition,
    offset: CommittedOffset,
    /// For an assigned partition, its place in the order.
    place: Option<Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    number: u64,
    assignment: u64,
    lease: u64,
}

/// What to do next for a commit.
#[derive(Debug)]
pub enum CommitStep {
    /// Send these offsets, as this member if the group has any.
    Send(Option<Identity>, Vec<(TopicPartition, CommittedOffset)>),
    /// A later commit is in flight, whose outcome decides: look again a little later.
    Wait,
    /// Nothing is left to send. [`Commit::lost`] names what could not be committed.
    Done,
}

impl Commit {
    /// The number of offsets that are not committed yet.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether no offsets are left.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The offsets that are not committed yet.
    pub fn offsets(&self) -> Vec<(TopicPartition, CommittedOffset)> {
        let left = self.left.iter();
        left.map(|left| (left.partition.clone(), left.offset.clone()))
            .collect()
    }

    /// The partitions that were revoked or lost before their offsets could be committed.
    pub fn lost(&self) -> &[TopicPartition] {
        &self.lost
    }
}

impl Reader {
    /// Begins to commit `offsets`. The offsets of the `lost` partitions cannot be committed any
    /// more.
    pub fn begin_commit(
        &mut self,
        offsets: Vec<(TopicPartition, CommittedOffset)>,
        mut lost: Vec<TopicPartition>,
    ) -> Commit {
        let left = offsets.into_iter().filter_map(|(name, mut offset)| {
            let place = if let Some(partition) = self.partitions.get_mut(&name) {
                if offset.topic_id.is_none() {
                    offset.topic_id = partition.topic_id;
                    let position = partition.progress.position();
                    let position = position.map(|position| position.offset);
                    if partition.is_replacement && Some(offset.offset) > position {
                        // It can only belong to the topic that was there before.
                        lost.push(name);
                        return None;
                    }
                }
                Some(Place {
                    number: partition.commits.begin(),
                    assignment: partition.assignment,
                    lease: partition.lease,
                })
            } else {
                None
            };
            Some(Offset {
                partition: name,
                offset,
                place,
            })
        });
        Commit {
            left: left.collect(),
            lost,
            was_sent: false,
        }
    }

    /// Begins the commit that an application asks for: `handle` finishes the records that it holds,
    /// and everything finished is committed. Returns whether it held any.
    pub fn begin_commit_of(&mut self, handle: HandleId) -> (Commit, bool) {
        let held = self.finish(handle);
        let offsets = self.to_commit(None);
        let lost = self.take_lost(handle);
        (self.begin_commit(offsets, lost), held)
    }

    /// What to do next for a commit. `id_of` is the id of a topic as brokers know it now.
    pub fn next_commit_step(
        &mut self,
        commit: &mut Commit,
        id_of: impl Fn(&str) -> Option<Uuid>,
    ) -> CommitStep {
        let Commit {
            left,
            lost,
            was_sent,
        } = commit;
        let mut wait = false;
        left.retain(|left| {
            let (name, place) = (&left.partition, left.place);
            let current = id_of(&name.topic).filter(|id| !id.is_zero());
            if let (Some(current), Some(id)) = (current, left.offset.topic_id)
                && current != id
            {
                // The topic was deleted and created again: the offset means nothing in the new one.
                self.end_place(name, place);
                lost.push(name.clone());
                return false;
            }
            let Some(Place { number, .. }) = place else {
                return true;
            };
            let Some(partition) = self.placed(name, place) else {
                // Partitions assigned by hand go to no other member.
                if self.is_subscribed {
                    lost.push(name.clone());
                }
                return !self.is_subscribed;
            };
            let is_overtaken = partition.commits.is_overtaken(number);
            if is_overtaken {
                partition.commits.end(number);
            }
            wait |= !is_overtaken && partition.commits.is_overtaking(number);
            !is_overtaken
        });
        if left.is_empty() {
            return CommitStep::Done;
        }
        if wait && *was_sent {
            return CommitStep::Wait;
        }
        if self.is_subscribed && self.member.is_none() {
            // The consumer was removed from its group, or left.
            for offset in std::mem::take(left) {
                self.end_place(&offset.partition, offset.place);
                lost.push(offset.partition);
            }
            return CommitStep::Done;
        }
        *was_sent = true;
        CommitStep::Send(self.member.clone(), commit.offsets())
    }

    /// The offsets of these partitions have been committed.
    pub fn committed(&mut self, commit: &mut Commit, partitions: &FxHashSet<TopicPartition>) {
        commit.left.retain(|left| {
            if !partitions.contains(&left.partition) {
                return true;
            }
            if let Some(place) = left.place
                && let Some(partition) = self.placed(&left.partition, left.place)
            {
                let commits = &mut partition.commits;
                commits.end(place.number);
                commits.done = commits.done.max(place.number);
                // After a seek, the records before the new position are not finished.
                let is_current = place.lease == partition.lease;
                partition.note_committed(&left.offset, is_current);
            }
            false
        });
    }

    /// Ends a commit, also one that has failed.
    pub fn end_commit(&mut self, commit: &mut Commit) {
        for left in &commit.left {
            self.end_place(&left.partition, left.place);
        }
    }

    fn end_place(&mut self, name: &TopicPartition, place: Option<Place>) {
        if let (Some(partition), Some(place)) = (self.placed(name, place), place) {
            partition.commits.end(place.number);
        }
    }

    /// The partition, if its assignment is still that of the commit.
    fn placed(&mut self, name: &TopicPartition, place: Option<Place>) -> Option<&mut Partition> {
        let assignment = place?.assignment;
        let partition = self.partitions.get_mut(name);
        partition.filter(|partition| partition.assignment == assignment)
    }
}
