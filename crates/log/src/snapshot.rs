//! The producers of a log as a `.snapshot` file, in Kafka's format (ProducerSnapshot, version 1).
//!
//! Kafka's format has the last batch of each producer only: what else was in flight when the broker
//! ended would be out of order when it is sent again. The batches before it follow behind what Kafka
//! reads; its checksum covers them, and its reader stops in front of them.

use crate::producers::{BATCHES_KEPT, ProducerBatch, ProducerState, Producers};

const VERSION: i16 = 1;
/// The version, the checksum and the number of entries, in bytes.
const HEAD: usize = 2 + 4 + 4;
/// The checksum covers what follows it.
const CHECKED_FROM: usize = 6;
const ENTRY: usize = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8;
/// What the earlier batches begin with.
const EARLIER: [u8; 8] = *b"kohort 1";
/// The last sequence, the last offset, the delta and the timestamp.
const EARLIER_BATCH: usize = 4 + 8 + 4 + 8;

/// The file for these producers.
pub(crate) fn encode(producers: &Producers) -> Vec<u8> {
    let entries = producers.iter();
    let mut out = Vec::with_capacity(HEAD + entries.len() * ENTRY);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(entries.len() as i32).to_be_bytes());
    for (id, state) in entries {
        let last = state.last_batch().copied().unwrap_or(ProducerBatch {
            last_sequence: -1,
            last_offset: -1,
            offset_delta: 0,
            timestamp: state.last_timestamp,
        });
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&state.epoch.to_be_bytes());
        out.extend_from_slice(&last.last_sequence.to_be_bytes());
        out.extend_from_slice(&last.last_offset.to_be_bytes());
        out.extend_from_slice(&last.offset_delta.to_be_bytes());
        out.extend_from_slice(&state.last_timestamp.to_be_bytes());
        out.extend_from_slice(&state.coordinator_epoch.to_be_bytes());
        let transaction = state.transaction_first_offset.unwrap_or(-1);
        out.extend_from_slice(&transaction.to_be_bytes());
    }
    out.extend_from_slice(&EARLIER);
    for (_, state) in producers.iter() {
        let earlier = state.batches[1..].iter().flatten();
        out.push(earlier.clone().count() as u8);
        for batch in earlier {
            out.extend_from_slice(&batch.last_sequence.to_be_bytes());
            out.extend_from_slice(&batch.last_offset.to_be_bytes());
            out.extend_from_slice(&batch.offset_delta.to_be_bytes());
            out.extend_from_slice(&batch.timestamp.to_be_bytes());
        }
    }
    let crc = crc32c::crc32c(&out[CHECKED_FROM..]);
    out[2..CHECKED_FROM].copy_from_slice(&crc.to_be_bytes());
    out
}

/// The producers in the file, or `None` if it is damaged.
pub(crate) fn decode(bytes: &[u8]) -> Option<Producers> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let [v0, v1, c0, c1, c2, c3, n0, n1, n2, n3] = *head;
    let count = usize::try_from(i32::from_be_bytes([n0, n1, n2, n3])).ok()?;
    if i16::from_be_bytes([v0, v1]) != VERSION
        || u32::from_be_bytes([c0, c1, c2, c3]) != crc32c::crc32c(&bytes[CHECKED_FROM..])
    {
        return None;
    }
    let (entries, rest) = rest.split_at_checked(count.checked_mul(ENTRY)?)?;
    // One that Kafka wrote ends here.
    let mut earlier = match rest.strip_prefix(&EARLIER) {
        Some(earlier) => Some(earlier),
        None if rest.is_empty() => None,
        None => return None,
    };
    let mut producers = Producers::default();
    for entry in entries.as_chunks::<ENTRY>().0 {
        let mut fields = Fields(entry);
        let id = i64::from_be_bytes(fields.take());
        let epoch = i16::from_be_bytes(fields.take());
        let last_sequence = i32::from_be_bytes(fields.take());
        let last_offset = i64::from_be_bytes(fields.take());
        let offset_delta = i32::from_be_bytes(fields.take());
        let timestamp = i64::from_be_bytes(fields.take());
        let coordinator_epoch = i32::from_be_bytes(fields.take());
        let transaction = i64::from_be_bytes(fields.take());
        let mut state = ProducerState {
            epoch,
            coordinator_epoch,
            last_timestamp: timestamp,
            transaction_first_offset: (transaction >= 0).then_some(transaction),
            ..ProducerState::EMPTY
        };
        if let Some(earlier) = &mut earlier {
            for batch in earlier_batches(earlier)?.into_iter().rev().flatten() {
                state.add(epoch, batch);
            }
        }
        if last_offset >= 0 {
            let batch = ProducerBatch {
                last_sequence,
                last_offset,
                offset_delta,
                timestamp,
            };
            state.add(epoch, batch);
        }
        state.last_timestamp = timestamp;
        producers.insert(id, state);
    }
    earlier.is_none_or(<[u8]>::is_empty).then_some(producers)
}

