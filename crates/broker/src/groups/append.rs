//! Writing what a shard has decided to its log.

use std::sync::Arc;

use bytes::Bytes;
use kohort_coordinator::Record;
use kohort_log::{Log, LogError, Origin};
use kohort_wire::{
    codec::EncodeError,
    records::{BatchBuilder, BuildError, Compression},
};

use crate::topics::{Partition, PartitionError};

/// About how large a batch may become before the next one begins.
pub(super) const BATCH_BYTES: usize = 1 << 20;

/// Why records were not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum AppendError {
    #[error(transparent)]
    Partition(#[from] PartitionError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("a record cannot be encoded: {0}")]
    Encode(#[from] EncodeError),
    #[error("a record cannot be added to a batch: {0}")]
    Build(#[from] BuildError),
}

#[cfg(test)]
thread_local! {
    /// Whether the appends of shards on this thread fail, as on a full disk.
    pub(super) static DISK_IS_FULL: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Appends records as one batch, or, if there are very many, as several. Batches that do not fit into
/// one segment together are appended one after the other. Gives the log, and the offset behind the
/// records.
pub(super) fn append(
    partition: &Arc<Partition>,
    records: &[Record],
    now_ms: i64,
) -> Result<(Arc<Log>, i64), AppendError> {
    let log = partition.log()?;
    #[cfg(test)]
    if DISK_IS_FULL.get() {
        return Err(LogError::Closed.into());
    }
    let bytes_max = log.config().segment_bytes as usize;
    let mut end = log.end_offset();
    for batches in together(encode(records, now_ms)?, bytes_max) {
        let appended = log
            .append(&batches, Origin::Coordinator, crate::LEADER_EPOCH, now_ms)
            .inspect_err(|error| partition.failed(error))?;
        end = appended.last_offset + 1;
        partition.appended(&log, end);
    }
    Ok((log, end))
}

/// Joins batches into as few appends as possible, none larger than `bytes_max` unless it is a single
/// batch.
pub(super) fn together(batches: Vec<Bytes>, bytes_max: usize) -> Vec<Bytes> {
    let mut appends = Vec::new();
    let mut joined: Vec<Bytes> = Vec::new();
    let mut size = 0;
    for batch in batches {
        if !joined.is_empty() && size + batch.len() > bytes_max {
            appends.push(joined.concat().into());
            joined.clear();
            size = 0;
        }
        size += batch.len();
        joined.push(batch);
    }
    match <[Bytes; 1]>::try_from(joined) {
        Ok([one]) => appends.push(one),
        Err(several) => appends.push(several.concat().into()),
    }
    appends
}

fn encode(records: &[Record], now_ms: i64) -> Result<Vec<Bytes>, AppendError> {
    let mut builder = BatchBuilder::new(Compression::None, None);
    let mut batches = Vec::new();
    for record in records {
        let (key, value) = record.encode()?;
        if builder.size() >= BATCH_BYTES {
            batches.push(builder.finish());
        }
        builder.append(now_ms, Some(&key), value.as_deref(), [])?;
    }
    batches.push(builder.finish());
    Ok(batches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_appended_together_as_far_as_they_fit_into_a_segment() {
        let batch = |length| Bytes::from(vec![0; length]);
        let sizes = |lengths: &[usize]| -> Vec<usize> {
            let batches = lengths.iter().map(|&length| batch(length)).collect();
            together(batches, 10).iter().map(Bytes::len).collect()
        };
        assert_eq!(sizes(&[4]), [4]);
        assert_eq!(sizes(&[4, 4]), [8]);
        assert_eq!(sizes(&[4, 4, 4, 6, 12, 1]), [8, 10, 12, 1]);
    }
}
