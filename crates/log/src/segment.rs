//! One segment: a file of batches and its indexes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use bytes::Bytes;
use kohort_wire::records::{BatchHeader, HEADER_LENGTH};
use parking_lot::Mutex;

use crate::{
    LogError,
    files::{self, INDEX, LOG, TIME_INDEX},
    index::{Index, OffsetEntry, TIME_ENTRY_LENGTH, time_entry},
    scan::{ScanError, Scanner},
    storage::{Storage, StorageFile, read_file, remove_file},
};

/// A time and the offset it goes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MaxTimestamp {
    pub(crate) timestamp: i64,
    pub(crate) offset: i64,
}

/// One segment. The newest one of a log grows; only its appender may call [`Segment::append`].
pub(crate) struct Segment {
    pub(crate) base_offset: i64,
    storage: Arc<dyn Storage>,
    file: Arc<dyn StorageFile>,
    /// How many bytes are batches; what may stand behind them is of an append that failed.
    size: AtomicU64,
    /// The files of that name are no longer this segment's: it was removed or replaced.
    retired: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// `None` until a reader needs it.
    index: Option<Index>,
    index_interval_bytes: u32,
    bytes_since_entry: u32,
    max: MaxTimestamp,
    /// Of the first batch, or −1.
    first_timestamp: i64,
}

const NONE: MaxTimestamp = MaxTimestamp {
    timestamp: -1,
    offset: -1,
};

/// The largest relative offset that an index can hold; Kafka's are signed.
const RELATIVE_OFFSET_MAX: i64 = i32::MAX as i64;

impl Segment {
    /// A new, empty segment.
    pub(crate) fn create(
        storage: &Arc<dyn Storage>,
        base_offset: i64,
        suffix: &str,
        index_interval_bytes: u32,
    ) -> Result<Segment, LogError> {
        let name = files::of(base_offset, LOG) + suffix;
        let file = storage
            .create(&name)
            .map_err(|e| LogError::io("cannot create", path(storage, &name), e))?;
        Ok(Segment {
            base_offset,
            storage: storage.clone(),
            file,
            size: AtomicU64::new(0),
            retired: AtomicBool::new(false),
            state: Mutex::new(State {
                index: Some(Index::default()),
                index_interval_bytes,
                bytes_since_entry: 0,
                max: NONE,
                first_timestamp: -1,
            }),
        })
    }

    /// A segment that is there. Next it is either trusted or checked.
    pub(crate) fn open(
        storage: &Arc<dyn Storage>,
        base_offset: i64,
        index_interval_bytes: u32,
    ) -> Result<Segment, LogError> {
        let name = files::of(base_offset, LOG);
        let io = |action, e| LogError::io(action, path(storage, &name), e);
        let file = storage.open(&name).map_err(|e| io("cannot open", e))?;
        let size = file.len().map_err(|e| io("cannot read", e))?;
        Ok(Segment {
            base_offset,
            storage: storage.clone(),
            file,
            size: AtomicU64::new(size),
            retired: AtomicBool::new(false),
            state: Mutex::new(State {
                index: None,
                index_interval_bytes,
                bytes_since_entry: 0,
                max: NONE,
                first_timestamp: -1,
            }),
        })
    }

    /// Believes what the indexes say of a segment that was opened and is not checked.
    pub(crate) fn trust(&self) -> Result<(), LogError> {
        let max = self.read_max_timestamp()?;
        self.state.lock().max = max;
        Ok(())
    }

    pub(crate) fn name(&self) -> String {
        path(&self.storage, &files::of(self.base_offset, LOG))
    }

    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// The latest timestamp and the offset of the batch it is in.
    pub(crate) fn max_timestamp(&self) -> MaxTimestamp {
        self.state.lock().max
    }

    /// The largest timestamp of the first batch, or −1.
    pub(crate) fn first_timestamp(&self) -> i64 {
        self.state.lock().first_timestamp
    }

    /// Whether a batch that ends with `offset` can be part of this segment.
    pub(crate) fn can_hold(&self, offset: i64) -> bool {
        offset - self.base_offset <= RELATIVE_OFFSET_MAX
    }

    fn relative(&self, offset: i64) -> u32 {
        (offset - self.base_offset).clamp(0, RELATIVE_OFFSET_MAX) as u32
    }

    /// Writes `bytes`, whole batches with those headers. After an error nothing counts as written.
    pub(crate) fn append(
        &self,
        bytes: &[u8],
        headers: impl Iterator<Item = BatchHeader>,
    ) -> std::io::Result<()> {
        let size = self.size();
        self.file.write_at(bytes, size)?;
        let mut position = size;
        let mut state = self.state.lock();
        for header in headers {
            self.index_batch(&mut state, &header, position);
            position += header.size() as u64;
        }
        drop(state);
        self.size
            .store(size + bytes.len() as u64, Ordering::Release);
        Ok(())
    }

