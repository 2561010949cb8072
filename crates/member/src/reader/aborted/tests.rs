//! Only committed records are delivered, wherever a response begins and ends. The guard against
//! whole classes of mistakes is a model of a log with transactions, compared over many random logs.

use bytes::Bytes;
use fastrand::Rng;
use kohort_wire::{
    messages::AbortedTransaction,
    records::{BatchBuilder, Compression, EndTransactionMarker, RecordIter},
};

use crate::{
    BufferPool,
    reader::fetched::{Decoding, Fetched},
};

/// What a batch holds.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Records outside of transactions.
    Plain,
    /// Records of a producer's transaction.
    Transactional(i64),
    /// The end of a producer's transaction; `committed` or aborted.
    Marker(i64, bool),
    /// What compaction leaves of a marker: a batch without records.
    EmptiedMarker(i64),
    /// A control batch that is not about transactions.
    LeaderChange,
}

#[derive(Debug, Clone, Copy)]
struct ModelBatch {
    kind: Kind,
    base_offset: i64,
    count: i64,
    compression: Compression,
}

/// A transaction of a producer, from its first record to its marker.
#[derive(Debug)]
struct Transaction {
    producer_id: i64,
    first: i64,
    last: i64,
    committed: bool,
}

#[derive(Debug, Default)]
struct Log {
    batches: Vec<ModelBatch>,
    transactions: Vec<Transaction>,
    end: i64,
}

impl Log {
    fn append(&mut self, kind: Kind, count: i64, compression: Compression) {
        self.batches.push(ModelBatch {
            kind,
            base_offset: self.end,
            count,
            compression,
        });
        self.end += count;
    }

    fn open(&self) -> impl Iterator<Item = i64> + '_ {
        let mut open = Vec::new();
        for batch in &self.batches {
            match batch.kind {
                Kind::Transactional(id) if !open.contains(&id) => open.push(id),
                Kind::Marker(id, _) | Kind::EmptiedMarker(id) => open.retain(|other| *other != id),
                _ => {}
            }
        }
        open.into_iter()
    }

    fn finish(&mut self, producer_id: i64, committed: bool, emptied: bool) {
        let last_end = |t: &&Transaction| t.producer_id == producer_id;
        let since = self.transactions.iter().rev().find(last_end);
        let since = since.map_or(0, |transaction| transaction.last + 1);
        let mine = |batch: &&ModelBatch| {
            matches!(batch.kind, Kind::Transactional(id) if id == producer_id)
                && batch.base_offset >= since
        };
        let first = self.batches.iter().find(mine).map(|b| b.base_offset);
        if let Some(first) = first {
            self.transactions.push(Transaction {
                producer_id,
                first,
                last: self.end,
                committed,
            });
        }
        let kind = if emptied {
            Kind::EmptiedMarker(producer_id)
        } else {
            Kind::Marker(producer_id, committed)
        };
        self.append(kind, 1, Compression::None);
    }

    /// A log in which every transaction has ended: consumers are given nothing after the last
    /// stable offset.
    fn random(random: &mut Rng) -> Log {
        let mut log = Log::default();
        for _ in 0..random.usize(1..30) {
            let producer_id = random.i64(7..10);
            let compression = if random.bool() {
                Compression::Lz4
            } else {
                Compression::None
            };
            let count = random.i64(1..4);
            match random.u8(0..8) {
                0 => log.append(Kind::Plain, count, compression),
                1..=4 => log.append(Kind::Transactional(producer_id), count, compression),
                5 => log.append(Kind::LeaderChange, 1, Compression::None),
                _ => {
                    let (committed, emptied) = (random.bool(), random.u8(0..6) == 0);
                    log.finish(producer_id, committed, emptied);
                }
            }
        }
        let open: Vec<_> = log.open().collect();
        for producer_id in open {
            log.finish(producer_id, random.bool(), false);
        }
        log
    }

    /// The transactions that a broker lists for a response with these offsets, in any order.
    fn aborted(&self, from: i64, end: i64, random: &mut Rng) -> Vec<AbortedTransaction> {
        let listed = self.transactions.iter().filter(|transaction| {
            !transaction.committed && transaction.last >= from && transaction.first < end
        });
        let mut listed: Vec<_> = listed
            .map(|transaction| AbortedTransaction {
                producer_id: transaction.producer_id,
                first_offset: transaction.first,
            })
            .collect();
        random.shuffle(&mut listed);
        listed
    }

    fn is_committed(&self, batch: &ModelBatch) -> bool {
        match batch.kind {
            Kind::Plain => true,
            Kind::Transactional(id) => self.transactions.iter().any(|transaction| {
                transaction.producer_id == id
                    && transaction.committed
                    && (transaction.first..transaction.last).contains(&batch.base_offset)
            }),
            _ => false,
        }
    }
}

