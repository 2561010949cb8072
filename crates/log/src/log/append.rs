//! Appending batches.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use bytes::Bytes;
use kohort_wire::records::{BatchHeader, BatchMut, NO_TIMESTAMP, TimestampType};
use rustc_hash::FxHasher;

use super::{Log, Writer};
use crate::{
    LogConfig, LogError,
    files::{self, CLEAN_SHUTDOWN, EPOCHS, SNAPSHOT},
    producers::Verdict,
    segment::{Segment, path},
    snapshot,
    storage::{remove_file, replace_file},
    validate::{Validated, validate},
};

/// Where a batch comes from, which decides what is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A client's batches: everything is checked.
    Client,
    /// The coordinator's own batches, which it built: only their lengths are checked, and they may
    /// be larger than `max.message.bytes` and, one at a time, than `segment.bytes`.
    Coordinator,
}

/// What became of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The offset of the first record.
    pub base_offset: i64,
    /// The offset of the last record. The append is durable once a flush returns more than that.
    pub last_offset: i64,
    /// The timestamp that the records got in ms, with LogAppendTime; otherwise −1.
    pub log_append_time_ms: i64,
    /// Where the log starts.
    pub start_offset: i64,
    /// An idempotent producer sent what is in the log already; nothing was appended, and the
    /// offsets are those of then.
    pub duplicate: bool,
}

impl Log {
    /// Appends one or more whole batches, all or nothing, and makes them visible to readers.
    ///
    /// Their offsets and leader epoch are set here, and with LogAppendTime their timestamps
    /// (`now_ms`). They are written, not flushed: see [`Log::flush`].
    ///
    /// # Errors
    ///
    /// Whatever Kafka refuses (see [`LogError::error_code`]), or trouble with the disk; then
    /// nothing was appended.
    pub fn append(
        &self,
        batches: &[u8],
        origin: Origin,
        leader_epoch: i32,
        now_ms: i64,
    ) -> Result<Appended, LogError> {
        self.check_writable()?;
        let config = self.config();
        // The long part, without a lock.
        let mut validated = validate(&config, origin, batches, leader_epoch, now_ms)?;
        // A batch of the coordinator's is a change that it has made already. If it is larger than a
        // segment, it is a segment of its own.
        let limit = match origin {
            Origin::Coordinator if validated.batches.len() == 1 => i32::MAX as usize,
            Origin::Coordinator | Origin::Client => config.segment_bytes as usize,
        };
        if validated.bytes.len() > limit {
            return Err(LogError::LargerThanSegment {
                size: validated.bytes.len(),
                limit,
            });
        }

        let mut writer = self.writer.lock();
        self.check_writable()?;
        let (base_offset, start_offset) = {
            let view = self.view.read();
            (view.end_offset, view.start_offset())
        };
        let end_offset = assign_offsets(&mut validated, base_offset);
        let headers = || validated.batches.iter().map(|(_, header)| *header);
        let changed = match origin {
            Origin::Coordinator => Vec::new(),
            Origin::Client => match writer.producers.check(headers(), now_ms)? {
                Verdict::New(changed) => changed,
                Verdict::Duplicate(batch) => {
                    return Ok(Appended {
                        base_offset: batch.base_offset(),
                        last_offset: batch.last_offset,
                        log_append_time_ms: append_time(&config, batch.timestamp),
                        start_offset,
                        duplicate: true,
                    });
                }
            },
        };

        self.tidy_up(&mut writer)?;
        self.assign_epoch(leader_epoch, base_offset)?;
        let max_timestamp = headers().map(|header| header.max_timestamp).max();
        let segment = self.segment_for(
            &mut writer,
            &config,
            validated.bytes.len(),
            end_offset - 1,
            max_timestamp.unwrap_or(NO_TIMESTAMP),
            now_ms,
        )?;
        if let Err(error) = segment.append(&validated.bytes, headers(), now_ms) {
            // Cut off now what part of it was written, or before the next append.
            writer.untidy = segment.cut_off_failed_append().is_err();
            return Err(LogError::io("cannot write", segment.name(), error));
        }
        writer.segment_began_ms.get_or_insert(now_ms);
        writer.producers.apply(changed);

        let bytes = Bytes::from(validated.bytes);
        let mut view = self.view.write();
        for (range, header) in validated.batches {
            let batch = bytes.slice(range);
            view.cache
                .push(header.base_offset, header.last_offset(), batch);
        }
        view.end_offset = end_offset;
        view.appended_bytes += bytes.len() as u64;
        Ok(Appended {
            base_offset,
            last_offset: end_offset - 1,
            log_append_time_ms: append_time(&config, now_ms),
            start_offset: view.start_offset(),
            duplicate: false,
        })
    }

