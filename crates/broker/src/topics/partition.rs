//! A partition: its log, those who wait for it to be flushed, and those who wait for it to grow.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kohort_log::{Log, LogConfig, LogError};
use kohort_wire::{ErrorCode, Uuid};
use parking_lot::{Mutex, RwLock};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use tracing::{error, info};

use crate::logs::Logs;

/// How long a partition that could not be opened is left alone.
const REOPEN_INTERVAL: Duration = Duration::from_secs(5);

/// A partition.
pub(crate) struct Partition {
    pub(crate) topic: Arc<str>,
    pub(crate) index: i32,
    pub(crate) topic_id: Uuid,
    logs: Arc<Logs>,
    config: RwLock<Arc<LogConfig>>,
    state: RwLock<State>,
    /// Those who wait for records.
    readers: Mutex<Vec<Weak<Notify>>>,
    has_readers: AtomicBool,
    /// Counts finished flushes.
    flushes: watch::Sender<u64>,
    is_flushing: Mutex<bool>,
}

enum State {
    /// Nobody has asked for it yet.
    Closed,
    Open(Arc<Log>),
    /// It cannot be used. Others go on.
    Failed {
        error: PartitionError,
        at: Instant,
    },
    /// The topic is gone.
    Deleted,
}

/// Why a partition cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum PartitionError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the topic has been deleted")]
    Deleted,
}

