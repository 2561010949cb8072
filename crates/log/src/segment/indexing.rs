//! The indexes of a segment: kept up, looked up, written, and made anew.

use std::sync::atomic::Ordering;

use kohort_wire::records::BatchHeader;

use super::{MaxTimestamp, NONE, Segment, State, path};
use crate::{
    LogError,
    files::{self, INDEX, TIME_INDEX},
    index::{Index, OFFSET_ENTRY_LENGTH, OffsetEntry, TIME_ENTRY_LENGTH, time_entry},
    storage::read_file,
};

impl Segment {
    /// Where to start looking for the batch with `offset`.
    pub(crate) fn position(&self, offset: i64) -> Result<u64, LogError> {
        let entry = self.entry(offset)?;
        Ok(entry.map_or(0, |entry| u64::from(entry.position)))
    }

    pub(super) fn entry(&self, offset: i64) -> Result<Option<OffsetEntry>, LogError> {
        let relative = self.relative(offset);
        self.with_index(|index| index.before(relative))
    }

    /// From which offset on to look for the first record not earlier than `timestamp`.
    pub(crate) fn offset_for(&self, timestamp: i64) -> Result<i64, LogError> {
        let relative = self.with_index(|index| index.offset_for(timestamp))?;
        Ok(self.base_offset + i64::from(relative))
    }

    fn with_index<T>(&self, look: impl Fn(&Index) -> T) -> Result<T, LogError> {
        if let Some(index) = &self.state.lock().index {
            return Ok(look(index));
        }
        // Reading the file without the lock: nothing is appended to a segment without an index.
        let read = if self.is_retired() {
            None
        } else {
            self.read_index()?.filter(|_| !self.is_retired())
        };
        let Some(index) = read else {
            return self.rebuild_index().map(|index| look(&index));
        };
        let found = look(&index);
        self.state.lock().index = Some(index);
        Ok(found)
    }

    fn read_index(&self) -> Result<Option<Index>, LogError> {
        let read = |kind| {
            let name = files::of(self.base_offset, kind);
            read_file(&*self.storage, &name)
                .map_err(|e| LogError::io("cannot read", path(&self.storage, &name), e))
        };
        Ok(match (read(INDEX)?, read(TIME_INDEX)?) {
            (Some(offsets), Some(times)) => Index::decode(&offsets, &times, self.size()),
            _ => None,
        })
    }

    /// Makes the indexes anew from the batches, in memory and, if there is room, on disk.
    pub(super) fn rebuild_index(&self) -> Result<Index, LogError> {
        let index = {
            // An appender waits meanwhile, or its batch would be missing.
            let mut state = self.state.lock();
            let mut anew = State::new(state.index_interval_bytes);
            let mut scanner = self.scan_headers(0);
            loop {
                match scanner.next().map_err(|e| self.scan_error(e)) {
                    Ok(Some(batch)) => self.index_batch(&mut anew, &batch.header, batch.position),
                    Ok(None) => break,
                    // What stands in front of the damage can be found; who comes to it is told.
                    Err(LogError::Corrupt { .. }) => break,
                    Err(error) => return Err(error),
                }
            }
            *state = anew;
            self.rebuilt.store(true, Ordering::Release);
            state.index.clone().unwrap_or_default()
        };
        if !self.is_retired() {
            // Reading must not depend on it.
            let _ = self.write_index();
        }
        Ok(index)
    }

    /// Sets up the state of the segment during recovery, before anyone else sees it: empty, and
    /// then a batch at a time.
    pub(crate) fn start_recovery(&self) {
        self.size.store(0, Ordering::Release);
        self.verified.lock().clear();
        let mut state = self.state.lock();
        *state = State::new(state.index_interval_bytes);
    }

    /// The next batch in the file is whole.
    pub(crate) fn recovered(&self, header: &BatchHeader) {
        let size = self.size();
        self.verified.lock().add(size, size + header.size() as u64);
        self.index_batch(&mut self.state.lock(), header, size);
        self.size
            .store(size + header.size() as u64, Ordering::Release);
    }