    /// As Kafka's LogSegment does: an entry names the last offset of a batch and where it begins.
    fn index_batch(&self, state: &mut State, header: &BatchHeader, position: u64) {
        if position == 0 {
            state.first_timestamp = header.max_timestamp;
        }
        if header.max_timestamp > state.max.timestamp {
            state.max = MaxTimestamp {
                timestamp: header.max_timestamp,
                offset: header.last_offset(),
            };
        }
        if state.bytes_since_entry > state.index_interval_bytes {
            let max = state.max;
            if let Some(index) = &mut state.index {
                index.push_offset(self.relative(header.last_offset()), position as u32);
                index.push_time(max.timestamp, self.relative(max.offset));
            }
            state.bytes_since_entry = 0;
        }
        state.bytes_since_entry = state.bytes_since_entry.saturating_add(header.size() as u32);
    }

    /// Cuts off what an append that failed may have left.
    pub(crate) fn cut_off_failed_append(&self) -> std::io::Result<()> {
        self.file.truncate(self.size())
    }

    /// Makes the batches durable, and with `and_indexes` the indexes too.
    pub(crate) fn sync(&self, and_indexes: bool) -> std::io::Result<()> {
        self.file.sync()?;
        if and_indexes {
            for kind in [INDEX, TIME_INDEX] {
                self.storage
                    .open(&files::of(self.base_offset, kind))?
                    .sync()?;
            }
        }
        Ok(())
    }

