//! What a shard has to look at when some time has come.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{Id, Millis};

/// What to look at.
///
/// An alarm is only a reminder: whoever handles it compares the time with the deadline that the
/// state holds now. So a heartbeat just moves the deadline in the state, and the alarm that was set
/// earlier sets itself again when it goes off; nothing is ever taken out of the heap.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// A classic member's session, or the time to come back with the id that it was given.
    ClassicMember { group_id: Id, member_id: Id },
    /// A classic group's join or sync phase.
    ClassicRebalance { group_id: Id },
    /// A consumer group member's session.
    ConsumerSession { group_id: Id, member_id: Id },
    /// A consumer group member's time to revoke, or (a classic member of a consumer group) to rejoin
    /// or sync.
    ConsumerRebalance { group_id: Id, member_id: Id },
    /// A consumer group's next target assignment, regex refresh or other look.
    ConsumerGroup { group_id: Id },
    /// Expiry of offsets.
    OffsetExpiry,
}

/// The alarms that are set.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    heap: BinaryHeap<Reverse<(Millis, Alarm)>>,
}

impl Alarms {
    pub(crate) fn set(&mut self, at: Millis, alarm: Alarm) {
        self.heap.push(Reverse((at, alarm)));
    }

    /// When the first goes off.
    pub(crate) fn next(&self) -> Option<Millis> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes one whose time has come.
    pub(crate) fn take(&mut self, now: Millis) -> Option<Alarm> {
        self.next().filter(|&at| at <= now)?;
        self.heap.pop().map(|Reverse((_, alarm))| alarm)
    }
}
