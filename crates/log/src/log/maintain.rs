//! What a log does from time to time: deleting what is too old, compacting, forgetting.

use std::sync::Arc;

use super::Log;
use crate::{
    LogConfig, LogError,
    checkpoint::Checkpoint,
    files::{self, CHECKPOINT, SNAPSHOT},
    segment::{Segment, path},
    storage::remove_file,
};

/// What one [`Log::maintain`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Maintenance {
    /// Segments deleted by retention, or because DeleteRecords had gone beyond them.
    pub segments_deleted: usize,
    /// Their size in bytes.
    pub bytes_deleted: u64,
    /// Segments that compaction read and replaced.
    pub segments_compacted: usize,
    /// By how many bytes they shrank.
    pub bytes_compacted: u64,
    /// Idempotent producers forgotten.
    pub producers_expired: usize,
}

impl Log {
    /// Does what is due: retention, compaction, forgetting silent producers, and gives memory back
    /// that nobody uses. May take long when it compacts; appends and reads go on meanwhile.
    ///
    /// It flushes too: what is never flushed (because no producer asks for acks=all) would have to be
    /// read and written again after a kill.
    ///
    /// Call it every few minutes, as Kafka does (`log.retention.check.interval.ms`).
    pub fn maintain(&self, now_ms: i64) -> Result<Maintenance, LogError> {
        let mut checkpoint = self.maintenance.lock();
        self.check_writable()?;
        let config = self.config();
        let mut done = Maintenance::default();
        self.flush()?;
        self.delete_segments(&mut checkpoint, &config, now_ms, &mut done)?;
        if config.cleanup_policy.compacts() {
            self.compact(&mut checkpoint, &config, now_ms, &mut done)?;
        }
        done.producers_expired = {
            let mut writer = self.writer.lock();
            let expiration_ms = config.producer_id_expiration_ms;
            writer.producers.expire(now_ms, expiration_ms)
        };
        self.remove_snapshots()?;
        for segment in self
            .segments()
            .split_last()
            .map_or(&[][..], |(_, closed)| closed)
        {
            segment.drop_index();
        }
        Ok(done)
    }

    /// Gives back the memory that keeps the newest batches for consumers at the tail; the next
    /// reads come from files. For logs that are idle.
    pub fn drop_cache(&self) {
        self.view.write().cache.clear();
    }

    /// Makes the log start at `before`, durably; −1 is its end (DeleteRecords). Returns where it
    /// starts then: never earlier than before. The space is freed by the next maintenance.
    ///
    /// # Errors
    ///
    /// [`LogError::OffsetOutOfRange`] beyond the end, or trouble with the disk.
    pub fn delete_records(&self, before: i64) -> Result<i64, LogError> {
        let mut checkpoint = self.maintenance.lock();
        self.check_writable()?;
        let (start, end) = {
            let view = self.view.read();
            (view.start_offset(), view.end_offset)
        };
        let before = if before == -1 { end } else { before };
        if before < 0 || before > end {
            return Err(LogError::OffsetOutOfRange {
                offset: before,
                start,
                end,
            });
        }
        if before <= start {
            return Ok(start);
        }
        self.move_start(&mut checkpoint, before)?;
        Ok(before)
    }

    /// The caller holds the maintenance.
    fn move_start(&self, checkpoint: &mut Checkpoint, start: i64) -> Result<(), LogError> {
        // What the log forgets of its producers' batches must be written down, and the log must not
        // start where, after a power failure, it does not reach.
        self.store_snapshot(&self.writer.lock())?;
        self.flush()?;
        let moved = Checkpoint {
            start_offset: start,
            ..checkpoint.clone()
        };
        self.store_checkpoint(&moved)?;
        *checkpoint = moved;
        let epochs = {
            let mut view = self.view.write();
            view.move_start(start).then(|| view.epochs.encode())
        };
        if let Some(text) = epochs {
            // The start has moved, and the caller must not be told otherwise. Epochs that begin
            // before it do no harm.
            let _ = self.store_epochs(&text);
        }
        Ok(())
    }

    pub(super) fn store_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), LogError> {
        checkpoint
            .store(&*self.storage)
            .map_err(|e| LogError::io("cannot write", path(&self.storage, CHECKPOINT), e))
    }

    /// Removes all states of producers but the newest durable one and what is newer.
    fn remove_snapshots(&self) -> Result<(), LogError> {
        let flushed = self.flushed_offset();
        let names = self
            .storage
            .list()
            .map_err(|e| LogError::io("cannot list", self.name(), e))?;
        let taken = || {
            names
                .iter()
                .filter_map(|name| files::offset(name, SNAPSHOT))
        };
        // One that stands where the last flush ended may have come after it.
        let newest = taken().filter(|&offset| offset < flushed).max();
        for offset in taken().filter(|&offset| newest.is_some_and(|newest| offset < newest)) {
            let name = files::of(offset, SNAPSHOT);
            remove_file(&*self.storage, &name)
                .map_err(|e| LogError::io("cannot remove", path(&self.storage, &name), e))?;
        }
        Ok(())
    }

    fn delete_segments(
        &self,
        checkpoint: &mut Checkpoint,
        config: &LogConfig,
        now_ms: i64,
        done: &mut Maintenance,
    ) -> Result<(), LogError> {
        let segments = self.segments();
        let start = self.start_offset();
        let mut excess = match config.retention_bytes {
            bytes if bytes >= 0 && config.cleanup_policy.deletes() => {
                let size: u64 = segments.iter().map(|segment| segment.size()).sum();
                size.saturating_sub(bytes as u64)
            }
            _ => 0,
        };
        let old = |segment: &Segment| {
            // Records without timestamps are as old as their file, as in Kafka.
            let newest_ms = segment.latest_ms();
            config.cleanup_policy.deletes()
                && config.retention_ms >= 0
                && newest_ms >= 0
                && now_ms.saturating_sub(newest_ms) > config.retention_ms
        };
        let (mut count, mut active_size) = (0, 0);
        for (at, segment) in segments.iter().enumerate() {
            let next = segments.get(at + 1);
            let size = segment.size();
            let before_start = next.is_some_and(|next| next.base_offset <= start);
            let too_large = size <= excess && excess > 0;
            // The newest one only if it has something, and then it is rolled first. Others also if
            // compaction has emptied them, or they would keep what is behind them.
            let counts = next.is_some() || size > 0;
            if !(before_start || counts && (too_large || old(segment))) {
                break;
            }
            excess = excess.saturating_sub(size);
            count = at + 1;
            active_size = size;
        }
        if count == 0 {
            return Ok(());
        }
        if count == segments.len() {
            let mut writer = self.writer.lock();
            let active = segments.last().expect("a log has a segment");
            let grew =
                !Arc::ptr_eq(active, self.view.read().active()) || active.size() != active_size;
            if grew {
                // A producer has appended since.
                count -= 1;
            } else {
                self.roll(&mut writer, config)?;
            }
        }
        let start = self.view.read().segments()[count].base_offset.max(start);
        if start > checkpoint.start_offset {
            self.move_start(checkpoint, start)?;
        }
        self.view.write().remove_oldest(count);
        for segment in &segments[..count] {
            segment.remove()?;
            done.segments_deleted += 1;
            done.bytes_deleted += segment.size();
        }
        Ok(())
    }
}
