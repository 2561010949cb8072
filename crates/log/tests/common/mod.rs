//! What the tests of the log share.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

pub mod sim_disk;

use bytes::Bytes;
use kohort_log::{Appended, Log, LogConfig, LogError, Origin, ReadLimit};
use kohort_wire::records::{Batch, BatchBuilder, Compression, split};

/// When the tests take place, in ms.
pub const NOW: i64 = 1_700_000_000_000;

pub const ALL: ReadLimit = ReadLimit {
    max_bytes: usize::MAX / 2,
    at_least_one: true,
    until: None,
};

/// A record as tests see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<String>,
    pub value: Option<String>,
}

/// Keys, values and timestamps.
pub type Entry<'a> = (Option<&'a str>, Option<&'a str>, i64);

pub fn batch(entries: &[Entry<'_>]) -> Bytes {
    batch_with(Compression::None, (-1, -1, -1), entries)
}

pub fn batch_with(
    compression: Compression,
    (id, epoch, sequence): (i64, i16, i32),
    entries: &[Entry<'_>],
) -> Bytes {
    let mut builder = BatchBuilder::new(compression, None);
    builder.set_producer(id, epoch, sequence);
    for (key, value, timestamp) in entries {
        let (key, value) = (key.map(str::as_bytes), value.map(str::as_bytes));
        builder.append(*timestamp, key, value, []).unwrap();
    }
    builder.finish()
}

pub fn produce(log: &Log, entries: &[Entry<'_>]) -> Appended {
    append(log, &batch(entries)).unwrap()
}

pub fn append(log: &Log, batch: &[u8]) -> Result<Appended, LogError> {
    log.append(batch, Origin::Client, 0, NOW)
}

/// One record with that value.
pub fn put(log: &Log, value: &str) -> i64 {
    produce(log, &[(None, Some(value), NOW)]).base_offset
}

/// All batches from `from` on, as far as the log goes.
pub fn batches_from(log: &Log, from: i64, limit: ReadLimit) -> Result<Vec<Batch>, LogError> {
    let mut batches = Vec::new();
    let mut next = from;
    loop {
        let read = log.read(next, limit)?;
        if read.is_empty() {
            return Ok(batches);
        }
        for batch in split(read.into_bytes()) {
            let batch = batch.unwrap();
            batch.check_crc().unwrap();
            assert!(batch.header().last_offset() >= next);
            next = batch.header().next_offset();
            batches.push(batch);
        }
    }
}

/// All records from `from` on.
pub fn records_from(log: &Log, from: i64) -> Vec<Seen> {
    let batches = batches_from(log, from, ALL).unwrap();
    batches.iter().flat_map(|batch| seen(batch, from)).collect()
}

/// The records of a batch from `from` on.
pub fn seen(batch: &Batch, from: i64) -> Vec<Seen> {
    let mut seen = Vec::new();
    for record in &batch.records(usize::MAX / 2).unwrap() {
        let record = record.unwrap();
        let text = |bytes: Option<&[u8]>| bytes.map(|b| String::from_utf8(b.to_vec()).unwrap());
        if record.offset >= from {
            seen.push(Seen {
                offset: record.offset,
                timestamp: record.timestamp,
                key: text(record.key),
                value: text(record.value),
            });
        }
    }
    seen
}

pub fn values_from(log: &Log, from: i64) -> Vec<String> {
    records_from(log, from)
        .into_iter()
        .map(|seen| seen.value.unwrap())
        .collect()
}

/// Segments of a few records.
pub fn small() -> LogConfig {
    LogConfig {
        segment_bytes: 500,
        index_interval_bytes: 100,
        cache_bytes: 0,
        ..LogConfig::default()
    }
}
