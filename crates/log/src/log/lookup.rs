//! Finding offsets by time and by leader epoch.

use std::sync::Arc;

use super::{Log, STORED_BATCH_MAX, view::View};
use crate::{LogError, ProducerState, epochs::EpochEnd, scan::Scanned, segment::Segment};

/// An offset, as ListOffsets answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampOffset {
    /// The offset.
    pub offset: i64,
    /// The timestamp of the record there in ms, or −1 for the ends of the log.
    pub timestamp: i64,
    /// The epoch of the leader that appended it, or −1 if it is not known.
    pub leader_epoch: i32,
}

/// A transaction that was aborted, as Fetch answers to consumers that read committed data only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// Whose.
    pub producer_id: i64,
    /// Where it begins.
    pub first_offset: i64,
}

impl Log {
    /// Where the log starts.
    pub fn earliest(&self) -> TimestampOffset {
        let view = self.view.read();
        TimestampOffset {
            offset: view.start_offset(),
            timestamp: -1,
            leader_epoch: view.epochs.at(view.start_offset()).unwrap_or(-1),
        }
    }

    /// Where the log ends.
    pub fn latest(&self) -> TimestampOffset {
        let view = self.view.read();
        TimestampOffset {
            offset: view.end_offset,
            timestamp: -1,
            leader_epoch: view.epochs.latest().unwrap_or(-1),
        }
    }

    /// The first record that is not earlier than `timestamp` (in ms), if there is one.
    pub fn offset_for_timestamp(
        &self,
        timestamp: i64,
    ) -> Result<Option<TimestampOffset>, LogError> {
        let bounds = Bounds::of(&self.view.read());
        for segment in self.segments() {
            if segment.max_timestamp().timestamp < timestamp {
                continue;
            }
            let from = segment.offset_for(timestamp)?.max(bounds.start);
            let found = bounds.find(&segment, from, timestamp, |time| time >= timestamp)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The first record with the latest timestamp, if any has one.
    pub fn offset_of_max_timestamp(&self) -> Result<Option<TimestampOffset>, LogError> {
        let bounds = Bounds::of(&self.view.read());
        let mut latest: Option<Arc<Segment>> = None;
        for segment in self.segments() {
            let time = segment.max_timestamp().timestamp;
            if latest
                .as_ref()
                .is_none_or(|l| l.max_timestamp().timestamp < time)
            {
                latest = Some(segment);
            }
        }
        let Some(segment) = latest else {
            return Ok(None);
        };
        let max = segment.max_timestamp();
        if max.timestamp < 0 {
            Ok(None)
        } else {
            bounds.find(&segment, max.offset, max.timestamp, |time| {
                time == max.timestamp
            })
        }
    }

    /// Where the records of that leader epoch end.
    pub fn epoch_end_offset(&self, epoch: i32) -> EpochEnd {
        let view = self.view.read();
        view.epochs.end_of(epoch, view.end_offset)
    }

    /// The newest leader epoch that appended anything.
    pub fn latest_epoch(&self) -> Option<i32> {
        self.view.read().epochs.latest()
    }

    /// The transactions that were aborted among the records from `from` to before `until`. Until
    /// there are transactions, none.
    pub fn aborted_transactions(&self, _from: i64, _until: i64) -> Vec<AbortedTransaction> {
        Vec::new()
    }

    /// The idempotent producers that are known, with their ids.
    pub fn producers(&self) -> Vec<(i64, ProducerState)> {
        let writer = self.writer.lock();
        writer
            .producers
            .iter()
            .map(|(id, state)| (id, *state))
            .collect()
    }

    pub(super) fn segments(&self) -> Vec<Arc<Segment>> {
        self.view.read().segments().to_vec()
    }
}

struct Bounds {
    start: i64,
    end: i64,
}

impl Bounds {
    fn of(view: &View) -> Bounds {
        Bounds {
            start: view.start_offset(),
            end: view.end_offset,
        }
    }

    /// The first record that fits, in the batches of the segment from `from` on that reach
    /// `timestamp`.
    fn find(
        &self,
        segment: &Segment,
        from: i64,
        timestamp: i64,
        fits: impl Fn(i64) -> bool,
    ) -> Result<Option<TimestampOffset>, LogError> {
        let limit = STORED_BATCH_MAX;
        let mut scratch = Vec::new();
        let mut scanner = segment.scan(segment.position(from)?);
        while let Some(batch) = scanner.next().map_err(|e| segment.scan_error(e))? {
            let Scanned { header, bytes, .. } = batch;
            if header.base_offset >= self.end {
                break;
            }
            if header.max_timestamp < timestamp || header.last_offset() < self.start {
                continue;
            }
            for record in header.records_in(bytes, &mut scratch, limit)? {
                let record = record?;
                if record.offset >= self.start && fits(record.timestamp) {
                    return Ok(Some(TimestampOffset {
                        offset: record.offset,
                        timestamp: record.timestamp,
                        leader_epoch: header.partition_leader_epoch,
                    }));
                }
            }
        }
        Ok(None)
    }
}
