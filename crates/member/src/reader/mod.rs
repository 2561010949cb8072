//! What an application reads, holds, has finished and may commit, as a state machine without I/O.
//!
//! A [`Reader`] is a plain value. It is told which partitions are assigned, what the application
//! does (take records, finish them, seek, pause, commit), the responses to its requests, and the
//! time in milliseconds. [`Reader::plan`] returns the requests to send, and when to call it again
//! if nothing happens before. Records leave it through [`Reader::begin_delivery`] and
//! [`Reader::end_delivery`]; a commit goes through [`Reader::begin_commit`],
//! [`Reader::next_commit_step`] and [`Reader::end_commit`].

mod aborted;
mod commits;
mod delivery;
mod fetched;
mod handles;
mod lookups;
mod offsets;
mod partition;
mod plan;
mod progress;
mod responses;
mod session;
mod topic_ids;
mod topic_partition;
mod truncation;

use std::{collections::VecDeque, fmt, time::Duration};

use kohort_wire::{ApiKey, ByteString, ErrorCode, Uuid};
use rustc_hash::{FxHashMap, FxHashSet};

pub use self::{
    commits::{Commit, CommitStep},
    delivery::{Chunks, Delivered, Delivery},
    fetched::{Chunk, Decoding},
    lookups::Failure,
    offsets::{CommittedOffset, OffsetReset, Position, Seek, Target},
    plan::{Leader, Metadata, Plan, ReaderRequest},
    progress::HandleId,
    topic_partition::{TopicPartition, by_topic},
    truncation::PositionCheck,
};
use self::{handles::Handles, partition::Partition, plan::Broker, topic_ids::ReplacedTopics};
use crate::Identity;

/// How a reader works.
pub struct ReaderConfig {
    /// Whether the application belongs to a group, where positions are committed.
    pub has_group: bool,
    /// Whether only records of committed transactions are delivered.
    pub committed_only: bool,
    /// Where to begin if nothing is committed.
    pub offset_reset: OffsetReset,
    /// The client's rack, to fetch from a replica nearby.
    pub rack: ByteString,
    /// How much there has to be before a broker responds to a fetch.
    pub fetch_bytes_min: i32,
    /// How long a broker waits for that.
    pub fetch_wait_max: Duration,
    /// How many bytes one response may hold.
    pub fetch_bytes_max: usize,
    /// How many of these may be of one partition.
    pub partition_fetch_bytes_max: usize,
    /// How many bytes are fetched before the application asks for them.
    pub prefetch_bytes_max: usize,
    /// How old the metadata of topics may be.
    pub metadata_max_age: Duration,
    /// How long to wait after a number of failures in a row.
    pub backoff: Box<dyn Fn(u32) -> Duration + Send>,
}

impl fmt::Debug for ReaderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderConfig").finish_non_exhaustive()
    }
}

/// An error for the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReaderError {
    /// A broker refused to serve a partition.
    Refused {
        /// The request.
        api: ApiKey,
        /// The partition.
        partition: TopicPartition,
        /// Why.
        code: ErrorCode,
        /// Details.
        message: Option<String>,
    },
    /// Nothing is committed for a partition, and `auto.offset.reset` is `none`.
    NothingCommitted(TopicPartition),
    /// Fetched records are malformed.
    Malformed {
        /// The partition.
        partition: TopicPartition,
        /// The offset at which they were fetched.
        offset: i64,
        /// What is wrong.
        problem: String,
    },
}

/// What an application reads, holds, has finished and may commit.
#[derive(Debug)]
pub struct Reader {
    config: ReaderConfig,
    partitions: FxHashMap<TopicPartition, Partition>,
    /// Partitions with fetched records, in the order in which they are delivered.
    turns: VecDeque<TopicPartition>,
    fetched_bytes: usize,
    brokers: FxHashMap<i32, Broker>,
    /// Topics whose metadata have to be refreshed.
    outdated: FxHashSet<ByteString>,
    refreshes: plan::Refreshes,
    errors: VecDeque<ReaderError>,
    last_lease: u64,
    handles: Handles,
    replaced_topics: ReplacedTopics,
    /// Finished offsets of partitions that are no longer assigned by hand, to be committed.
    departed: Vec<(TopicPartition, CommittedOffset)>,
    /// Whether a group assigns the partitions.
    is_subscribed: bool,
    /// The current membership, under which offsets are committed.
    member: Option<Identity>,
}