    /// Leaves the folder as an append may find it.
    fn tidy_up(&self, writer: &mut Writer) -> Result<(), LogError> {
        if writer.untidy {
            let segment = self.view.read().active().clone();
            segment
                .cut_off_failed_append()
                .map_err(|e| LogError::io("cannot cut off", segment.name(), e))?;
            writer.untidy = false;
        }
        if writer.marked_clean {
            remove_file(&*self.storage, CLEAN_SHUTDOWN).map_err(|e| {
                LogError::io("cannot remove", path(&self.storage, CLEAN_SHUTDOWN), e)
            })?;
            writer.marked_clean = false;
        }
        Ok(())
    }

    fn assign_epoch(&self, epoch: i32, offset: i64) -> Result<(), LogError> {
        if self.latest_epoch() >= Some(epoch) {
            return Ok(());
        }
        let text = {
            let mut view = self.view.write();
            if !view.epochs.assign(epoch, offset) {
                return Ok(());
            }
            view.epochs.encode()
        };
        self.store_epochs(&text)
            .inspect_err(|_| self.view.write().epochs.unassign())
    }

    pub(super) fn store_epochs(&self, text: &str) -> Result<(), LogError> {
        replace_file(&*self.storage, EPOCHS, text.as_bytes())
            .map_err(|e| LogError::io("cannot write", path(&self.storage, EPOCHS), e))
    }

    /// The newest segment, or a new one if that is full or old.
    fn segment_for(
        &self,
        writer: &mut Writer,
        config: &LogConfig,
        length: usize,
        last_offset: i64,
        max_timestamp: i64,
        now_ms: i64,
    ) -> Result<Arc<Segment>, LogError> {
        let segment = self.view.read().active().clone();
        let size = segment.size();
        let full = size + length as u64 > u64::from(config.segment_bytes);
        // As Kafka's LogSegment: by the records' time if they have one, else by the clock.
        let age_ms = match segment.first_timestamp()? {
            first if first >= 0 && max_timestamp >= 0 => max_timestamp.saturating_sub(first),
            _ => now_ms.saturating_sub(writer.segment_began_ms.unwrap_or(now_ms)),
        };
        let span_ms = config.segment_span_ms() - self.jitter_ms(config, segment.base_offset);
        if size == 0 || !(full || age_ms > span_ms || !segment.can_hold(last_offset)) {
            return Ok(segment);
        }
        self.roll(writer, config)
    }

    /// By how much the segment is rolled earlier than the settings say (`segment.jitter.ms`). Kafka
    /// throws dice; this depends on the segment alone, and differs between logs as well.
    fn jitter_ms(&self, config: &LogConfig, base_offset: i64) -> i64 {
        let limit = config.segment_jitter_ms.min(config.segment_span_ms());
        if limit <= 0 {
            return 0;
        }
        let mut hasher = FxHasher::default();
        (self.name(), base_offset).hash(&mut hasher);
        (hasher.finish() % limit as u64) as i64
    }

    /// Ends the newest segment and begins another one. The caller holds the writer.
    pub(super) fn roll(
        &self,
        writer: &mut Writer,
        config: &LogConfig,
    ) -> Result<Arc<Segment>, LogError> {
        let (old, end_offset) = {
            let view = self.view.read();
            (view.active().clone(), view.end_offset)
        };
        old.write_index()?;
        self.write_snapshot(writer, end_offset)?;
        let new = Arc::new(Segment::create(
            &self.storage,
            end_offset,
            "",
            config.index_interval_bytes,
        )?);
        self.view.write().roll(new.clone());
        writer.segment_began_ms = None;
        Ok(new)
    }

    /// Writes the producers down, so that opening the log needs to read only what comes later. The
    /// next flush that ends the segment makes it durable.
    fn write_snapshot(&self, writer: &Writer, offset: i64) -> Result<(), LogError> {
        let name = files::of(offset, SNAPSHOT);
        // One that is there says the same, and may be the durable one.
        if self.storage.open(&name).is_ok() {
            return Ok(());
        }
        self.storage
            .create(&name)
            .and_then(|file| file.write_at(&snapshot::encode(&writer.producers), 0))
            .map_err(|e| LogError::io("cannot write", path(&self.storage, &name), e))
    }

    /// Stores the state of the producers durably, and returns the offset up to which it is valid.
    pub(super) fn store_snapshot(&self, writer: &Writer) -> Result<i64, LogError> {
        let offset = self.end_offset();
        let name = files::of(offset, SNAPSHOT);
        replace_file(&*self.storage, &name, &snapshot::encode(&writer.producers))
            .map_err(|e| LogError::io("cannot write", path(&self.storage, &name), e))?;
        Ok(offset)
    }
}

fn append_time(config: &LogConfig, time_ms: i64) -> i64 {
    match config.timestamp_type {
        TimestampType::LogAppendTime => time_ms,
        TimestampType::CreateTime => NO_TIMESTAMP,
    }
}

/// Returns the offset behind the last batch.
fn assign_offsets(validated: &mut Validated, base_offset: i64) -> i64 {
    let mut next = base_offset;
    for (range, header) in &mut validated.batches {
        BatchMut::new(&mut validated.bytes[range.clone()]).set_base_offset(next);
        *header = BatchHeader {
            base_offset: next,
            ..*header
        };
        next = header.next_offset();
    }
    next
}
