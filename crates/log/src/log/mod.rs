//! The log of one partition.

mod append;
mod compact;
mod flush;
mod lookup;
mod maintain;
mod open;
mod read;
mod recover;
mod replay;
mod swap;
mod view;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use parking_lot::{Mutex, RwLock};

pub(crate) use self::swap::complete as complete_swap;
use self::view::View;
pub use self::{
    append::{Appended, Origin},
    lookup::{AbortedTransaction, TimestampOffset},
    maintain::Maintenance,
    open::Recovery,
    read::{Read, ReadLimit},
};
use crate::{
    LogConfig, LogError,
    checkpoint::{Checkpoint, RecoveryPoint},
    producers::Producers,
    storage::Storage,
};

/// What a batch that is in a log may decompress to, in bytes: it was checked against the limit of
/// its day when it was appended.
const STORED_BATCH_MAX: usize = i32::MAX as usize;

/// The log of one partition. Share it between threads as you like.
///
/// Locks, in the order in which they are taken: `maintenance`, `flush`, `writer`, `view`. Readers
/// take only `view`, and not while they read files.
pub struct Log {
    storage: Arc<dyn Storage>,
    config: RwLock<Arc<LogConfig>>,
    writer: Mutex<Writer>,
    view: RwLock<View>,
    flush: Mutex<RecoveryPoint>,
    maintenance: Mutex<Checkpoint>,
    /// Everything before is durable.
    flushed: AtomicI64,
    /// A flush failed; see [`LogError::FlushFailed`].
    flush_failed: AtomicBool,
    closed: AtomicBool,
    recovery: Recovery,
}

/// What only an appender needs.
struct Writer {
    producers: Producers,
    /// An append failed and may have left bytes behind the last batch.
    untidy: bool,
    /// When the newest segment got its first batch, by the appender's clock.
    segment_began_ms: Option<i64>,
    /// The marker of the last clean shutdown is still there.
    marked_clean: bool,
}

impl Log {
    /// The offset of the first record that can be read.
    pub fn start_offset(&self) -> i64 {
        self.view.read().start_offset()
    }

    /// The offset that the next record gets. With one replica this is the high watermark: what is
    /// before it can be read.
    pub fn end_offset(&self) -> i64 {
        self.view.read().end_offset
    }

    /// The offset before which everything is durable.
    pub fn flushed_offset(&self) -> i64 {
        self.flushed.load(Ordering::Acquire)
    }

    /// The offset before which every transaction has ended. Until there are transactions, the end.
    pub fn last_stable_offset(&self) -> i64 {
        self.end_offset()
    }

    /// Whether a read from `offset` on takes no system call: what it gives is in memory, or nothing.
    pub fn is_cached(&self, offset: i64) -> bool {
        let view = self.view.read();
        offset >= view.end_offset || view.cache.reaches(offset)
    }

    /// How many bytes the log has on disk, without its indexes.
    pub fn size(&self) -> u64 {
        let view = self.view.read();
        view.segments().iter().map(|segment| segment.size()).sum()
    }

    /// How many bytes have been appended since the log was opened. It only grows: a
    /// reader that was at the end learns from it how much there is to read now, without reading it.
    pub fn appended_bytes(&self) -> u64 {
        self.view.read().appended_bytes
    }

    /// How many segments the log has.
    pub fn segment_count(&self) -> usize {
        self.view.read().segments().len()
    }

    /// The settings.
    pub fn config(&self) -> Arc<LogConfig> {
        self.config.read().clone()
    }

    /// Changes the settings, for what happens from now on.
    pub fn set_config(&self, config: LogConfig) {
        self.view.write().cache.set_limit(config.cache_bytes);
        *self.config.write() = Arc::new(config);
    }

    /// What opening the log had to repair.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// What to call the log in messages: its folder.
    pub fn name(&self) -> String {
        self.storage.name()
    }

    /// Whether an earlier flush failed, so that the log must be opened again to take data.
    pub fn has_failed(&self) -> bool {
        self.flush_failed.load(Ordering::Acquire)
    }

    fn check_writable(&self) -> Result<(), LogError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(LogError::Closed);
        }
        if self.has_failed() {
            Err(LogError::FlushFailed)
        } else {
            Ok(())
        }
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log")
            .field("name", &self.name())
            .field("start_offset", &self.start_offset())
            .field("end_offset", &self.end_offset())
            .field("flushed_offset", &self.flushed_offset())
            .finish_non_exhaustive()
    }
}