    /// Goes through the batches from `position` on.
    pub(crate) fn scan(&self, position: u64) -> Scanner<'_> {
        Scanner::new(&*self.file, position, self.size(), self.base_offset)
    }

    /// Goes through the first `size` bytes of the file, whatever counts as written.
    pub(crate) fn scan_file(&self, size: u64) -> Scanner<'_> {
        Scanner::new(&*self.file, 0, size, self.base_offset)
    }

    /// The largest timestamp of the first batch, from the file if need be, or −1.
    pub(crate) fn read_first_timestamp(&self) -> Result<i64, LogError> {
        let mut bytes = Vec::new();
        self.file
            .read_at(&mut bytes, 0, HEADER_LENGTH)
            .map_err(|e| LogError::io("cannot read", self.name(), e))?;
        let first = self.header(&bytes, 0, self.size())?;
        Ok(first.map_or(-1, |header| header.max_timestamp))
    }

    /// The file with the batches.
    pub(crate) fn file(&self) -> &Arc<dyn StorageFile> {
        &self.file
    }

    pub(crate) fn scan_error(&self, error: ScanError) -> LogError {
        match error {
            ScanError::Io(error) => LogError::io("cannot read", self.name(), error),
            ScanError::Damaged { position, reason } => LogError::Corrupt {
                file: self.name(),
                position,
                reason,
            },
        }
    }

    /// Where to start looking for the batch with `offset`.
    pub(crate) fn position(&self, offset: i64) -> Result<u64, LogError> {
        let entry = self.entry(offset)?;
        Ok(entry.map_or(0, |entry| u64::from(entry.position)))
    }

    fn entry(&self, offset: i64) -> Result<Option<OffsetEntry>, LogError> {
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
        // Reading the file without the lock: nobody appends to a segment without an index.
        let read = match self.is_retired() {
            true => None,
            false => self.read_index()?.filter(|_| !self.is_retired()),
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

    /// Makes the indexes anew from the batches, in memory and on disk.
    pub(crate) fn rebuild_index(&self) -> Result<Index, LogError> {
        let mut scanner = self.scan(0);
        let mut state = State {
            index: Some(Index::default()),
            index_interval_bytes: self.state.lock().index_interval_bytes,
            bytes_since_entry: 0,
            max: NONE,
            first_timestamp: -1,
        };
        while let Some(batch) = scanner.next().map_err(|e| self.scan_error(e))? {
            self.index_batch(&mut state, &batch.header, batch.position);
        }
        *self.state.lock() = state;
        if !self.is_retired() {
            self.write_index()?;
        }
        Ok(self.state.lock().index.clone().unwrap_or_default())
    }

    /// Sets up the state of the segment during recovery, before anyone else sees it: empty, and
    /// then a batch at a time.
    pub(crate) fn start_recovery(&self) {
        self.size.store(0, Ordering::Release);
        let mut state = self.state.lock();
        state.index = Some(Index::default());
        state.bytes_since_entry = 0;
        state.max = NONE;
        state.first_timestamp = -1;
    }

    /// The next batch in the file is whole.
    pub(crate) fn recovered(&self, header: &BatchHeader) {
        let size = self.size();
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

    fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// From now on the segment's names belong to another one, or to none. Readers go on.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Has the index in memory, as the newest segment needs it.
    pub(crate) fn load_index(&self) -> Result<(), LogError> {
        let first_timestamp = self.read_first_timestamp()?;
        self.with_index(|_| ())?;
        self.state.lock().first_timestamp = first_timestamp;
        Ok(())
    }

    /// Forgets the index, which is on disk.
    pub(crate) fn drop_index(&self) {
        self.state.lock().index = None;
    }

    /// From the last entry of the time index: it is written when a segment ends.
    fn read_max_timestamp(&self) -> Result<MaxTimestamp, LogError> {
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

    /// Whole batches from the one with `from` (or the next after a gap) to `until`, at most
    /// `max_bytes` of them, or one larger one if that is wanted. `None` if there is no such batch
    /// here.
    pub(crate) fn read(
        &self,
        from: i64,
        until: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Option<Bytes>, LogError> {
        let wanted = Wanted {
            from,
            until,
            max_bytes,
            at_least_one,
        };
        match self.read_from(self.entry(from)?, &wanted) {
            // The index may be what is wrong.
            Err(LogError::Corrupt { .. }) => {
                self.rebuild_index()?;
                self.read_from(self.entry(from)?, &wanted)
            }
            result => result,
        }
    }

    fn read_from(
        &self,
        entry: Option<OffsetEntry>,
        wanted: &Wanted,
    ) -> Result<Option<Bytes>, LogError> {
        let &Wanted {
            from,
            until,
            max_bytes,
            at_least_one,
        } = wanted;
        let size = self.size();
        let mut position = entry.map_or(0, |entry| u64::from(entry.position));
        // An index of other times could lead behind what is wanted.
        let mut expected = entry.map(|entry| self.base_offset + i64::from(entry.offset));
        let slack = self.state.lock().index_interval_bytes as usize + HEADER_LENGTH;
        let mut length = max_bytes.saturating_add(slack);
        loop {
            let left = usize::try_from(size.saturating_sub(position)).unwrap_or(usize::MAX);
            if left == 0 {
                return Ok(None);
            }
            let mut buffer = Vec::new();
            self.file
                .read_at(&mut buffer, position, length.min(left))
                .map_err(|e| LogError::io("cannot read", self.name(), e))?;
            if buffer.len() < length.min(left) {
                return Err(LogError::Corrupt {
                    file: self.name(),
                    position: position + buffer.len() as u64,
                    reason: "it is shorter than it was".to_owned(),
                });
            }
            let mut at = 0;
            // Over the batches before the one that is wanted.
            let header = loop {
                let header = match self.header(&buffer[at..], position + at as u64, size) {
                    Ok(Some(header)) => header,
                    Ok(None) => break None,
                    Err(error) => return Err(error),
                };
                if expected
                    .take()
                    .is_some_and(|last| last != header.last_offset())
                {
                    return Err(LogError::Corrupt {
                        file: self.name(),
                        position,
                        reason: "its index leads to another batch".to_owned(),
                    });
                }
                if header.last_offset() >= from {
                    break Some(header);
                }
                at += header.size();
                if at > buffer.len() {
                    break None;
                }
            };
            let Some(first) = header else {
                position += at as u64;
                length = length.max(slack);
                continue;
            };
            if first.next_offset() > until || (first.size() > max_bytes && !at_least_one) {
                return Ok(Some(Bytes::new()));
            }
            if first.size() > buffer.len() - at {
                position += at as u64;
                length = first.size().max(max_bytes);
                continue;
            }
            let mut end = at + first.size();
            while let Ok(Some(next)) = self.header(&buffer[end..], position + end as u64, size) {
                let next_end = end + next.size();
                if next_end > buffer.len()
                    || next_end - at > max_bytes
                    || next.next_offset() > until
                {
                    break;
                }
                end = next_end;
            }
            return Ok(Some(Bytes::from(buffer).slice(at..end)));
        }
    }

    /// The header at the start of `bytes`, or `None` if they are too few and there are more.
    fn header(
        &self,
        bytes: &[u8],
        position: u64,
        size: u64,
    ) -> Result<Option<BatchHeader>, LogError> {
        let corrupt = |reason: String| LogError::Corrupt {
            file: self.name(),
            position,
            reason,
        };
        if bytes.len() < HEADER_LENGTH && position + HEADER_LENGTH as u64 <= size {
            return Ok(None);
        }
        if bytes.is_empty() && position == size {
            return Ok(None);
        }
        let header = BatchHeader::parse(bytes).map_err(|e| corrupt(e.to_string()))?;
        if position + header.size() as u64 > size {
            return Err(corrupt("it is longer than the file".to_owned()));
        }
        if header.base_offset < self.base_offset || header.last_offset_delta < 0 {
            return Err(corrupt("its offset is out of order".to_owned()));
        }
        Ok(Some(header))
    }

    /// Removes the segment's files. Whoever holds the segment can still read it.
    pub(crate) fn remove(&self) -> Result<(), LogError> {
        self.retire();
        for kind in [LOG, INDEX, TIME_INDEX] {
            let name = files::of(self.base_offset, kind);
            remove_file(&*self.storage, &name)
                .map_err(|e| LogError::io("cannot remove", path(&self.storage, &name), e))?;
        }
        Ok(())
    }
}

struct Wanted {
    from: i64,
    until: i64,
    max_bytes: usize,
    at_least_one: bool,
}

pub(crate) fn path(storage: &Arc<dyn Storage>, name: &str) -> String {
    format!("{}/{name}", storage.name())
}