impl PartitionError {
    pub(crate) fn code(&self) -> ErrorCode {
        match self {
            PartitionError::Log(error) => error.error_code(),
            PartitionError::Deleted => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.index)
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Partition {
    pub(crate) fn new(
        topic: &str,
        index: i32,
        topic_id: Uuid,
        config: Arc<LogConfig>,
        logs: Arc<Logs>,
    ) -> Arc<Partition> {
        Arc::new(Partition {
            topic: topic.into(),
            index,
            topic_id,
            logs,
            config: RwLock::new(config),
            state: RwLock::new(State::Closed),
            readers: Mutex::new(Vec::new()),
            has_readers: AtomicBool::new(false),
            flushes: watch::Sender::new(0),
            is_flushing: Mutex::new(false),
        })
    }

    /// The log, opened if nobody has asked for it before.
    pub(crate) fn log(&self) -> Result<Arc<Log>, PartitionError> {
        match &*self.state.read() {
            State::Open(log) => return Ok(Arc::clone(log)),
            State::Failed { error, .. } => return Err(error.clone()),
            State::Deleted => return Err(PartitionError::Deleted),
            State::Closed => {}
        }
        let mut state = self.state.write();
        if let State::Closed = *state {
            *state = self.open();
        }
        match &*state {
            State::Open(log) => Ok(Arc::clone(log)),
            State::Failed { error, .. } => Err(error.clone()),
            State::Deleted | State::Closed => Err(PartitionError::Deleted),
        }
    }

    fn open(&self) -> State {
        let config = LogConfig::clone(&self.config.read());
        match self
            .logs
            .open(&self.topic, self.index, self.topic_id, config)
        {
            Ok(log) => State::Open(Arc::new(log)),
            Err(error) => {
                error!("partition {self} is not available: {error}");
                State::Failed {
                    error: error.into(),
                    at: Instant::now(),
                }
            }
        }
    }

    /// The log, if it is open.
    pub(crate) fn opened(&self) -> Option<Arc<Log>> {
        match &*self.state.read() {
            State::Open(log) => Some(Arc::clone(log)),
            _ => None,
        }
    }

    /// Whether there are records, or may be: the log is open, or there is a folder.
    pub(crate) fn is_begun(&self) -> bool {
        match &*self.state.read() {
            State::Open(_) | State::Failed { .. } => true,
            State::Deleted => false,
            State::Closed => self.logs.exists(&self.topic, self.index),
        }
    }

    pub(crate) fn set_config(&self, config: &Arc<LogConfig>) {
        *self.config.write() = Arc::clone(config);
        if let Some(log) = self.opened() {
            log.set_config(LogConfig::clone(config));
        }
    }

    /// Takes the trouble of a log to heart: one that has lost its footing is closed, and opened
    /// again later.
    pub(crate) fn failed(&self, cause: &LogError) {
        if !matches!(cause, LogError::FlushFailed | LogError::Io { .. }) {
            return;
        }
        let mut state = self.state.write();
        if let State::Open(_) = *state {
            error!("partition {self} has failed: {cause}");
            *state = State::Failed {
                error: cause.clone().into(),
                at: Instant::now(),
            };
        }
        drop(state);
        self.flushes.send_modify(|count| *count += 1);
        self.wake_readers();
    }

    /// Opens a partition that has failed once more, when that was some time ago.
    pub(crate) fn try_again(&self) {
        let mut state = self.state.write();
        if let State::Failed { at, .. } = &*state
            && at.elapsed() >= REOPEN_INTERVAL
        {
            *state = self.open();
            if let State::Open(_) = *state {
                info!("partition {self} is available again");
            }
        }
    }

    /// Waits until everything before `offset` is on the device. All who wait at a time share one
    /// flush, which runs on a thread of its own.
    pub(crate) async fn flushed(self: &Arc<Self>, offset: i64) -> Result<(), PartitionError> {
        let mut flushes = self.flushes.subscribe();
        loop {
            flushes.mark_unchanged();
            let log = self.log()?;
            if log.flushed_offset() >= offset {
                return Ok(());
            }
            self.start_flush(&log);
            // The sender lives in the partition.
            let _ = flushes.changed().await;
        }
    }

    /// Begins to flush, unless somebody has begun, so that the flushes of several partitions that
    /// are waited for one after the other go on side by side.
    pub(crate) fn flush_soon(self: &Arc<Self>, offset: i64) {
        if let Some(log) = self.opened()
            && log.flushed_offset() < offset
        {
            self.start_flush(&log);
        }
    }

    fn start_flush(self: &Arc<Self>, log: &Arc<Log>) {
        if self.logs.folder().is_none() {
            // In memory there is nothing to wait for.
            if let Err(error) = log.flush() {
                self.failed(&error);
            }
            self.flushes.send_modify(|count| *count += 1);
            return;
        }
        let mut is_flushing = self.is_flushing.lock();
        if std::mem::replace(&mut *is_flushing, true) {
            return;
        }
        drop(is_flushing);
        let (partition, log) = (Arc::clone(self), Arc::clone(log));
        tokio::task::spawn_blocking(move || {
            let flushed = log.flush();
            *partition.is_flushing.lock() = false;
            match flushed {
                Ok(_) => partition.flushes.send_modify(|count| *count += 1),
                Err(error) => partition.failed(&error),
            }
        });
    }

    /// Wakes `reader` when there are new records, or the partition has failed. Once.
    pub(crate) fn wake(&self, reader: &Arc<Notify>) {
        let mut readers = self.readers.lock();
        let is_known = |known: &Weak<Notify>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(reader));
        if !readers.iter().any(is_known) {
            if readers.len() == readers.capacity() {
                readers.retain(|reader| reader.strong_count() > 0);
            }
            readers.push(Arc::downgrade(reader));
        }
        self.has_readers.store(true, Ordering::SeqCst);
    }

    /// To be called after each append.
    pub(crate) fn wake_readers(&self) {
        if !self.has_readers.load(Ordering::SeqCst) {
            return;
        }
        let mut readers = self.readers.lock();
        self.has_readers.store(false, Ordering::SeqCst);
        for reader in readers.drain(..) {
            if let Some(reader) = reader.upgrade() {
                reader.notify_one();
            }
        }
    }

    /// Closes the log and removes its files.
    pub(crate) fn delete(&self) {
        let before = std::mem::replace(&mut *self.state.write(), State::Deleted);
        if let State::Open(log) = before {
            let _ = log.close();
        }
        self.logs.remove(&self.topic, self.index, self.topic_id);
        self.wake_readers();
    }

    /// Closes the log so that the next start need not look for torn ends.
    pub(crate) fn close(&self) {
        if let Some(log) = self.opened()
            && let Err(error) = log.close()
        {
            error!("closing partition {self}: {error}");
        }
    }
}
