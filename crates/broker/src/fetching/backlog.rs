//! How much there is by now for a consumer that waits, without reading it.

use std::sync::Arc;

use kohort_wire::records::BatchHeader;
use tokio::sync::Notify;

use super::{Batches, Wanted};
use crate::topics::{Partition, Snapshot};

/// What there was for a consumer when it was last read, and what has been appended since.
///
/// Each partition counts for at most what the consumer takes of it, as in Kafka's `DelayedFetch`.
#[derive(Debug)]
pub(crate) struct Backlog(Vec<Known>);

#[derive(Debug)]
struct Known {
    partition: Arc<Partition>,
    offset: i64,
    /// How many bytes there were from the offset on, or the limit if there were more than were read.
    bytes: u64,
    /// The most that the consumer takes.
    bytes_max: u64,
    /// [`Log::appended_bytes`](kohort_log::Log::appended_bytes) just before it was read.
    appended_bytes: u64,
}

impl Backlog {
    /// The backlog after a read that has met no error.
    pub(crate) fn new(snapshot: &Snapshot, wanted: &[Wanted], read: &[Batches]) -> Backlog {
        let known = wanted.iter().zip(read).filter_map(|(wanted, batches)| {
            let bytes_max = wanted.bytes_max.max(0) as u64;
            Some(Known {
                partition: wanted.find(snapshot).ok()?,
                offset: wanted.offset,
                bytes: if reaches_end(wanted.offset, batches) {
                    batches.records.len() as u64
                } else {
                    bytes_max
                },
                bytes_max,
                appended_bytes: batches.appended_bytes,
            })
        });
        Backlog(known.collect())
    }

    /// How many bytes there were when it was read.
    pub(crate) fn bytes_when_read(&self) -> u64 {
        let bytes = self.0.iter().map(|known| known.bytes.min(known.bytes_max));
        bytes.sum()
    }

    /// How many bytes there are now; `None` if something else has happened than that records were
    /// appended: a partition has been deleted or has failed, or its records have been.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let mut sum = 0;
        for known in &self.0 {
            let log = known.partition.opened()?;
            // A log that was opened again counts from the beginning.
            let more = log.appended_bytes().checked_sub(known.appended_bytes)?;
            if log.start_offset() > known.offset {
                return None;
            }
            sum += known.bytes.saturating_add(more).min(known.bytes_max);
        }
        Some(sum)
    }

    /// Wakes `reader` once, when something happens.
    pub(crate) fn wake(&self, reader: &Arc<Notify>) {
        for known in &self.0 {
            known.partition.wake(reader);
        }
    }
}

/// Whether nothing was left behind when the partition was read.
fn reaches_end(offset: i64, batches: &Batches) -> bool {
    let mut next = offset;
    let mut rest = &batches.records[..];
    while let Ok(header) = BatchHeader::parse(rest) {
        next = header.next_offset();
        rest = rest.get(header.size()..).unwrap_or_default();
    }
    next >= batches.high_watermark
}