impl Reader {
    /// A reader without partitions.
    pub fn new(config: ReaderConfig) -> Reader {
        Reader {
            config,
            partitions: FxHashMap::default(),
            turns: VecDeque::new(),
            fetched_bytes: 0,
            brokers: FxHashMap::default(),
            outdated: FxHashSet::default(),
            refreshes: plan::Refreshes::default(),
            errors: VecDeque::new(),
            last_lease: 0,
            handles: Handles::default(),
            replaced_topics: ReplacedTopics::default(),
            departed: Vec::new(),
            is_subscribed: false,
            member: None,
        }
    }

    /// The next error for the application.
    pub fn next_error(&mut self) -> Option<ReaderError> {
        self.errors.pop_front()
    }

    fn report(&mut self, error: ReaderError) {
        // An application that does not poll for a long time does not need all of them.
        if self.errors.len() < 100 {
            self.errors.push_back(error);
        }
    }

    /// Whether a group assigns the partitions.
    pub fn is_subscribed(&self) -> bool {
        self.is_subscribed
    }

    /// Sets whether a group assigns the partitions.
    pub fn set_subscribed(&mut self, is_subscribed: bool) {
        self.is_subscribed = is_subscribed;
    }

    /// The current membership.
    pub fn member(&self) -> Option<&Identity> {
        self.member.as_ref()
    }

    /// Sets the current membership, under which offsets are committed.
    pub fn set_member(&mut self, member: Option<Identity>) {
        self.member = member;
    }

    fn new_lease(&mut self) -> u64 {
        self.last_lease += 1;
        self.last_lease
    }

    /// Whether a partition is assigned.
    pub fn contains(&self, name: &TopicPartition) -> bool {
        self.partitions.contains_key(name)
    }

    /// The assigned partitions, in no particular order.
    pub fn assigned(&self) -> impl Iterator<Item = &TopicPartition> {
        self.partitions.keys()
    }

    /// Identifies the current assignment of a partition: another assignment has another number.
    pub fn assignment(&self, name: &TopicPartition) -> Option<u64> {
        Some(self.partitions.get(name)?.assignment)
    }

    /// Assigns a partition by hand, or moves it to `start` if it is assigned already.
    pub fn assign(&mut self, name: TopicPartition, start: Seek) {
        self.departed.retain(|(other, _)| *other != name);
        self.insert(name, start);
    }

    /// Adds a partition that the group assigned, under its topic's id if that is known. Nothing is
    /// read from it before [`resume_assigned`](Reader::resume_assigned).
    pub fn assign_suspended(&mut self, name: &TopicPartition, topic_id: Option<Uuid>) {
        self.insert(name.clone(), Seek::Committed);
        let is_replacement = topic_id.is_some() && self.replaced_topics.contains(&name.topic);
        if let Some(partition) = self.partitions.get_mut(name) {
            partition.is_suspended = true;
            partition.topic_id = topic_id;
            partition.is_assigned_by_id = topic_id.is_some();
            partition.is_replacement = is_replacement;
        }
    }

    /// Starts reading partitions that were assigned suspended.
    pub fn resume_assigned(&mut self, names: &[TopicPartition]) {
        for name in names {
            if let Some(partition) = self.partitions.get_mut(name) {
                partition.is_suspended = false;
            }
            self.add_turn(name);
        }
    }

    fn insert(&mut self, name: TopicPartition, start: Seek) {
        let partition = Partition::new(self.new_lease(), start);
        if let Some(old) = self.partitions.insert(name, partition) {
            self.fetched_bytes -= old.fetched_bytes;
        }
    }

    /// Delivers nothing more of partitions that are about to be revoked.
    pub fn suspend(&mut self, names: &[TopicPartition]) {
        for name in names {
            let lease = self.new_lease();
            if let Some(partition) = self.partitions.get_mut(name) {
                partition.is_suspended = true;
                self.fetched_bytes -= partition.refetch(lease);
            }
        }
    }

    /// Removes a partition, with all that was fetched of it. With `commit_later`, what is finished
    /// of it is committed with the next automatic commit.
    pub fn unassign(&mut self, name: &TopicPartition, commit_later: bool) {
        if let Some(partition) = self.remove(name)
            && commit_later
        {
            let finished = partition.to_commit();
            self.departed
                .extend(finished.map(|offset| (name.clone(), offset)));
        }
    }

    fn remove(&mut self, name: &TopicPartition) -> Option<Partition> {
        let partition = self.partitions.remove(name)?;
        self.fetched_bytes -= partition.fetched_bytes;
        // A commit in flight reports its own outcome.
        let uncommitted = partition.progress.has_uncommitted() && !partition.commits.is_in_flight();
        self.handles
            .note_lost(name, &partition.progress, uncommitted);
        Some(partition)
    }

