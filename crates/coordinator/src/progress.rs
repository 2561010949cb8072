//! How far a rebalance has come: what its events tell of times and of who was late.

use rustc_hash::FxHashSet;

use crate::{Id, Millis, alarm::Deadline};
use kohort_group::history::Late;

/// How long a phase may take before the history says whom it waits for.
const FIRST_LOOK_MS: i64 = 1_000;

/// The longest pause between two such events.
const PAUSE_MAX_MS: i64 = 60_000;

/// Up to how many members that are left each one that does its part is worth an event.
const LAST_FEW: usize = 10;

/// How many events of one epoch tell of members that have to revoke.
const REVOCATIONS_TOLD_MAX: usize = 10;

/// How far the rebalance of a group has come. Nothing of it is durable: after a restart times count
/// from when the group was loaded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// When the rebalance began; `None` while there is none.
    pub(crate) began_at: Option<Millis>,
    /// When its present phase began.
    pub(crate) phase_since: Millis,
    /// The last member so far to do its part of the phase.
    pub(crate) last: Option<Late>,
    /// The last member so far to revoke.
    pub(crate) last_to_revoke: Option<Late>,
    /// Members of a consumer group that have not reached their target.
    pub(crate) lagging: FxHashSet<Id>,
    /// When to say whom the phase waits for.
    pub(crate) look: Deadline,
    pause_ms: i64,
    has_said: bool,
    revocations_told: usize,
}

impl Progress {
    /// A rebalance begins, or gets another cause.
    pub(crate) fn begin(&mut self, now: Millis) {
        self.began_at.get_or_insert(now);
    }

    /// How long it has taken so far.
    pub(crate) fn total_ms(&self, now: Millis) -> i64 {
        self.began_at.map_or(0, |began_at| (now - began_at).max(0))
    }

    /// How long the present phase has taken so far.
    pub(crate) fn phase_ms(&self, now: Millis) -> i64 {
        (now - self.phase_since).max(0)
    }

    /// A phase begins. Returns when to look at it, if an alarm is needed for that.
    #[must_use]
    pub(crate) fn begin_phase(&mut self, now: Millis) -> Option<Millis> {
        self.begin(now);
        self.phase_since = now;
        self.last = None;
        self.last_to_revoke = None;
        self.has_said = false;
        self.revocations_told = 0;
        self.pause_ms = FIRST_LOOK_MS;
        self.look.move_to(now + FIRST_LOOK_MS)
    }

    /// The history has said whom the phase waits for. Returns when to look again, if an alarm is
    /// needed for that.
    #[must_use]
    pub(crate) fn said(&mut self, now: Millis) -> Option<Millis> {
        self.has_said = true;
        self.pause_ms = (2 * self.pause_ms).clamp(FIRST_LOOK_MS, PAUSE_MAX_MS);
        self.look.move_to(now + self.pause_ms)
    }

    /// Whether the history has said whom the phase waits for.
    pub(crate) fn has_said(&self) -> bool {
        self.has_said
    }

    /// Whether to say anew whom the phase waits for, now that one of these has done its part.
    pub(crate) fn is_worth_saying(&self, left: usize) -> bool {
        self.has_said && (1..=LAST_FEW).contains(&left)
    }

    /// Whether one more member that has to revoke is worth an event of its own.
    pub(crate) fn tells_of_revocation(&mut self) -> bool {
        self.revocations_told += 1;
        self.revocations_told <= REVOCATIONS_TOLD_MAX
    }

    /// The rebalance is over.
    pub(crate) fn end(&mut self) {
        *self = Progress {
            look: self.look,
            ..Progress::default()
        };
    }
}
