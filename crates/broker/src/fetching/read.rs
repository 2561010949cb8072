//! Reading what a consumer wants, as far as the limits let it.

use bytes::Bytes;
use kohort_log::{LogError, ReadLimit};
use kohort_wire::ErrorCode;

use super::Wanted;
use crate::{
    log_limits::LogRateLimiter,
    topics::{Partition, Snapshot},
};

/// How much may be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) bytes_max: usize,
    /// Whether the first partition that has anything gets a batch even if it is larger, so that
    /// consumers get on (KIP-74).
    pub(crate) at_least_one: bool,
}

/// What was read of a partition.
#[derive(Debug, Clone)]
pub(crate) struct Batches {
    pub(crate) error: ErrorCode,
    pub(crate) high_watermark: i64,
    pub(crate) start_offset: i64,
    pub(crate) records: Bytes,
    /// How many bytes had been appended to the log before it was read.
    pub(crate) appended_bytes: u64,
    /// Where the consumer's past and the log's part ways: epoch and end offset (KIP-595).
    pub(crate) diverging: Option<(i32, i64)>,
}

impl Batches {
    fn failed(error: ErrorCode) -> Batches {
        Batches {
            error,
            high_watermark: -1,
            start_offset: -1,
            records: Bytes::new(),
            appended_bytes: 0,
            diverging: None,
        }
    }

    /// Whether the consumer is to be told at once.
    pub(crate) fn is_urgent(&self) -> bool {
        self.error.is_error() || self.diverging.is_some()
    }
}

/// Reads the partitions in their order. Each gets what its limit and the rest of the common one
/// allow.
pub(crate) fn read(
    snapshot: &Snapshot,
    wanted: &[Wanted],
    limits: Limits,
    log_limit: &LogRateLimiter,
) -> Vec<Batches> {
    let mut room = limits.bytes_max;
    let mut is_first = limits.at_least_one;
    wanted
        .iter()
        .map(|wanted| {
            let batches = match wanted.find(snapshot) {
                Ok(partition) => read_partition(&partition, wanted, room, is_first, log_limit),
                Err(code) => Batches::failed(code),
            };
            room = room.saturating_sub(batches.records.len());
            is_first &= batches.records.is_empty();
            batches
        })
        .collect()
}

fn read_partition(
    partition: &Partition,
    wanted: &Wanted,
    room: usize,
    is_first: bool,
    log_limit: &LogRateLimiter,
) -> Batches {
    match wanted.current_leader_epoch {
        ..0 | crate::LEADER_EPOCH => {}
        _ => return Batches::failed(ErrorCode::UNKNOWN_LEADER_EPOCH),
    }
    let log = match partition.log() {
        Ok(log) => log,
        Err(error) => return Batches::failed(error.code()),
    };
    if wanted.last_fetched_epoch >= 0 {
        let end = log.epoch_end_offset(wanted.last_fetched_epoch);
        if end.end_offset < 0 {
            return Batches::failed(ErrorCode::OFFSET_OUT_OF_RANGE);
        }
        if end.epoch < wanted.last_fetched_epoch || end.end_offset < wanted.offset {
            return Batches {
                high_watermark: log.end_offset(),
                start_offset: log.start_offset(),
                diverging: Some((end.epoch, end.end_offset)),
                ..Batches::failed(ErrorCode::NONE)
            };
        }
    }
    let limit = ReadLimit {
        max_bytes: room.min(usize::try_from(wanted.bytes_max).unwrap_or(0)),
        at_least_one: is_first,
        until: None,
    };
    let appended_bytes = log.appended_bytes();
    match log.read(wanted.offset, limit) {
        Ok(read) => Batches {
            error: ErrorCode::NONE,
            high_watermark: read.end_offset,
            start_offset: read.start_offset,
            records: read.into_bytes(),
            appended_bytes,
            diverging: None,
        },
        Err(error @ LogError::OffsetOutOfRange { .. }) => Batches::failed(error.error_code()),
        Err(error) => {
            partition.failed(&error);
            // Each consumer that asks meets it, again and again.
            if !matches!(error, LogError::Corrupt { .. }) && log_limit.admit() {
                tracing::warn!("{partition}: {error}");
            }
            Batches::failed(error.error_code())
        }
    }
}
