//! Rewind of a live group: new offsets for partitions while their consumers run.
//!
//! An administrator's OffsetCommit (generation −1, no member) whose metadata begins with
//! [`MARK`](kohort_group::rewind::MARK) asks for it. The coordinator makes the owners revoke the partitions. Once no member
//! owns any of them, it writes the new offsets in one batch. Then it assigns the partitions again, and
//! the new owners start at the committed offsets, as always.
//!
//! ```text
//! asked for ── RewindUnderWay ──▶ the partitions are not assigned to any member
//!                                 owners revoke, leave, or are fenced      (nothing else stops)
//! no owner left ── OffsetCommit…, Rewound, tombstone of RewindUnderWay, in one batch
//!                                 partitions are assigned, at a newer epoch or generation
//! ```
//!
//! - Consumer groups: a target is what the assignor says *without* the partitions of the rewind; the
//!   group's epochs move on so that each owner is told to revoke.
//! - Classic groups: by a rebalance. When the join phase ends, members of the eager strategies own
//!   nothing. Members that keep partitions through a rebalance are removed, and rejoin.
//!
//! Owners may commit until they have revoked the partitions, and the new offsets are written after
//! that. From then on, only the current owner of a partition that was ever rewound can commit it, and
//! only since it was assigned ([`fence`]). So no late commit of a former owner undoes a rewind.
//!
//! Everything that a rewind needs is in records, so a new coordinator finishes it. It ends when all
//! owners have revoked. Their session and rebalance timeouts limit how long that takes, even for
//! members that these would otherwise not remove: static members of a classic group that do not rejoin,
//! and classic members of a consumer group that rejoin without revoking. It is cancelled if a topic is
//! deleted meanwhile, or on request (the option `cancel` of the mark). A client whose response was lost
//! may ask again ([`repeat`]). What was committed before is kept with
//! the [`Rewound`] record until the next rewind, so that it can be undone: an OffsetFetch by the
//! member [`BEFORE_MEMBER`](kohort_group::rewind::BEFORE_MEMBER) reads it.
//!
//! # Driving it
//!
//! Send [`Request::OffsetCommit`](super::Request::OffsetCommit) with generation −1, an empty member
//! id, and metadata [`MARK`] in every partition. An offset of −1 forgets what was committed. The
//! reply comes under its token when the rewind has happened, however long that takes; other requests
//! and alarms go on meanwhile. The offsets are taken as they are: whether they lie within the log is
//! for the shell to check, which has the logs.

mod advance;
mod apply;
mod before;
mod cancel;
mod classic;
mod consumer;
mod fence;
mod finish;
mod records;
mod repeat;
mod start;
#[cfg(test)]
mod tests;

pub use records::{
    RewindKey, RewindPartition, RewindTopic, RewindValue, RewoundKey, RewoundPartition,
    RewoundTopic, RewoundValue,
};
pub(crate) use repeat::Told;

use std::collections::{BTreeMap, BTreeSet};

use kohort_group::{
    TopicPartitions,
    history::{Cause, Few, Offset, Who},
};
use kohort_wire::Uuid;

use super::{Id, Millis, Token, offsets::GroupOffsets};

/// A rewind that is under way.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rewind {
    pub(crate) asked_at: Millis,
    pub(crate) client_id: Id,
    pub(crate) client_host: Id,
    /// Where to, by topic and partition.
    pub(crate) goals: BTreeMap<(Id, i32), Goal>,
    /// The same partitions, which no member may own until the rewind is done.
    pub(crate) partitions: TopicPartitions,
    /// The requests that wait for it; none after a restart.
    pub(crate) waiting: Vec<Token>,
    /// Clients that were told to wait with another rewind until this one ends: they retry.
    pub(crate) refused: BTreeSet<(Id, Id)>,
    /// The generation of a classic group at which its owners were told to rejoin.
    pub(crate) begun_at: Option<i32>,
}

/// Where a partition is rewound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Goal {
    pub(crate) topic_id: Uuid,
    /// Negative: to where nothing is committed.
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) metadata: Box<str>,
}

/// The last rewind of a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rewound {
    pub(crate) at: Millis,
    /// A classic group's members have nothing of before this generation; −1 for other groups.
    pub(crate) generation: i32,
    pub(crate) before: BTreeMap<(Id, i32), Before>,
    /// All partitions that were ever rewound.
    pub(crate) fenced: TopicPartitions,
}

/// What was committed for a partition before it was rewound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Before {
    pub(crate) topic_id: Uuid,
    /// Negative: nothing was committed.
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) metadata: Box<str>,
    /// Where it was rewound to.
    pub(crate) to: i64,
}

impl Rewind {
    /// The client that asked for it, as events name it.
    fn by(&self) -> Who {
        Who::new(&"".into(), None, &self.client_id, &self.client_host)
    }

    /// From its record: no request waits for it.
    fn new(asked_at: Millis, asker: (&str, &str), goals: BTreeMap<(Id, i32), Goal>) -> Rewind {
        let partitions = goals.iter().map(|((_, p), goal)| (goal.topic_id, *p));
        Rewind {
            asked_at,
            client_id: Id::from(asker.0),
            client_host: Id::from(asker.1),
            partitions: partitions.collect(),
            goals,
            waiting: Vec::new(),
            refused: BTreeSet::new(),
            begun_at: None,
        }
    }

    fn cause(&self) -> Cause {
        Cause::Rewind {
            by: self.by(),
            partitions: self.named(),
        }
    }

    /// The partitions, as events name them.
    fn named(&self) -> Few<String> {
        let names = self.goals.keys();
        names
            .map(|(topic, partition)| format!("{topic}-{partition}"))
            .collect()
    }

    /// From where to where, given what is committed now.
    fn offsets(&self, committed: &GroupOffsets) -> Few<Offset> {
        let offsets = self.goals.iter().map(|((topic, partition), goal)| Offset {
            partition: format!("{topic}-{partition}"),
            from: committed.get(topic, *partition).map(|now| now.offset),
            to: goal.offset.max(-1),
        });
        offsets.collect()
    }
}
