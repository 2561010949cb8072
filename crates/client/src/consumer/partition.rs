//! What a consumer knows of a partition that it has.

use std::collections::VecDeque;

use tokio::time::Instant;

pub(super) use super::reader::progress::Position;
use super::{OffsetReset, fetched::Fetched, in_order::Commits, reader::progress::Progress};
use crate::{CommittedOffset, Error, OffsetSpec, Result, TopicPartition, Uuid, measure::Consumed};

/// Where to go on reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seek {
    /// At this offset.
    Offset(i64),
    /// At the first record.
    Earliest,
    /// After the last record.
    Latest,
    /// At the first record at or after this time in milliseconds since 1970; after the last one if
    /// there is none.
    Timestamp(i64),
    /// Where the group has committed; where [`OffsetReset`] says if it has not.
    Committed,
}

impl Seek {
    /// An error if there can be no such place.
    pub(super) fn check(self, partition: &TopicPartition) -> Result<()> {
        match self {
            Seek::Offset(..0) => Err(Error::State(format!("{partition} has no negative offsets"))),
            _ => Ok(()),
        }
    }
}

impl From<i64> for Seek {
    fn from(offset: i64) -> Seek {
        Seek::Offset(offset)
    }
}

/// Where the next fetch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetching {
    /// What the group has committed is to be asked for.
    FindCommitted,
    /// The offset is to be asked for, by time.
    Find(OffsetSpec),
    /// It is being asked for, or whether it is still in the log.
    Finding,
    /// There.
    At(Position),
    /// Nowhere, until the application says where: there was an error.
    Stuck,
}

/// A partition that a consumer has.
#[derive(Debug)]
pub(super) struct Partition {
    /// A number that no other assignment of the partition and no other seek in it has. Answers to
    /// what was asked under another number do not count.
    pub(super) lease: u64,
    /// The lease with which it was assigned: another assignment of it has another one.
    pub(super) since: u64,
    /// The topic's id, once known: a topic that is deleted and created again has another one, and
    /// nothing of the old topic counts for the new one.
    pub(super) topic_id: Option<Uuid>,
    /// Whether the coordinator assigned the partition under that id (consumer protocol). If the
    /// topic is replaced, it assigns the new one.
    pub(super) is_assigned_by_id: bool,
    /// Set if the topic replaced another one of the same name while the consumer read that: all of
    /// its records are new, so reading starts at the first one if nothing is committed.
    pub(super) is_replacement: bool,
    pub(super) progress: Progress,
    pub(super) commits: Commits,
    pub(super) fetching: Fetching,
    /// Under which epoch of the leader the position is known to be in the log.
    pub(super) validated: Option<i32>,
    pub(super) fetched: VecDeque<Fetched>,
    pub(super) fetched_bytes: usize,
    pub(super) in_flight: bool,
    /// It has its place among those whose turn comes.
    pub(super) has_turn: bool,
    pub(super) paused: bool,
    /// It is about to be taken away: nothing more of it is given to the application.
    pub(super) held: bool,
    pub(super) high_watermark: Option<i64>,
    pub(super) last_stable_offset: Option<i64>,
    pub(super) log_start_offset: Option<i64>,
    /// Another replica than the leader to fetch from, and until when.
    pub(super) preferred_replica: Option<(i32, Instant)>,
    /// Until when nothing is asked about it.
    pub(super) not_before: Option<Instant>,
    pub(super) failures: u32,
    pub(super) measures: Consumed,
}

impl Partition {
    pub(super) fn new(lease: u64, start: Seek, measures: Consumed) -> Partition {
        let mut partition = Partition {
            lease,
            since: lease,
            topic_id: None,
            is_assigned_by_id: false,
            is_replacement: false,
            progress: Progress::default(),
            commits: Commits::default(),
            fetching: Fetching::Stuck,
            validated: None,
            fetched: VecDeque::new(),
            fetched_bytes: 0,
            in_flight: false,
            has_turn: false,
            paused: false,
            held: false,
            high_watermark: None,
            last_stable_offset: None,
            log_start_offset: None,
            preferred_replica: None,
            not_before: None,
            failures: 0,
            measures,
        };
        partition.seek(lease, start);
        partition
    }

