//! One step of a shard, and the one way to change durable state.

use kohort_group::history::{Event, What};

use super::{Id, Millis, Outbox, Record, Reply, Token, Work};

/// State that records change, when they are loaded as when they are decided.
pub(crate) trait Apply {
    /// Takes up what a record says.
    fn apply(&mut self, record: &Record);
}

/// One step of a shard: the time, and where its results go.
pub(crate) struct Step<'a> {
    pub(crate) now: Millis,
    date_offset_ms: Millis,
    /// Private, so that no record gets there but through [`emit`](Step::emit) and
    /// [`write`](Step::write).
    out: &'a mut Outbox,
}

impl<'a> Step<'a> {
    pub(crate) fn new(now: Millis, date_offset_ms: Millis, out: &'a mut Outbox) -> Step<'a> {
        Step {
            now,
            date_offset_ms,
            out,
        }
    }
}

impl Step<'_> {
    /// The date of the wall clock, for what is recorded and shown, and for expiry. Intervals are
    /// measured with `now`, which cannot be set.
    pub(crate) fn date(&self) -> Millis {
        self.now.saturating_add(self.date_offset_ms)
    }

    /// The one place where durable state changes: applies a record to the state that it concerns, and
    /// has it written.
    pub(crate) fn emit(&mut self, state: &mut impl Apply, record: Record) {
        state.apply(&record);
        self.out.records.push(record);
    }

    /// Has a record written of a classic group whose rebalance has come further than a record can
    /// say: what a coordinator that takes over is to begin with.
    pub(crate) fn write(&mut self, record: Record) {
        self.out.records.push(record);
    }

    /// How many records the outbox holds.
    pub(crate) fn record_count(&self) -> usize {
        self.out.records.len()
    }

    pub(crate) fn reply(&mut self, token: Token, reply: Reply) {
        self.out.replies.push((token, reply));
    }

    pub(crate) fn work(&mut self, work: Work) {
        self.out.work.push(work);
    }

    /// Tells the history, and the log, what happened to a group: an event, a cause, or just words
    /// (one line, no trailing full stop).
    pub(crate) fn event(&mut self, group_id: &Id, what: impl Into<What>) {
        let mut event = Event {
            at: self.now,
            group_id: group_id.clone(),
            what: what.into(),
        };
        event.move_dates(self.date_offset_ms);
        self.out.events.push(event);
    }
}
