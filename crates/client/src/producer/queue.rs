//! The batches of one partition, in the order in which they are to be written.

use std::{collections::VecDeque, sync::Arc};

use kohort_wire::records::{BatchBuilder, increment_sequence};
use tokio::time::Instant;

use super::{
    batch::{Batch, Place},
    delivery::Outcome,
    identity::Identity,
};
use crate::Error;

/// A batch that takes records.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) number: u64,
    pub(super) outcome: Arc<Outcome>,
    pub(super) builder: Box<BatchBuilder>,
    pub(super) memory: usize,
    pub(super) created: Instant,
}

impl Open {
    fn seal(self) -> Batch {
        Batch::new(
            self.number,
            self.outcome,
            self.builder,
            self.memory,
            self.created,
        )
    }
}

/// A batch that is under way.
#[derive(Debug)]
pub(super) struct UnderWay {
    place: Place,
    outcome: Arc<Outcome>,
    created: Instant,
}

/// The batches of one partition.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) open: Option<Open>,
    /// Full, and never sent.
    pub(super) sealed: VecDeque<Batch>,
    /// Sent, failed, and to be sent again before all others.
    pub(super) again: VecDeque<Batch>,
    /// The batches that are under way, in order.
    pub(super) in_flight: VecDeque<UnderWay>,
    /// Until when nothing is sent.
    pub(super) not_before: Option<Instant>,
    /// How often sending has failed in a row.
    pub(super) failures: u32,
    /// What went wrong last.
    pub(super) last: Option<Error>,
    /// What is to be sent next needs another identity.
    pub(super) renew: bool,
    /// It is among those that the sender looks at.
    pub(super) listed: bool,
    sequence: i32,
    named: Option<Identity>,
}

impl Queue {
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_none()
            && self.sealed.is_empty()
            && self.again.is_empty()
            && self.in_flight.is_empty()
    }

    pub(super) fn seal(&mut self) {
        if let Some(open) = self.open.take() {
            self.sealed.push_back(open.seal());
        }
    }

    /// Whether it is unknown if something that was sent has been written.
    pub(super) fn is_unsettled(&self) -> bool {
        !self.in_flight.is_empty() || (!self.again.is_empty() && !self.renew)
    }

    /// Whether the next batch may be sent now; `most` may be under way.
    pub(super) fn may_send(&self, now: Instant, most: usize) -> bool {
        let waiting = !self.again.is_empty() || !self.sealed.is_empty();
        // After a failure one at a time, so that nothing overtakes.
        let most = if self.again.is_empty() && self.failures == 0 {
            most
        } else {
            1
        };
        waiting
            && self.in_flight.len() < most
            && self.not_before.is_none_or(|not_before| not_before <= now)
    }

    pub(super) fn next(&self) -> Option<&Batch> {
        self.again.front().or(self.sealed.front())
    }

    /// Takes the next batch, and the name and sequence number to send it with.
    pub(super) fn take(
        &mut self,
        identity: Option<Identity>,
    ) -> Option<(Batch, Option<(Identity, i32)>)> {
        let batch = self.again.pop_front().or_else(|| self.sealed.pop_front())?;
        self.in_flight.push_back(UnderWay {
            place: batch.place,
            outcome: batch.outcome.clone(),
            created: batch.created,
        });
        let sequence = identity.map(|identity| {
            if self.named != Some(identity) {
                self.named = Some(identity);
                self.sequence = 0;
            }
            match batch.sent_as {
                // It keeps its number under the same name.
                Some((sent_as, sequence)) if sent_as == identity => (identity, sequence),
                _ => {
                    let sequence = self.sequence;
                    self.sequence = increment_sequence(sequence, batch.count);
                    (identity, sequence)
                }
            }
        });
        Some((batch, sequence))
    }

    /// A batch is not under way any more. Returns whether it was the oldest that is not written.
    pub(super) fn returned(&mut self, place: Place) -> bool {
        let index = self.in_flight.iter().position(|other| other.place == place);
        if let Some(index) = index {
            self.in_flight.remove(index);
        }
        let older = |batch: &Batch| batch.place < place;
        index == Some(0) && !self.again.front().is_some_and(older)
    }

    /// To be sent again, in its place.
    pub(super) fn put_back(&mut self, batch: Batch) {
        let later = |other: &Batch| other.place > batch.place;
        let at = self
            .again
            .iter()
            .position(later)
            .unwrap_or(self.again.len());
        self.again.insert(at, batch);
    }

    /// Takes out what has waited since before `created`.
    pub(super) fn expired(&mut self, created: Instant) -> Vec<Batch> {
        let mut expired = Vec::new();
        for batches in [&mut self.again, &mut self.sealed] {
            while batches
                .front()
                .is_some_and(|batch| batch.created <= created)
            {
                expired.extend(batches.pop_front());
            }
        }
        expired
    }

    /// Forgets all batches, also those that are under way. Returns their outcomes.
    pub(super) fn abandon(&mut self) -> Vec<Arc<Outcome>> {
        self.seal();
        let waiting = self.again.drain(..).chain(self.sealed.drain(..));
        let mut outcomes: Vec<_> = waiting.map(|batch| batch.outcome.clone()).collect();
        outcomes.extend(self.in_flight.drain(..).map(|batch| batch.outcome));
        outcomes
    }

    /// The outcomes of what is under way since before `created`.
    pub(super) fn overdue(&self, created: Instant) -> impl Iterator<Item = &Arc<Outcome>> {
        let under_way = self.in_flight.iter();
        let overdue = under_way.filter(move |batch| batch.created <= created);
        overdue
            .map(|batch| &batch.outcome)
            .filter(|outcome| !outcome.is_known())
    }

    /// When the oldest record that waits, or is under way and waited for, came.
    pub(super) fn oldest(&self) -> Option<Instant> {
        let waiting = [self.again.front(), self.sealed.front()];
        let waiting = waiting.into_iter().flatten().map(|batch| batch.created);
        let under_way = self.in_flight.iter();
        let under_way = under_way.filter(|batch| !batch.outcome.is_known());
        waiting.chain(under_way.map(|batch| batch.created)).min()
    }
}