    /// Writes the indexes to their files: when the segment is rolled, and when the log is closed.
    pub(crate) fn write_index(&self) -> Result<(), LogError> {
        self.write_index_as("")
    }

    pub(crate) fn write_index_as(&self, suffix: &str) -> Result<(), LogError> {
        let (offsets, times) = {
            let mut state = self.state.lock();
            let max = state.max;
            let relative = self.relative(max.offset);
            match &mut state.index {
                // What has not been read has not been changed.
                None => return Ok(()),
                Some(index) => {
                    index.push_time(max.timestamp, relative);
                    index.encode()
                }
            }
        };
        for (kind, bytes) in [(INDEX, offsets), (TIME_INDEX, times)] {
            let name = files::of(self.base_offset, kind) + suffix;
            self.storage
                .create(&name)
                .and_then(|file| file.write_at(&bytes, 0))
                .map_err(|e| LogError::io("cannot write", path(&self.storage, &name), e))?;
        }
        Ok(())
    }

    /// The offset behind the last batch of a closed segment, without reading all of it: from the
    /// last entry of its index on. `None` if the file does not say, because something in it is
    /// damaged.
    pub(crate) fn closed_end(&self) -> Result<Option<i64>, LogError> {
        for position in [self.last_indexed_position(), 0] {
            let mut scanner = self.scan_headers(position);
            loop {
                match scanner.next().map_err(|e| self.scan_error(e)) {
                    Ok(Some(_)) => {}
                    Ok(None) => return Ok(Some(scanner.next_offset())),
                    // The index may have led to the middle of a batch.
                    Err(LogError::Corrupt { .. }) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(None)
    }

    /// Where the batch of the last index entry begins, by the file; 0 if that is of no use.
    fn last_indexed_position(&self) -> u64 {
        let name = files::of(self.base_offset, INDEX);
        let mut entry = Vec::new();
        let read = self.storage.open(&name).and_then(|file| {
            match file.len()?.checked_sub(OFFSET_ENTRY_LENGTH as u64) {
                Some(at) if at % OFFSET_ENTRY_LENGTH as u64 == 0 => {
                    file.read_at(&mut entry, at, OFFSET_ENTRY_LENGTH)
                }
                _ => Ok(()),
            }
        });
        match (read, <[u8; OFFSET_ENTRY_LENGTH]>::try_from(entry)) {
            (Ok(()), Ok([_, _, _, _, a, b, c, d])) => {
                let position = u64::from(u32::from_be_bytes([a, b, c, d]));
                if position < self.size() { position } else { 0 }
            }
            _ => 0,
        }
    }

    fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// From now on the segment's names belong to another one, or to none. Readers go on.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Has the index in memory, as the newest segment needs it.
    pub(crate) fn load_index(&self) -> Result<(), LogError> {
        self.first_timestamp()?;
        self.with_index(|_| ())
    }

    /// Forgets the index, which is on disk.
    pub(crate) fn drop_index(&self) {
        self.state.lock().index = None;
    }

    /// From the last entry of the time index: it is written when a segment ends.
    pub(super) fn read_max_timestamp(&self) -> Result<MaxTimestamp, LogError> {
        if self.size() == 0 {
            return Ok(NONE);
        }
        let mut entry = Vec::new();
        let name = files::of(self.base_offset, TIME_INDEX);
        let found = self.storage.open(&name).and_then(|file| {
            let length = file.len()?;
            match length.checked_sub(TIME_ENTRY_LENGTH as u64) {
                Some(at) if length % TIME_ENTRY_LENGTH as u64 == 0 => {
                    file.read_at(&mut entry, at, TIME_ENTRY_LENGTH)
                }
                _ => Ok(()),
            }
        });
        match (found, <[u8; TIME_ENTRY_LENGTH]>::try_from(entry)) {
            (Ok(()), Ok(entry)) => {
                let entry = time_entry(entry);
                Ok(MaxTimestamp {
                    timestamp: entry.timestamp,
                    offset: self.base_offset + i64::from(entry.offset),
                })
            }
            _ => {
                self.rebuild_index()?;
                Ok(self.state.lock().max)
            }
        }
    }
}
