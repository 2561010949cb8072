//! What a log remembers of the idempotent producers that wrote to it.
//!
//! Kafka's ProducerStateManager and ProducerAppendInfo decide the same way; since 2.4 (KIP-360) a
//! producer that is not known may begin with any sequence number, so UNKNOWN_PRODUCER_ID is never
//! the answer.

use kohort_wire::records::{BatchHeader, NO_PRODUCER_EPOCH, NO_SEQUENCE, increment_sequence};
use rustc_hash::FxHashMap;

use crate::LogError;

/// How many of a producer's last batches are told apart from duplicates: as many as a client may
/// have in flight.
pub(crate) const BATCHES_KEPT: usize = 5;

/// One of the last batches of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerBatch {
    /// The sequence number of its last record.
    pub last_sequence: i32,
    /// The offset of its last record.
    pub last_offset: i64,
    /// The last offset minus the first.
    pub offset_delta: i32,
    /// Its largest timestamp in ms.
    pub timestamp: i64,
}

impl ProducerBatch {
    /// The offset of its first record.
    pub const fn base_offset(&self) -> i64 {
        self.last_offset - self.offset_delta as i64
    }

    /// The sequence number of its first record.
    pub const fn base_sequence(&self) -> i32 {
        increment_sequence(self.last_sequence, -self.offset_delta)
    }
}

/// What is known of one producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerState {
    /// Its epoch, or −1.
    pub epoch: i16,
    /// The epoch of the coordinator that ended its last transaction, or −1.
    pub coordinator_epoch: i32,
    /// When it last wrote, by the batch's timestamp in ms.
    pub last_timestamp: i64,
    /// Where its open transaction begins.
    pub transaction_first_offset: Option<i64>,
    /// When it was last heard of, by the broker's clock in ms; `None` since the log was opened and
    /// until that is looked at. The timestamps of records say nothing about it: they may be
    /// missing, from a mirrored topic's past, or in the future.
    pub(crate) seen_ms: Option<i64>,
    pub(crate) batches: [Option<ProducerBatch>; BATCHES_KEPT],
}

impl ProducerState {
    pub(crate) const EMPTY: ProducerState = ProducerState {
        epoch: NO_PRODUCER_EPOCH,
        coordinator_epoch: -1,
        last_timestamp: -1,
        transaction_first_offset: None,
        seen_ms: None,
        batches: [None; BATCHES_KEPT],
    };

    /// Its last batch.
    pub fn last_batch(&self) -> Option<&ProducerBatch> {
        self.batches[0].as_ref()
    }

    /// The sequence number of its last record, or −1.
    pub fn last_sequence(&self) -> i32 {
        self.last_batch()
            .map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    fn duplicate_of(&self, header: &BatchHeader) -> Option<ProducerBatch> {
        if header.producer_epoch != self.epoch {
            return None;
        }
        let same = |batch: &&ProducerBatch| {
            batch.base_sequence() == header.base_sequence
                && batch.last_sequence == header.last_sequence()
        };
        self.batches.iter().flatten().find(same).copied()
    }

    fn check(&self, header: &BatchHeader) -> Result<(), LogError> {
        let out_of_order = Err(LogError::OutOfOrderSequence {
            producer_id: header.producer_id,
            sequence: header.base_sequence,
            last: self.last_sequence(),
        });
        if self.epoch == NO_PRODUCER_EPOCH {
            return Ok(());
        }
        if header.producer_epoch < self.epoch {
            return Err(LogError::InvalidProducerEpoch {
                producer_id: header.producer_id,
                epoch: header.producer_epoch,
                current: self.epoch,
            });
        }
        if header.producer_epoch > self.epoch {
            return match header.base_sequence {
                0 => Ok(()),
                _ => out_of_order,
            };
        }
        if header.base_sequence == increment_sequence(self.last_sequence(), 1) {
            Ok(())
        } else {
            out_of_order
        }
    }

    pub(crate) fn add(&mut self, epoch: i16, batch: ProducerBatch) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.batches = [None; BATCHES_KEPT];
        }
        self.batches.rotate_right(1);
        self.batches[0] = Some(batch);
        self.last_timestamp = batch.timestamp;
    }
}

/// All producers of a log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Producers {
    states: FxHashMap<i64, ProducerState>,
}

/// What an append does to the producers.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The batches are new; this is what the producers become once they are written.
    New(Vec<(i64, ProducerState)>),
    /// The batch is in the log already.
    Duplicate(ProducerBatch),
}

