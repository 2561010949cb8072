//! Writing what a shard has decided to its log.

use std::sync::Arc;

use bytes::Bytes;
use kohort_group::coordinator::Record;
use kohort_log::{Log, LogError, Origin};
use kohort_wire::{
    codec::EncodeError,
    records::{BatchBuilder, BuildError, Compression},
};

use crate::topics::{Partition, PartitionError};

/// About how large a batch may become before the next one begins.
const BATCH_BYTES: usize = 1 << 20;

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

/// Appends records as one batch, or, if there are very many, as a few that are appended together.
/// Gives the log, and the offset behind them.
pub(super) fn append(
    partition: &Arc<Partition>,
    records: &[Record],
    now_ms: i64,
) -> Result<(Arc<Log>, i64), AppendError> {
    let log = partition.log()?;
    let batches = encode(records, now_ms)?;
    let appended = log
        .append(&batches, Origin::Coordinator, crate::LEADER_EPOCH, now_ms)
        .inspect_err(|error| partition.failed(error))?;
    let end = appended.last_offset + 1;
    partition.appended(&log, end);
    Ok((log, end))
}

fn encode(records: &[Record], now_ms: i64) -> Result<Bytes, AppendError> {
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
    Ok(match <[Bytes; 1]>::try_from(batches) {
        Ok([one]) => one,
        Err(several) => several.concat().into(),
    })
}
