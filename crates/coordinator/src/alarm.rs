//! What a shard has to look at when some time has come.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{Id, Millis};

/// What to look at.
///
/// An alarm is only a reminder: its handler compares the time with the deadline that the state holds
/// now. So a heartbeat just moves the deadline in the state, and the alarm that was set
/// earlier sets itself again when it goes off. An alarm for what is gone stays in the heap until its
/// time has come, or until such alarms are the most of it.
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
    /// A group that rebalances: time to say whom it waits for.
    History { group_id: Id },
    /// Expiry of offsets.
    OffsetExpiry,
}

impl Alarm {
    /// The group that it is about.
    pub(crate) fn group_id(&self) -> Option<&Id> {
        match self {
            Alarm::ClassicMember { group_id, .. }
            | Alarm::ClassicRebalance { group_id }
            | Alarm::ConsumerSession { group_id, .. }
            | Alarm::ConsumerRebalance { group_id, .. }
            | Alarm::ConsumerGroup { group_id }
            | Alarm::History { group_id } => Some(group_id),
            Alarm::OffsetExpiry => None,
        }
    }
}

/// Fewer alarms than these are not worth sweeping.
const SWEPT_FROM: usize = 1_000;

/// The alarms that are set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Alarms {
    heap: BinaryHeap<Reverse<(Millis, Alarm)>>,
    /// How many there were after the last sweep.
    swept: usize,
}

impl Alarms {
    /// Whether to look for alarms of what is gone: there are twice as many as there were live ones, so
    /// that sweeping costs as little as setting.
    pub(crate) fn are_to_be_swept(&self) -> bool {
        self.heap.len() > SWEPT_FROM.max(2 * self.swept)
    }

    /// Keeps only the alarms that are still waited for.
    pub(crate) fn sweep(&mut self, is_live: impl Fn(Millis, &Alarm) -> bool) {
        self.heap.retain(|Reverse((at, alarm))| is_live(*at, alarm));
        self.heap.shrink_to(2 * self.heap.len());
        self.swept = self.heap.len();
    }

    pub(crate) fn set(&mut self, at: Millis, alarm: Alarm) {
        self.heap.push(Reverse((at, alarm)));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
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

/// A deadline in the state, and the alarm that reminds of it.
///
/// Moving the deadline later, which is what each heartbeat does, sets no alarm: the one that is set
/// goes off early, and is set again. So each deadline has one live alarm however often it moves.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Deadline {
    at: Millis,
    alarm_at: Option<Millis>,
}

/// What an alarm means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fired {
    /// The deadline has passed.
    Due,
    /// The deadline has moved: the alarm is to be set again for this time.
    Again(Millis),
    /// Another alarm stands for the deadline.
    Stale,
}

impl Deadline {
    pub(crate) fn at(&self) -> Millis {
        self.at
    }

    /// How long until it, if an alarm stands for it; never less than −1.
    pub(crate) fn left(&self, now: Millis) -> Option<Millis> {
        self.alarm_at.map(|_| (self.at - now).max(-1))
    }

    /// Whether the alarm that was set for `at` stands for it.
    pub(crate) fn has_alarm_at(&self, at: Millis) -> bool {
        self.alarm_at == Some(at)
    }

    /// Moves the deadline. Returns when to set an alarm, if one is needed.
    #[must_use]
    pub(crate) fn move_to(&mut self, at: Millis) -> Option<Millis> {
        self.at = at;
        if self.alarm_at.is_some_and(|alarm_at| alarm_at <= at) {
            return None;
        }
        self.alarm_at = Some(at);
        self.alarm_at
    }

    /// Takes an alarm that went off at `now`.
    pub(crate) fn fired(&mut self, now: Millis) -> Fired {
        match self.alarm_at {
            Some(alarm_at) if alarm_at <= now => {}
            _ => return Fired::Stale,
        }
        if self.at > now {
            self.alarm_at = Some(self.at);
            return Fired::Again(self.at);
        }
        self.alarm_at = None;
        Fired::Due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_has_one_live_alarm_however_often_it_moves() {
        let mut deadline = Deadline::default();
        assert_eq!(deadline.move_to(10), Some(10));
        assert_eq!(deadline.move_to(20), None);
        assert_eq!(deadline.move_to(30), None);
        assert_eq!(deadline.fired(10), Fired::Again(30));
        assert_eq!(deadline.move_to(15), Some(15));
        assert_eq!(deadline.fired(15), Fired::Due);
        assert_eq!(deadline.fired(30), Fired::Stale);
    }
}