fn encode(batch: &ModelBatch) -> Bytes {
    let mut builder = BatchBuilder::new(batch.compression, None);
    builder.set_base_offset(batch.base_offset);
    let append = |builder: &mut BatchBuilder, key: &[u8], value: &[u8]| {
        builder.append(0, Some(key), Some(value), []).unwrap();
    };
    match batch.kind {
        Kind::Plain => {
            for _ in 0..batch.count {
                append(&mut builder, b"k", b"v");
            }
        }
        Kind::Transactional(id) => {
            builder.set_producer(id, 0, 0);
            builder.set_transactional(true);
            for _ in 0..batch.count {
                append(&mut builder, b"k", b"v");
            }
        }
        Kind::Marker(id, committed) => {
            builder.set_producer(id, 0, -1);
            builder.set_transactional(true);
            builder.set_control(true);
            let marker = EndTransactionMarker {
                committed,
                coordinator_epoch: 0,
            };
            append(&mut builder, &marker.key(), &marker.value());
        }
        Kind::EmptiedMarker(id) => {
            let marker = encode(&ModelBatch {
                kind: Kind::Marker(id, true),
                ..*batch
            });
            let marker = kohort_wire::records::Batch::parse(marker).unwrap();
            builder.start_like(marker.header(), Some(0));
        }
        Kind::LeaderChange => {
            builder.set_control(true);
            append(&mut builder, &[0, 0, 0, 2], &[0; 6]);
        }
    }
    builder.build().to_vec().into()
}

fn delivered(
    bytes: Vec<u8>,
    aborted: Option<Vec<AbortedTransaction>>,
    from: i64,
    most: usize,
) -> (Vec<i64>, i64) {
    let reading = Decoding {
        check_crcs: true,
        decompressed_bytes_max: 1 << 20,
        buffers: BufferPool::new(1, 1000),
    };
    let mut fetched = Fetched::new(bytes.into(), aborted, from);
    let mut offsets = Vec::new();
    while let Some(chunk) = fetched.next(most, &reading).unwrap() {
        let records = RecordIter::new(&chunk.header, &chunk.bytes);
        let records = records.map(|record| record.unwrap().offset);
        offsets.extend(records.filter(|offset| *offset >= chunk.from));
    }
    (offsets, fetched.next)
}

fn bytes(batches: &[ModelBatch]) -> Vec<u8> {
    batches.iter().flat_map(encode).collect()
}

#[test]
fn exactly_the_committed_records_of_any_response_are_delivered() {
    for seed in 0..3000 {
        let random = &mut Rng::with_seed(seed);
        let log = Log::random(random);
        let from = random.i64(0..log.end);
        // A broker begins with the batch that holds the offset; tolerate one that begins earlier.
        let holds = log
            .batches
            .iter()
            .position(|b| b.base_offset + b.count > from);
        let first = holds.unwrap().saturating_sub(random.usize(0..3));
        let last = random.usize(holds.unwrap()..log.batches.len());
        let response = &log.batches[first..=last];
        let (begins, ends) = (response[0].base_offset, {
            let last = response[response.len() - 1];
            last.base_offset + last.count
        });
        let mut bytes = bytes(response);
        // The last batch may be cut off.
        let cut = random.bool() && last < log.batches.len() - 1;
        if cut {
            bytes.extend(&encode(&log.batches[last + 1])[..random.usize(0..61)]);
        }
        let aborted = log.aborted(begins, ends, random);
        let committed_only = random.u8(0..5) > 0;
        let expected: Vec<_> = response
            .iter()
            .filter(|batch| match batch.kind {
                Kind::Plain | Kind::Transactional(_) => !committed_only || log.is_committed(batch),
                _ => false,
            })
            .flat_map(|batch| batch.base_offset..batch.base_offset + batch.count)
            .filter(|offset| *offset >= from)
            .collect();
        let listed = committed_only.then_some(aborted.clone());
        let (offsets, next) = delivered(bytes, listed, from, random.usize(1..9));
        assert_eq!(
            (offsets, next),
            (expected, ends),
            "seed {seed}: from {from}, aborted {aborted:?}, {response:#?}"
        );
    }
}

#[test]
fn after_the_marker_of_an_aborted_transaction_its_producer_is_clean() {
    let mut log = Log::default();
    log.append(Kind::Transactional(7), 2, Compression::None);
    log.finish(7, false, false);
    log.append(Kind::Transactional(7), 2, Compression::None);
    log.finish(7, true, false);
    let aborted = log.aborted(2, 6, &mut Rng::with_seed(0));
    assert_eq!(aborted.len(), 1);
    let from_marker = bytes(&log.batches[1..]);
    assert_eq!(delivered(from_marker, Some(aborted), 2, 9), (vec![3, 4], 6));
}
