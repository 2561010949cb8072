//! How far the application has come in one partition: what it is given next, what it holds, what it
//! has finished, and what is committed of that.
//!
//! Records are delivered in order, but several handles can hold records of one partition and finish
//! them in any order. Only what lies before the first unfinished record may be committed.

use std::collections::VecDeque;

use super::offsets::Position;

/// Identifies a handle: one of the clones of a consumer.
pub type HandleId = u64;

/// Consecutive records that a handle was given.
#[derive(Debug, Clone, Copy)]
struct Delivery {
    /// Where reading continues after them.
    end: Position,
    state: Held,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    By(HandleId),
    /// Finished, while records before it are not.
    Finished,
    /// The handle is gone without finishing them; nothing after them can be committed.
    Abandoned,
}

/// How far the application has come in one partition.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    position: Option<Position>,
    finished: Option<Position>,
    /// What was delivered after `finished`, in order.
    unfinished: VecDeque<Delivery>,
    /// What the group is known to have committed.
    committed: Option<i64>,
    /// Whether records were finished since the last commit.
    uncommitted: bool,
}

impl Progress {
    /// The next record to deliver; unknown until it has been looked up.
    pub(crate) fn position(&self) -> Option<Position> {
        self.position
    }

    /// The application continues at `to`, on purpose; `None` if the offset has to be looked up.
    /// What it holds of the partition no longer counts.
    pub(crate) fn seek(&mut self, to: Option<Position>) {
        self.position = to;
        self.finished = to;
        self.unfinished.clear();
        self.uncommitted = false;
    }

    /// Reading continues at `to`, after what was delivered: an offset was found, or there were no
    /// records for the application up to there.
    pub(crate) fn skip_to(&mut self, to: Position) {
        self.position = Some(to);
        match self.unfinished.back_mut() {
            Some(last) => last.end = to,
            None => self.finished = Some(to),
        }
    }

    /// The records up to `end` are given to a handle.
    pub(crate) fn deliver(&mut self, handle: HandleId, end: Position) {
        self.position = Some(end);
        self.unfinished.push_back(Delivery {
            end,
            state: Held::By(handle),
        });
    }

    /// The handle has finished what it holds. Returns whether it held anything.
    pub(crate) fn finish(&mut self, handle: HandleId) -> bool {
        let held = self.replace(handle, Held::Finished);
        while let Some(first) = self.unfinished.front()
            && first.state == Held::Finished
        {
            self.finished = Some(first.end);
            self.uncommitted = true;
            self.unfinished.pop_front();
        }
        held
    }

    /// The handle is gone, and what it holds stays unfinished.
    pub(crate) fn abandon(&mut self, handle: HandleId) -> bool {
        self.replace(handle, Held::Abandoned)
    }

    fn replace(&mut self, handle: HandleId, by: Held) -> bool {
        let mut held = false;
        for delivery in &mut self.unfinished {
            if delivery.state == Held::By(handle) {
                delivery.state = by;
                held = true;
            }
        }
        held
    }

    /// Whether `handle` holds records of the partition.
    pub(crate) fn is_held_by(&self, handle: HandleId) -> bool {
        let by = Held::By(handle);
        self.unfinished.iter().any(|delivery| delivery.state == by)
    }

    /// Whether any handle holds records of the partition.
    pub(crate) fn is_held(&self) -> bool {
        let mut unfinished = self.unfinished.iter();
        unfinished.any(|delivery| matches!(delivery.state, Held::By(_)))
    }

    /// What may be committed and is not committed yet.
    pub(crate) fn to_commit(&self) -> Option<Position> {
        self.finished
            .filter(|finished| self.committed != Some(finished.offset))
    }

    /// Whether records were finished that are not committed yet.
    pub(crate) fn has_uncommitted(&self) -> bool {
        self.uncommitted
    }

    /// The group is known to have committed this offset.
    pub(crate) fn note_committed(&mut self, offset: i64) {
        self.committed = Some(offset);
        if self
            .finished
            .is_none_or(|finished| finished.offset <= offset)
        {
            self.uncommitted = false;
        }
    }

    /// The application has committed `committed`, and with that finished what comes before: later
    /// commits must not go back behind it.
    pub(crate) fn finish_up_to(&mut self, committed: Position) {
        while let Some(first) = self.unfinished.front()
            && first.end.offset <= committed.offset
        {
            self.unfinished.pop_front();
        }
        if self
            .finished
            .is_none_or(|finished| finished.offset < committed.offset)
        {
            self.finished = Some(committed);
        }
    }

    /// The log ends at `end` now; other records follow than those that were there before.
    pub(crate) fn truncate(&mut self, end: Position) {
        let cut = |position: &mut Position| {
            if position.offset > end.offset {
                *position = end;
            }
        };
        match &mut self.position {
            Some(position) => cut(position),
            None => self.position = Some(end),
        }
        self.finished.iter_mut().for_each(cut);
        self.unfinished.iter_mut().for_each(|d| cut(&mut d.end));
    }
}

#[cfg(test)]
mod tests;