impl Producers {
    pub(crate) fn get(&self, producer_id: i64) -> Option<&ProducerState> {
        self.states.get(&producer_id)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (i64, &ProducerState)> {
        self.states.iter().map(|(&id, state)| (id, state))
    }

    pub(crate) fn insert(&mut self, producer_id: i64, state: ProducerState) {
        self.states.insert(producer_id, state);
    }

    /// Whether a client may append batches with these headers, offsets assigned.
    pub(crate) fn check(
        &self,
        headers: impl Iterator<Item = BatchHeader>,
        now_ms: i64,
    ) -> Result<Verdict, LogError> {
        let mut changed: Vec<(i64, ProducerState)> = Vec::new();
        for header in headers.filter(BatchHeader::has_producer_id) {
            let id = header.producer_id;
            let mut state = changed
                .iter()
                .rfind(|change| change.0 == id)
                .map(|change| change.1)
                .or_else(|| self.get(id).copied())
                .unwrap_or(ProducerState::EMPTY);
            if let Some(duplicate) = state.duplicate_of(&header) {
                return Ok(Verdict::Duplicate(duplicate));
            }
            state.check(&header)?;
            add(&mut state, &header);
            state.seen_ms = Some(now_ms);
            changed.push((id, state));
        }
        Ok(Verdict::New(changed))
    }

    pub(crate) fn apply(&mut self, changed: Vec<(i64, ProducerState)>) {
        self.states.extend(changed);
    }

    /// Takes over a batch that is in the log.
    pub(crate) fn replay(&mut self, header: &BatchHeader) {
        if header.has_producer_id() && !header.is_control() {
            let state = self
                .states
                .entry(header.producer_id)
                .or_insert(ProducerState::EMPTY);
            add(state, header);
        }
    }

    /// Forgets producers that have not written since.
    pub(crate) fn expire(&mut self, now_ms: i64, expiration_ms: i64) -> usize {
        let before = self.states.len();
        self.states.retain(|_, state| {
            let seen_ms = *state.seen_ms.get_or_insert(now_ms);
            state.transaction_first_offset.is_some()
                || now_ms.saturating_sub(seen_ms) < expiration_ms
        });
        before - self.states.len()
    }
}

fn add(state: &mut ProducerState, header: &BatchHeader) {
    let batch = ProducerBatch {
        last_sequence: header.last_sequence(),
        last_offset: header.last_offset(),
        offset_delta: header.last_offset_delta,
        timestamp: header.max_timestamp,
    };
    state.add(header.producer_epoch, batch);
}

#[cfg(test)]
mod tests {
    use super::*;
    use kohort_wire::records::{BatchBuilder, Compression};

    fn header(epoch: i16, sequence: i32, count: usize, offset: i64) -> BatchHeader {
        let mut builder = BatchBuilder::new(Compression::None, None);
        builder.set_producer(7, epoch, sequence);
        builder.set_base_offset(offset);
        for _ in 0..count {
            builder.append(1000, None, None, []).unwrap();
        }
        BatchHeader::parse(builder.build()).unwrap()
    }

    fn send(producers: &mut Producers, header: BatchHeader) -> Result<Option<i64>, LogError> {
        match producers.check([header].into_iter(), 1000)? {
            Verdict::New(changed) => {
                producers.apply(changed);
                Ok(None)
            }
            Verdict::Duplicate(batch) => Ok(Some(batch.base_offset())),
        }
    }

    #[test]
    fn the_last_five_batches_are_known_again_and_older_ones_are_out_of_order() {
        let mut producers = Producers::default();
        for batch in 0..7 {
            let new = send(
                &mut producers,
                header(0, batch * 3, 3, i64::from(batch) * 3),
            );
            assert_eq!(new.unwrap(), None);
        }
        for batch in 2..7 {
            let again = send(&mut producers, header(0, batch * 3, 3, 21));
            assert_eq!(again.unwrap(), Some(i64::from(batch) * 3));
        }
        for (sequence, count) in [(0, 3), (3, 3), (22, 3), (18, 2), (17, 4)] {
            let error = send(&mut producers, header(0, sequence, count, 21)).unwrap_err();
            assert!(
                matches!(error, LogError::OutOfOrderSequence { .. }),
                "{sequence}"
            );
        }
    }

    #[test]
    fn a_new_epoch_begins_at_zero_and_an_old_one_is_refused() {
        let mut producers = Producers::default();
        send(&mut producers, header(1, 40, 1, 0)).unwrap();
        let error = send(&mut producers, header(2, 41, 1, 1)).unwrap_err();
        assert!(matches!(error, LogError::OutOfOrderSequence { .. }));
        send(&mut producers, header(2, 0, 1, 1)).unwrap();
        let error = send(&mut producers, header(1, 41, 1, 2)).unwrap_err();
        assert!(matches!(error, LogError::InvalidProducerEpoch { .. }));
    }

    #[test]
    fn a_producer_that_is_not_known_begins_anywhere() {
        let mut producers = Producers::default();
        assert_eq!(send(&mut producers, header(3, 1234, 2, 0)).unwrap(), None);
        assert_eq!(send(&mut producers, header(3, 1236, 2, 2)).unwrap(), None);
    }

    #[test]
    fn sequence_numbers_go_on_at_zero_after_the_largest() {
        let mut producers = Producers::default();
        send(&mut producers, header(0, i32::MAX - 1, 3, 0)).unwrap();
        assert_eq!(producers.get(7).unwrap().last_sequence(), 0);
        send(&mut producers, header(0, 1, 1, 3)).unwrap();
        let again = send(&mut producers, header(0, i32::MAX - 1, 3, 4)).unwrap();
        assert_eq!(again, Some(0));
    }

    #[test]
    fn silent_producers_are_forgotten() {
        let mut producers = Producers::default();
        send(&mut producers, header(0, 0, 1, 0)).unwrap();
        assert_eq!(producers.expire(1999, 1000), 0);
        assert_eq!(producers.expire(2000, 1000), 1);
    }

    #[test]
    fn a_producer_is_silent_by_the_clock_and_not_by_its_records() {
        let mut producers = Producers::default();
        for timestamp in [-1, 5, i64::MAX] {
            let mut sent = header(0, 0, 1, 0);
            sent.max_timestamp = timestamp;
            send(&mut producers, sent).unwrap();
            assert_eq!(producers.expire(1999, 1000), 0, "{timestamp}");
            assert_eq!(producers.expire(2000, 1000), 1, "{timestamp}");
        }
        // One that is known from before the start counts from when that is first looked at.
        producers.replay(&header(0, 0, 1, 0));
        assert_eq!(producers.expire(50_000, 1000), 0);
        assert_eq!(producers.expire(50_999, 1000), 0);
        assert_eq!(producers.expire(51_000, 1000), 1);
    }
}
