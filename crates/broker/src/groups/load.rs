//! Reading a shard from its log.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use kohort_coordinator::{Config, RecordError, Shard, Topics};
use kohort_log::{LogError, ReadLimit};
use kohort_wire::records::{Batch, ControlRecord, RecordsError};

use crate::topics::{Partition, PartitionError};

/// How much of the log is in memory at a time while it is read.
const READ_BYTES: usize = 1 << 20;

/// The largest batch that is unpacked.
const BATCH_BYTES_MAX: usize = 256 << 20;

/// Why a shard could not be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Partition(#[from] PartitionError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("offset {offset}: {error}")]
    Batch { offset: i64, error: RecordsError },
    #[error("offset {offset}: {error}")]
    Record { offset: i64, error: RecordError },
}

/// Reads a shard from its log, which takes time.
pub(super) fn load(
    partition: &Partition,
    config: Arc<Config>,
    topics: Arc<Topics>,
) -> Result<(Shard, u64), LoadError> {
    let mut seed = [0; 32];
    crate::random_bytes(&mut seed);
    let mut shard = Shard::new(config, topics, seed);
    let log = partition.log()?;
    let limit = ReadLimit {
        max_bytes: READ_BYTES,
        at_least_one: true,
        until: None,
    };
    let mut count = 0;
    let mut open = Transactions::default();
    let mut offset = log.start_offset();
    loop {
        let read = log.read(offset, limit)?;
        if read.is_empty() {
            break;
        }
        for mut slice in read.slices {
            while !slice.is_empty() {
                let batch = Batch::split_from(&mut slice)
                    .map_err(|error| LoadError::Batch { offset, error })?;
                count += load_batch(&mut shard, &mut open, &batch)?;
                offset = batch.header().next_offset();
            }
        }
    }
    // What was written but not flushed before a crash is in the state now, so it has to be durable
    // before anybody is told of it (KAFKA-16973).
    log.flush()?;
    Ok((shard, count))
}

/// A record of the log: its key and its value.
type KeyValue = (Bytes, Option<Bytes>);

/// Offsets of transactions whose end has not been read, by producer id. kohort has no transactions,
/// and Kafka's log may have them; one that has no end in the log has not committed anything.
#[derive(Default)]
struct Transactions(HashMap<i64, Vec<KeyValue>>);

impl Transactions {
    fn add(&mut self, producer_id: i64, record: KeyValue) {
        self.0.entry(producer_id).or_default().push(record);
    }

    /// What was committed by itself since counts more than what a transaction then brings.
    fn replaced(&mut self, key: &Bytes) {
        for records in self.0.values_mut() {
            records.retain(|(pending, _)| pending != key);
        }
    }

    fn end(&mut self, producer_id: i64) -> Vec<KeyValue> {
        self.0.remove(&producer_id).unwrap_or_default()
    }
}

fn load_record(shard: &mut Shard, offset: i64, (key, value): KeyValue) -> Result<(), LoadError> {
    let loaded = shard.load(key, value);
    loaded.map_err(|error| LoadError::Record { offset, error })
}

fn load_batch(shard: &mut Shard, open: &mut Transactions, batch: &Batch) -> Result<u64, LoadError> {
    let header = *batch.header();
    let failed = |error| LoadError::Batch {
        offset: header.base_offset,
        error,
    };
    batch.check_crc().map_err(failed)?;
    let records = batch.records(BATCH_BYTES_MAX).map_err(failed)?;
    let mut count = 0;
    for record in &records {
        let record = record.map_err(failed)?;
        let offset = record.offset;
        let ended = if header.is_control() {
            match ControlRecord::parse(&record).map_err(failed)? {
                ControlRecord::EndTransaction(end) => {
                    let mut ended = open.end(header.producer_id);
                    ended.retain(|_| end.committed);
                    ended
                }
                ControlRecord::Unknown(_) => Vec::new(),
            }
        } else {
            let slice = |part| records.slice_ref(part);
            let key = record.key.map_or(Bytes::new(), slice);
            let record = (key, record.value.map(slice));
            if header.is_transactional() {
                open.add(header.producer_id, record);
                continue;
            }
            open.replaced(&record.0);
            load_record(shard, offset, record)?;
            count += 1;
            continue;
        };
        for record in ended {
            load_record(shard, offset, record)?;
            count += 1;
        }
    }
    Ok(count)
}
