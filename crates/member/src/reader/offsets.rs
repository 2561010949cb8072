//! Positions in partitions, and the ways to name one.

use std::time::Duration;

use kohort_wire::{ByteString, Uuid};

/// A position in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The offset of the next record.
    pub offset: i64,
    /// The epoch of the leader that wrote the record before it, if known.
    pub leader_epoch: Option<i32>,
}

impl Position {
    /// A position with an unknown leader epoch.
    pub fn at(offset: i64) -> Position {
        Position {
            offset,
            leader_epoch: None,
        }
    }
}

impl From<&CommittedOffset> for Position {
    fn from(committed: &CommittedOffset) -> Position {
        Position {
            offset: committed.offset,
            leader_epoch: committed.leader_epoch,
        }
    }
}

/// How far a group has come in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The offset of the next record to be read.
    pub offset: i64,
    /// The epoch of the leader that wrote the last record that was read, if known: by it a
    /// truncated log is recognised.
    pub leader_epoch: Option<i32>,
    /// What the committing application wanted to remember; often empty.
    pub metadata: ByteString,
    /// The id of the topic to which the offset belongs, if known. When it is committed, the commit
    /// is refused if the topic has been deleted and created again since. Brokers do not return it.
    pub topic_id: Option<Uuid>,
}

impl CommittedOffset {
    /// An offset without anything further.
    pub fn new(offset: i64) -> CommittedOffset {
        CommittedOffset {
            offset,
            leader_epoch: None,
            metadata: ByteString::new(),
            topic_id: None,
        }
    }
}

impl From<i64> for CommittedOffset {
    fn from(offset: i64) -> CommittedOffset {
        CommittedOffset::new(offset)
    }
}

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

impl From<i64> for Seek {
    fn from(offset: i64) -> Seek {
        Seek::Offset(offset)
    }
}

/// `auto.offset.reset`: where to begin in a partition for which nothing was committed, or where
/// what was to be read next is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OffsetReset {
    /// At the first record.
    Earliest,
    /// After the last record.
    #[default]
    Latest,
    /// Nowhere: it is an error.
    None,
    /// At the first record that is not older than this (KIP-1106).
    ByDuration(Duration),
}

impl OffsetReset {
    /// What to look up; `None` if the application decides.
    pub(crate) fn target(self) -> Option<Target> {
        match self {
            OffsetReset::Earliest => Some(Target::Earliest),
            OffsetReset::Latest => Some(Target::Latest),
            OffsetReset::None => None,
            OffsetReset::ByDuration(age) => Some(Target::MaxAge(age)),
        }
    }
}

/// An offset to look up with ListOffsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// That of the first record.
    Earliest,
    /// The one after the last record.
    Latest,
    /// That of the first record at or after this time, in milliseconds since 1970.
    Timestamp(i64),
    /// That of the first record that is not older than this.
    MaxAge(Duration),
}