/// Takes the batches of a producer before its last one, the newest first.
fn earlier_batches(rest: &mut &[u8]) -> Option<[Option<ProducerBatch>; BATCHES_KEPT - 1]> {
    let mut batches = [None; BATCHES_KEPT - 1];
    let count = usize::from(*rest.split_off_first()?);
    for batch in batches.get_mut(..count)? {
        let mut fields = Fields(rest.split_off(..EARLIER_BATCH)?);
        *batch = Some(ProducerBatch {
            last_sequence: i32::from_be_bytes(fields.take()),
            last_offset: i64::from_be_bytes(fields.take()),
            offset_delta: i32::from_be_bytes(fields.take()),
            timestamp: i64::from_be_bytes(fields.take()),
        });
    }
    Some(batches)
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self
            .0
            .split_first_chunk()
            .expect("an entry has all its fields");
        self.0 = rest;
        *field
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_back_what_it_writes_and_refuses_every_damage(
            entries in proptest::collection::vec(
                (any::<i64>(), any::<i16>(), any::<i32>(), 0..i64::MAX, 0..1000i32, any::<i64>(), 0..7),
                0..5,
            ),
            damage in any::<prop::sample::Index>(),
            bit in 0..8u8,
        ) {
            let mut producers = Producers::default();
            for (id, epoch, sequence, last_offset, offset_delta, timestamp, batches) in entries {
                let mut state = ProducerState { epoch, ..ProducerState::EMPTY };
                for batch in 0..batches {
                    let last_sequence = sequence.wrapping_add(batch);
                    let batch = ProducerBatch { last_sequence, last_offset, offset_delta, timestamp };
                    state.add(epoch, batch);
                }
                producers.insert(id, state);
            }
            let mut bytes = encode(&producers);
            prop_assert_eq!(decode(&bytes), Some(producers));
            let at = damage.index(bytes.len());
            prop_assert_eq!(decode(&bytes[..at]), None);
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(decode(&bytes), None);
        }
    }

    #[test]
    fn one_that_kafka_wrote_has_the_last_batch_of_each_producer() {
        let mut state = ProducerState::EMPTY;
        for last_sequence in 0..3 {
            let last_offset = i64::from(last_sequence);
            let (offset_delta, timestamp) = (0, 7);
            state.add(
                0,
                ProducerBatch {
                    last_sequence,
                    last_offset,
                    offset_delta,
                    timestamp,
                },
            );
        }
        let mut producers = Producers::default();
        producers.insert(1, state);
        let mut bytes = encode(&producers);
        bytes.truncate(HEAD + ENTRY);
        let crc = crc32c::crc32c(&bytes[CHECKED_FROM..]);
        bytes[2..CHECKED_FROM].copy_from_slice(&crc.to_be_bytes());
        let read = decode(&bytes).unwrap();
        let batches = read.get(1).unwrap().batches;
        assert_eq!(batches[0], state.batches[0]);
        assert_eq!(batches[1..], [None; BATCHES_KEPT - 1]);
    }
}
