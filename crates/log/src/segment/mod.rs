//! One segment: a file of batches and its indexes.

mod indexing;
mod read;
mod verified;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
};

use kohort_wire::records::{BatchHeader, HEADER_LENGTH};
use parking_lot::Mutex;

use crate::{
    LogError,
    files::{self, INDEX, LOG, TIME_INDEX},
    index::Index,
    scan::{ScanError, Scanner},
    storage::{Storage, StorageFile, remove_file},
};
pub(crate) use read::Wanted;
use verified::Verified;

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
    /// There are no gaps between its batches: compaction has not been here.
    is_dense: bool,
    /// When the last batch was written, by the clock in ms, or −1: the time of records that have
    /// none of their own.
    written_ms: AtomicI64,
    /// Which parts of the file are known to be whole.
    verified: Mutex<Verified>,
    /// The index was made anew since the segment was opened: it is not what is wrong.
    rebuilt: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// `None` until a reader needs it.
    index: Option<Index>,
    index_interval_bytes: u32,
    bytes_since_entry: u32,
    max: MaxTimestamp,
    /// Of the first batch, or −1; `None` until it has been read.
    first_timestamp: Option<i64>,
}

impl State {
    /// Of an empty segment.
    fn new(index_interval_bytes: u32) -> State {
        State {
            index: Some(Index::default()),
            index_interval_bytes,
            bytes_since_entry: 0,
            max: NONE,
            first_timestamp: Some(-1),
        }
    }
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
            is_dense: suffix.is_empty(),
            written_ms: AtomicI64::new(-1),
            verified: Mutex::default(),
            rebuilt: AtomicBool::new(false),
            state: Mutex::new(State::new(index_interval_bytes)),
        })
    }

    /// A segment that is there; `is_dense` if compaction has left no gaps in it. Next it is either trusted or checked.
    pub(crate) fn open(
        storage: &Arc<dyn Storage>,
        base_offset: i64,
        index_interval_bytes: u32,
        is_dense: bool,
    ) -> Result<Segment, LogError> {
        let name = files::of(base_offset, LOG);
        let io = |action, e| LogError::io(action, path(storage, &name), e);
        let file = storage.open(&name).map_err(|e| io("cannot open", e))?;
        let size = file.len().map_err(|e| io("cannot read", e))?;
        let modified = file.modified_ms().map_err(|e| io("cannot read", e))?;
        Ok(Segment {
            base_offset,
            storage: storage.clone(),
            file,
            size: AtomicU64::new(size),
            retired: AtomicBool::new(false),
            is_dense,
            written_ms: AtomicI64::new(modified.unwrap_or(-1)),
            verified: Mutex::default(),
            rebuilt: AtomicBool::new(false),
            state: Mutex::new(State {
                index: None,
                first_timestamp: None,
                ..State::new(index_interval_bytes)
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

    /// The latest timestamp, or when the last batch was written if no record has one. −1 if
    /// neither is known.
    pub(crate) fn latest_ms(&self) -> i64 {
        match self.max_timestamp().timestamp {
            timestamp @ 0.. => timestamp,
            _ => self.written_ms(),
        }
    }

    /// The timestamp of the first batch. If it has none, when the last batch was written: the first
    /// one is no younger. −1 if neither is known.
    pub(crate) fn oldest_ms(&self) -> Result<i64, LogError> {
        Ok(match self.first_timestamp()? {
            timestamp @ 0.. => timestamp,
            _ => self.written_ms(),
        })
    }

    /// When the last batch was written, by the clock in ms, or −1.
    pub(crate) fn written_ms(&self) -> i64 {
        self.written_ms.load(Ordering::Acquire)
    }

    /// Takes over the age of the segments that this one replaces, also for the next start.
    pub(crate) fn set_written_ms(&self, time_ms: i64) {
        self.written_ms.store(time_ms, Ordering::Release);
        if time_ms >= 0 {
            // Without it records that have no timestamp stay longer than they need to.
            let _ = self.file.set_modified_ms(time_ms);
        }
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
        now_ms: i64,
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
        self.written_ms.store(now_ms, Ordering::Release);
        self.verified.lock().add(size, size + bytes.len() as u64);
        self.size
            .store(size + bytes.len() as u64, Ordering::Release);
        Ok(())
    }

    /// As Kafka's LogSegment does: an entry names the last offset of a batch and where it begins.
    fn index_batch(&self, state: &mut State, header: &BatchHeader, position: u64) {
        if position == 0 {
            state.first_timestamp = Some(header.max_timestamp);
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
                let name = files::of(self.base_offset, kind);
                match self.storage.open(&name).and_then(|file| file.sync()) {
                    // It is made again when it is needed.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    synced => synced?,
                }
            }
        }
        Ok(())
    }

    /// Goes through the batches from `position` on. Their checksums are not looked at: this is for
    /// what only their headers are needed.
    pub(crate) fn scan_headers(&self, position: u64) -> Scanner<'_> {
        Scanner::new(&*self.file, position, self.size(), self.base_offset)
    }

    /// Goes through the batches from `position` on, and ends with an error at one that is damaged.
    pub(crate) fn scan(&self, position: u64) -> Scanner<'_> {
        self.scan_headers(position).checking_crc()
    }

    /// Goes through the first `size` bytes of the file, whatever counts as written.
    pub(crate) fn scan_file(&self, size: u64) -> Scanner<'_> {
        Scanner::new(&*self.file, 0, size, self.base_offset)
    }

    /// The largest timestamp of the first batch, from the file if need be, or −1.
    pub(crate) fn first_timestamp(&self) -> Result<i64, LogError> {
        let known = self.state.lock().first_timestamp;
        if let Some(known) = known {
            return Ok(known);
        }
        let mut bytes = Vec::new();
        self.file
            .read_at(&mut bytes, 0, HEADER_LENGTH)
            .map_err(|e| LogError::io("cannot read", self.name(), e))?;
        let first = self.header(&bytes, 0, self.size())?;
        let first = first.map_or(-1, |header| header.max_timestamp);
        self.state.lock().first_timestamp = Some(first);
        Ok(first)
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

    /// Removes the segment's files. Readers that hold the segment can still read it.
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

pub(crate) fn path(storage: &Arc<dyn Storage>, name: &str) -> String {
    format!("{}/{name}", storage.name())
}
