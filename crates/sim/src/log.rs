//! The records of the partitions: plain ones, and those of transactions that were committed or
//! aborted. A record says where it is, so that an application can tell what it was given.

use std::collections::BTreeMap;

use kohort_coordinator::inspect::Place;
use kohort_wire::{
    Uuid,
    messages::AbortedTransaction,
    records::{BatchBuilder, Compression, EndTransactionMarker},
};

use crate::random::Random;

/// Each partition has one transactional producer, whose transactions follow one another.
const PRODUCER_ID: i64 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    /// Records of a transaction that ends with the next batch.
    Transactional {
        is_committed: bool,
    },
    Marker {
        is_committed: bool,
    },
}

#[derive(Debug, Clone, Copy)]
struct Batch {
    base: i64,
    count: i64,
    kind: Kind,
}

impl Batch {
    fn end(&self) -> i64 {
        self.base + self.count
    }

    /// Whether its records are for applications.
    fn counts(&self) -> bool {
        matches!(
            self.kind,
            Kind::Plain | Kind::Transactional { is_committed: true }
        )
    }
}

/// The batches of all partitions that there ever were.
#[derive(Debug, Default)]
pub(crate) struct Logs(BTreeMap<Place, Vec<Batch>>);

/// What a fetch returns.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) records: Vec<u8>,
    pub(crate) aborted: Vec<AbortedTransaction>,
}

impl Logs {
    /// Appends records, perhaps as a transaction. Returns the new end of the log.
    pub(crate) fn append(&mut self, place: Place, count: i64, random: &mut Random) -> i64 {
        let log = self.0.entry(place).or_default();
        let base = log.last().map_or(0, Batch::end);
        if count == 0 {
            return base;
        }
        let is_committed = random.percent(50);
        let kinds: &[(Kind, i64)] = match random.percent(50) {
            true => &[(Kind::Plain, count)],
            false => &[
                (Kind::Transactional { is_committed }, count),
                (Kind::Marker { is_committed }, 1),
            ],
        };
        for (kind, count) in kinds {
            let base = log.last().map_or(0, Batch::end);
            let (kind, count) = (*kind, *count);
            log.push(Batch { base, count, kind });
        }
        log.last().map_or(0, Batch::end)
    }

    /// The first offset from `offset` on whose record is for applications; the end of the log if
    /// there is none.
    pub(crate) fn next_record(&self, place: Place, offset: i64) -> i64 {
        let batches = self.from(place, offset);
        let next = batches.iter().find(|batch| batch.counts());
        match (next, batches.last()) {
            (Some(batch), _) => batch.base.max(offset),
            (None, Some(last)) => last.end(),
            (None, None) => offset,
        }
    }

    /// Whether the record at `offset` is for applications.
    pub(crate) fn is_record(&self, place: Place, offset: i64) -> bool {
        let batch = self.from(place, offset).first();
        batch.is_some_and(|batch| batch.counts() && batch.base <= offset)
    }

    /// The batches from the one that holds `offset` on.
    fn from(&self, place: Place, offset: i64) -> &[Batch] {
        let log = self.0.get(&place).map_or(&[][..], Vec::as_slice);
        &log[log.partition_point(|batch| batch.end() <= offset)..]
    }

    /// At most `batches_max` batches from the one that holds `offset` on.
    pub(crate) fn read(&self, place: Place, offset: i64, batches_max: usize) -> Read {
        let batches = self.from(place, offset);
        let batches = &batches[..batches.len().min(batches_max)];
        let mut read = Read::default();
        for (index, batch) in batches.iter().enumerate() {
            read.records.extend(encode(place, batch));
            let first_offset = match batch.kind {
                Kind::Transactional {
                    is_committed: false,
                } => batch.base,
                // The transaction began before.
                Kind::Marker {
                    is_committed: false,
                } if index == 0 => batch.base - 1,
                _ => continue,
            };
            read.aborted.push(AbortedTransaction {
                producer_id: PRODUCER_ID,
                first_offset,
            });
        }
        read
    }
}

fn encode((topic, partition): Place, batch: &Batch) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Compression::None, None);
    builder.set_base_offset(batch.base);
    let is_marker = matches!(batch.kind, Kind::Marker { .. });
    if batch.kind != Kind::Plain {
        builder.set_producer(PRODUCER_ID, 0, 0);
        builder.set_transactional(true);
        builder.set_control(is_marker);
    }
    for offset in batch.base..batch.end() {
        let appended = match batch.kind {
            Kind::Marker { is_committed } => {
                let marker = EndTransactionMarker {
                    committed: is_committed,
                    coordinator_epoch: 0,
                };
                builder.append(0, Some(&marker.key()), Some(&marker.value()), [])
            }
            _ => {
                let mut value = topic.0.to_be_bytes().to_vec();
                value.extend(partition.to_be_bytes());
                value.extend(offset.to_be_bytes());
                builder.append(0, None, Some(&value), [])
            }
        };
        appended.expect("small records fit");
    }
    builder.build().to_vec()
}

/// Where a record says that it is.
pub(crate) fn place_of(value: &[u8]) -> Option<(Place, i64)> {
    let (topic, rest) = value.split_first_chunk::<16>()?;
    let (partition, offset) = rest.split_first_chunk::<4>()?;
    let place = (
        Uuid(u128::from_be_bytes(*topic)),
        i32::from_be_bytes(*partition),
    );
    Some((place, i64::from_be_bytes(offset.try_into().ok()?)))
}
