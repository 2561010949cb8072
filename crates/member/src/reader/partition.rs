//! The state of one assigned partition.

use std::collections::VecDeque;

use kohort_wire::Uuid;

use super::{
    commits::CommitOrder,
    fetched::Fetched,
    offsets::{CommittedOffset, Position, Seek, Target},
    progress::Progress,
};
use crate::Millis;

/// What has to happen before the next fetch, or where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Look up what the group has committed.
    LookUpCommitted,
    /// Look up an offset.
    LookUp(Target),
    /// A lookup is in flight, or a check whether the position is still in the log.
    Waiting,
    /// Fetch from there.
    Fetch(Position),
    /// Nothing until the application seeks: there was an error.
    Stopped,
}

/// The state of one assigned partition.
#[derive(Debug)]
pub(crate) struct Partition {
    /// Changes with every assignment of the partition and every seek in it. Responses to requests
    /// sent under another number are ignored.
    pub(crate) lease: u64,
    /// The lease under which it was assigned: identifies the assignment.
    pub(crate) assignment: u64,
    /// The topic's id, once known: a topic that is deleted and created again has another one, and
    /// nothing of the old topic counts for the new one.
    pub(crate) topic_id: Option<Uuid>,
    /// Whether the coordinator assigned the partition under that id (consumer protocol). If the
    /// topic is replaced, it assigns the new one.
    pub(crate) is_assigned_by_id: bool,
    /// Set if the topic replaced another one of the same name while the consumer read that: all of
    /// its records are new, so reading starts at the first one if nothing is committed.
    pub(crate) is_replacement: bool,
    pub(crate) progress: Progress,
    pub(crate) commits: CommitOrder,
    pub(crate) next: Next,
    /// The leader epoch under which the position is known to be in the log.
    pub(crate) validated: Option<i32>,
    /// Fetched batches that have not been delivered.
    pub(crate) fetched: VecDeque<Fetched>,
    pub(crate) fetched_bytes: usize,
    pub(crate) is_in_flight: bool,
    /// Whether it is queued in `Reader::turns`.
    pub(crate) has_turn: bool,
    /// Paused by the application.
    pub(crate) is_paused: bool,
    /// Set while a rebalance adds or revokes it: nothing is fetched or delivered.
    pub(crate) is_suspended: bool,
    pub(crate) high_watermark: Option<i64>,
    pub(crate) last_stable_offset: Option<i64>,
    /// The replica to fetch from instead of the leader, and until when (KIP-392).
    pub(crate) preferred_replica: Option<(i32, Millis)>,
    /// When to try again after a failure.
    pub(crate) not_before: Millis,
    /// The number of failures in a row.
    pub(crate) failures: u32,
}

impl Partition {
    pub(crate) fn new(lease: u64, start: Seek) -> Partition {
        let mut partition = Partition {
            lease,
            assignment: lease,
            topic_id: None,
            is_assigned_by_id: false,
            is_replacement: false,
            progress: Progress::default(),
            commits: CommitOrder::default(),
            next: Next::Stopped,
            validated: None,
            fetched: VecDeque::new(),
            fetched_bytes: 0,
            is_in_flight: false,
            has_turn: false,
            is_paused: false,
            is_suspended: false,
            high_watermark: None,
            last_stable_offset: None,
            preferred_replica: None,
            not_before: Millis::MIN,
            failures: 0,
        };
        partition.seek(lease, start);
        partition
    }

    /// Continues elsewhere. Returns the size of the fetched batches that are dropped.
    pub(crate) fn seek(&mut self, lease: u64, to: Seek) -> usize {
        self.lease = lease;
        self.is_in_flight = false;
        self.not_before = Millis::MIN;
        self.failures = 0;
        self.validated = None;
        self.next = match to {
            Seek::Offset(offset) => Next::Fetch(Position::at(offset)),
            Seek::Earliest => Next::LookUp(Target::Earliest),
            Seek::Latest => Next::LookUp(Target::Latest),
            Seek::Timestamp(timestamp) => Next::LookUp(Target::Timestamp(timestamp)),
            Seek::Committed => Next::LookUpCommitted,
        };
        self.progress.seek(match self.next {
            Next::Fetch(position) => Some(position),
            _ => None,
        });
        self.drop_fetched()
    }

    /// Continues at a position that was looked up. What is left of earlier fetches holds no records
    /// for the application; its size is returned.
    pub(crate) fn start_at(&mut self, lease: u64, position: Position) -> usize {
        let size = self.refetch(lease);
        self.next = Next::Fetch(position);
        self.validated = None;
        self.progress.skip_to(position);
        self.failures = 0;
        self.not_before = Millis::MIN;
        size
    }

    /// Whether all records before `offset` have been delivered.
    pub(crate) fn is_delivered_up_to(&self, offset: i64) -> bool {
        let position = self.progress.position();
        position.is_none_or(|position| position.offset >= offset)
    }

    /// Drops what was fetched and not delivered: it will be fetched again. Returns its size.
    pub(crate) fn refetch(&mut self, lease: u64) -> usize {
        self.lease = lease;
        self.is_in_flight = false;
        if let (Next::Fetch(_) | Next::Waiting, Some(position)) =
            (self.next, self.progress.position())
        {
            self.next = Next::Fetch(position);
        }
        self.drop_fetched()
    }

    /// Drops what was fetched and not delivered. Returns its size.
    pub(crate) fn drop_fetched(&mut self) -> usize {
        self.fetched.clear();
        std::mem::take(&mut self.fetched_bytes)
    }

    /// An offset was committed. `is_current` unless the application has sought elsewhere since.
    pub(crate) fn note_committed(&mut self, committed: &CommittedOffset, is_current: bool) {
        self.progress.note_committed(committed.offset);
        if is_current {
            self.progress.finish_up_to(committed.into());
        }
    }

    /// What is finished and not committed yet.
    pub(crate) fn to_commit(&self) -> Option<CommittedOffset> {
        let finished = self.progress.to_commit()?;
        Some(CommittedOffset {
            leader_epoch: finished.leader_epoch,
            topic_id: self.topic_id,
            ..CommittedOffset::new(finished.offset)
        })
    }

    /// Whether records of it can be delivered.
    pub(crate) fn is_deliverable(&self) -> bool {
        !self.is_paused && !self.is_suspended && !self.fetched.is_empty()
    }

    /// Whether more of it should be fetched, with at most `share` bytes waiting to be delivered.
    pub(crate) fn is_fetchable(&self, share: usize) -> bool {
        !self.is_in_flight
            && !self.is_paused
            && !self.is_suspended
            && (self.fetched.is_empty() || self.fetched_bytes < share)
    }

    /// The number of records after the position, if known.
    pub(crate) fn lag(&self, committed_only: bool) -> Option<i64> {
        let end = self.last_stable_offset.filter(|_| committed_only);
        let end = end.or(self.high_watermark);
        Some((end? - self.progress.position()?.offset).max(0))
    }
}
