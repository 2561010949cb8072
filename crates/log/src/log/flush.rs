//! Making what was appended durable.

use std::{
    io::ErrorKind,
    sync::{Arc, atomic::Ordering},
};

use super::Log;
use crate::{
    LogError,
    checkpoint::CleanShutdown,
    files::{self, CLEAN_SHUTDOWN, RECOVERY_POINT, SNAPSHOT},
    segment::{Segment, path},
};

impl Log {
    /// Makes everything durable that was appended before the call, and returns the offset before
    /// which everything is. Waits for the device; appends and reads go on meanwhile.
    ///
    /// Callers that come while one is at it share the next flush: of many, only few wait for a
    /// device operation of their own.
    ///
    /// # Errors
    ///
    /// If the device fails, for good: see [`LogError::FlushFailed`].
    pub fn flush(&self) -> Result<i64, LogError> {
        let wanted = self.end_offset();
        if self.flushed_offset() >= wanted {
            return Ok(self.flushed_offset());
        }
        let mut recovery_point = self.flush.lock();
        if self.has_failed() {
            return Err(LogError::FlushFailed);
        }
        let flushed = self.flushed_offset();
        if flushed >= wanted {
            return Ok(flushed);
        }
        // More may have come while this one waited: take all of it.
        let (segments, end_offset) = self.unflushed(flushed);
        if let Err((segment, error)) = self.sync(&segments) {
            self.flush_failed.store(true, Ordering::Release);
            return Err(LogError::io("cannot flush", segment, error));
        }
        self.flushed.store(end_offset, Ordering::Release);
        // It only saves work at the next start: nothing depends on it.
        let _ = recovery_point.store(end_offset);
        Ok(end_offset)
    }

    fn unflushed(&self, flushed: i64) -> (Vec<Arc<Segment>>, i64) {
        let view = self.view.read();
        // One that ended when all of it had been flushed has an index, and the next one a state of
        // the producers, that have not.
        let first = view.segment_at((flushed - 1).max(0));
        (view.segments()[first..].to_vec(), view.end_offset)
    }

    fn sync(&self, segments: &[Arc<Segment>]) -> Result<(), (String, std::io::Error)> {
        let Some((active, closed)) = segments.split_last() else {
            return Ok(());
        };
        for (segment, next) in closed.iter().zip(&segments[1..]) {
            segment.sync(true).map_err(|e| (segment.name(), e))?;
            let name = files::of(next.base_offset, SNAPSHOT);
            match self.storage.open(&name).and_then(|file| file.sync()) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err((name, error)),
                _ => {}
            }
        }
        // The file itself must be there after a power failure. One that is older than the last
        // flush is.
        if !closed.is_empty() || self.flushed_offset() <= active.base_offset {
            self.storage.sync().map_err(|e| (self.name(), e))?;
        }
        active.sync(false).map_err(|e| (active.name(), e))
    }

    /// Gives the folder up at once, because it is to be removed, or to be opened anew: this log
    /// touches nothing in it from now on. What it has open can be read a little longer.
    pub fn detach(&self) {
        self.closed.store(true, Ordering::Release);
        self.storage.detach();
    }

    /// Flushes, and writes down what makes the next start quick. The log takes no more data from
    /// then on, whether that works or not; it can still be read.
    pub fn close(&self) -> Result<(), LogError> {
        let _maintenance = self.maintenance.lock();
        {
            // An append that is under way ends first.
            let _writer = self.writer.lock();
            if self.closed.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
        }
        self.flush()?;
        let recovery_point = &mut *self.flush.lock();
        let writer = self.writer.lock();
        if writer.marked_clean {
            return Ok(());
        }
        let active = self.view.read().active().clone();
        active.write_index()?;
        let end_offset = self.store_snapshot(&writer)?;
        recovery_point
            .store(end_offset)
            .map_err(|e| LogError::io("cannot write", path(&self.storage, RECOVERY_POINT), e))?;
        let marker = CleanShutdown {
            base_offset: active.base_offset,
            size: active.size(),
            end_offset,
        };
        marker
            .store(&*self.storage)
            .map_err(|e| LogError::io("cannot write", path(&self.storage, CLEAN_SHUTDOWN), e))
    }
}
