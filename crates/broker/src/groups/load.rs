//! Reading a shard from its log.

use std::sync::Arc;

use bytes::Bytes;
use kohort_group::coordinator::{Config, RecordError, Shard, Topics};
use kohort_log::{LogError, ReadLimit};
use kohort_wire::records::{Batch, RecordsError};

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
                count += load_batch(&mut shard, &batch)?;
                offset = batch.header().next_offset();
            }
        }
    }
    // What was written but not flushed before a crash is in the state now, so it has to be durable
    // before anybody is told of it (KAFKA-16973).
    log.flush()?;
    Ok((shard, count))
}

fn load_batch(shard: &mut Shard, batch: &Batch) -> Result<u64, LoadError> {
    let header = *batch.header();
    if header.is_control() {
        return Ok(0);
    }
    let failed = |error| LoadError::Batch {
        offset: header.base_offset,
        error,
    };
    batch.check_crc().map_err(failed)?;
    let records = batch.records(BATCH_BYTES_MAX).map_err(failed)?;
    let mut count = 0;
    for record in &records {
        let record = record.map_err(failed)?;
        let slice = |part| records.slice_ref(part);
        let key = record.key.map_or(Bytes::new(), slice);
        let loaded = shard.load(key, record.value.map(slice));
        loaded.map_err(|error| LoadError::Record {
            offset: record.offset,
            error,
        })?;
        count += 1;
    }
    Ok(count)
}