    /// Goes elsewhere. What was fetched is thrown away; its size is returned.
    pub(super) fn seek(&mut self, lease: u64, to: Seek) -> usize {
        self.lease = lease;
        self.in_flight = false;
        self.not_before = None;
        self.failures = 0;
        self.validated = None;
        self.fetched.clear();
        self.fetching = match to {
            Seek::Offset(offset) => Fetching::At(Position {
                offset,
                leader_epoch: None,
            }),
            Seek::Earliest => Fetching::Find(OffsetSpec::Earliest),
            Seek::Latest => Fetching::Find(OffsetSpec::Latest),
            Seek::Timestamp(timestamp) => Fetching::Find(OffsetSpec::Timestamp(timestamp)),
            Seek::Committed => Fetching::FindCommitted,
        };
        self.progress.seek(match self.fetching {
            Fetching::At(position) => Some(position),
            _ => None,
        });
        std::mem::take(&mut self.fetched_bytes)
    }

    /// The offset where reading begins or continues was looked up. What is left of earlier fetches
    /// holds no records for the application; its size is returned.
    pub(super) fn found(&mut self, lease: u64, position: Position) -> usize {
        let size = self.throw_away(lease);
        self.fetching = Fetching::At(position);
        self.validated = None;
        self.progress.skip_to(position);
        self.failures = 0;
        self.not_before = None;
        size
    }

    /// Whether the application has been given all records before `offset`.
    pub(super) fn is_given_up_to(&self, offset: i64) -> bool {
        let position = self.progress.position();
        position.is_none_or(|position| position.offset >= offset)
    }

    /// Throws away what was fetched and not given to the application: it will be fetched again.
    /// Returns its size.
    pub(super) fn throw_away(&mut self, lease: u64) -> usize {
        self.lease = lease;
        self.in_flight = false;
        self.fetched.clear();
        if let (Fetching::At(_) | Fetching::Finding, Some(position)) =
            (self.fetching, self.progress.position())
        {
            self.fetching = Fetching::At(position);
        }
        std::mem::take(&mut self.fetched_bytes)
    }

    /// An offset was committed. `is_current` unless the application has sought elsewhere since.
    pub(super) fn committed_at(&mut self, committed: &CommittedOffset, is_current: bool) {
        self.progress.note_committed(committed.offset);
        if is_current {
            self.progress.finish_up_to(committed.into());
        }
    }

    /// What is finished and not committed yet.
    pub(super) fn to_commit(&self) -> Option<CommittedOffset> {
        let finished = self.progress.to_commit()?;
        Some(CommittedOffset {
            leader_epoch: finished.leader_epoch,
            topic_id: self.topic_id,
            ..CommittedOffset::new(finished.offset)
        })
    }

    /// Whether records of it may be given to the application.
    pub(super) fn is_deliverable(&self) -> bool {
        !self.paused && !self.held && !self.fetched.is_empty()
    }

    /// How many records there are after the position, if known.
    pub(super) fn lag(&self, committed_only: bool) -> Option<i64> {
        let end = match committed_only {
            true => self.last_stable_offset.or(self.high_watermark),
            false => self.high_watermark,
        };
        Some((end? - self.progress.position()?.offset).max(0))
    }
}

impl OffsetReset {
    /// What to ask for; `None` if it is an error.
    pub(super) fn spec(self) -> Option<OffsetSpec> {
        match self {
            OffsetReset::Earliest => Some(OffsetSpec::Earliest),
            OffsetReset::Latest => Some(OffsetSpec::Latest),
            OffsetReset::None => None,
            OffsetReset::ByDuration(age) => {
                let now = crate::time::now_ms();
                let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
                Some(OffsetSpec::Timestamp(now.saturating_sub(age).max(0)))
            }
        }
    }
}