    /// Continues elsewhere in a partition. Returns whether it is assigned.
    pub fn seek(&mut self, name: &TopicPartition, to: Seek) -> bool {
        let lease = self.new_lease();
        let Some(partition) = self.partitions.get_mut(name) else {
            return false;
        };
        self.fetched_bytes -= partition.seek(lease, to);
        true
    }

    /// Delivers no more records of a partition, or delivers them again. Returns whether it is
    /// assigned.
    pub fn set_paused(&mut self, name: &TopicPartition, is_paused: bool) -> bool {
        let Some(partition) = self.partitions.get_mut(name) else {
            return false;
        };
        partition.is_paused = is_paused;
        if !is_paused {
            self.add_turn(name);
        }
        true
    }

    /// The paused partitions, in no particular order.
    pub fn paused(&self) -> impl Iterator<Item = &TopicPartition> {
        let paused = self.partitions.iter();
        paused.filter(|(_, p)| p.is_paused).map(|(name, _)| name)
    }

    /// The next record of a partition to deliver: `None` if the partition is not assigned,
    /// `Some(None)` before the offset has been looked up.
    pub fn position(&self, name: &TopicPartition) -> Option<Option<i64>> {
        let position = self.partitions.get(name)?.progress.position();
        Some(position.map(|position| position.offset))
    }

    /// The number of records after the position: `None` if the partition is not assigned,
    /// `Some(None)` before anything was fetched.
    pub fn lag(&self, name: &TopicPartition) -> Option<Option<i64>> {
        Some(self.partitions.get(name)?.lag(self.config.committed_only))
    }

    /// Adds a handle of the application, which holds no records yet.
    pub fn add_handle(&mut self) -> HandleId {
        self.handles.add()
    }

    /// Removes a handle. What it holds stays unfinished. Returns whether it held any records.
    pub fn remove_handle(&mut self, handle: HandleId) -> bool {
        let mut held = false;
        for name in self.handles.remove(handle) {
            if let Some(partition) = self.partitions.get_mut(&name) {
                held |= partition.progress.abandon(handle);
            }
        }
        held
    }

    /// Whether there are no other handles.
    pub fn is_last_handle(&self, handle: HandleId) -> bool {
        self.handles.is_last(handle)
    }

    /// A handle has finished the records that it holds. Returns whether it held any.
    pub fn finish(&mut self, handle: HandleId) -> bool {
        let mut held = false;
        for name in self.handles.note_finished(handle) {
            if let Some(partition) = self.partitions.get_mut(&name) {
                held |= partition.progress.finish(handle);
            }
        }
        held
    }

    /// Whether a handle holds records of one of `partitions`.
    pub fn is_held(&self, partitions: &[TopicPartition]) -> bool {
        let partitions = partitions.iter();
        let mut partitions = partitions.filter_map(|name| self.partitions.get(name));
        partitions.any(|partition| partition.progress.is_held())
    }

    /// The partitions that were lost before what a handle finished in them was committed. Each is
    /// returned once.
    pub fn take_lost(&mut self, handle: HandleId) -> Vec<TopicPartition> {
        self.handles.take_lost(handle)
    }

    /// The application relies on automatic commits: its next commit does not report partitions
    /// that were lost before.
    pub fn forget_lost(&mut self, handle: HandleId) {
        self.handles.forget_lost(handle);
    }

    /// What is finished and not committed yet, in all partitions or in some.
    pub fn to_commit(
        &self,
        of: Option<&[TopicPartition]>,
    ) -> Vec<(TopicPartition, CommittedOffset)> {
        let wanted = |name: &TopicPartition| of.is_none_or(|of| of.contains(name));
        let partitions = self.partitions.iter().filter(|(name, _)| wanted(name));
        let offsets = partitions.filter_map(|(name, p)| Some((name.clone(), p.to_commit()?)));
        offsets.collect()
    }

    /// Takes the finished offsets of partitions that are no longer assigned by hand.
    pub fn take_departed(&mut self) -> Vec<(TopicPartition, CommittedOffset)> {
        std::mem::take(&mut self.departed)
    }

    /// Puts back offsets that could not be committed.
    pub fn restore_departed(&mut self, departed: Vec<(TopicPartition, CommittedOffset)>) {
        for (name, offset) in departed {
            let is_same = |(other, _): &(TopicPartition, _)| *other == name;
            if !self.contains(&name) && !self.departed.iter().any(is_same) {
                self.departed.push((name, offset));
            }
        }
    }
}

#[cfg(test)]
mod tests;
