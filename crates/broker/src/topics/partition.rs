//! A partition: its log, those who wait for it to be flushed, and those who wait for it to grow.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kohort_log::{Log, LogError};
use kohort_wire::{ErrorCode, Uuid};
use parking_lot::{Mutex, RwLock};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use tracing::{error, info};

use super::partition_config::PartitionConfig;
use crate::logs::{Begun, Logs};

/// How many threads wait for the disk together: more than there are processors, since a disk
/// flushes for several at about the price of one.
const THREADS_MAX: usize = 16;

/// How long after its last record a log gives back the memory of its newest batches.
const QUIET_AFTER: Duration = Duration::from_secs(60);

/// What `flush.ms` is below when it asks for anything: Kafka's default is 2^63 − 1.
const FLUSH_MS_MAX: i64 = 1 << 40;

/// What to do about damaged files.
const DAMAGE_ADVICE: &str =
    "stop the broker, and let `kohort log check` and `kohort log repair` look at the data folder";

/// How many places of damage in a partition are reported, each once.
const DAMAGE_REPORTS_MAX: usize = 100;

/// How long a partition that could not be opened is left alone.
const REOPEN_INTERVAL: Duration = Duration::from_secs(5);

/// Does something that waits for the disk with many partitions, several at a time.
pub(crate) fn side_by_side(partitions: &[&Arc<Partition>], work: impl Fn(&Partition) + Sync) {
    let share = partitions.len().div_ceil(THREADS_MAX).max(4);
    std::thread::scope(|scope| {
        for partitions in partitions.chunks(share) {
            let work = &work;
            scope.spawn(move || partitions.iter().for_each(|partition| work(partition)));
        }
    });
}

/// A partition.
pub(crate) struct Partition {
    pub(crate) topic: Arc<str>,
    pub(crate) index: i32,
    pub(crate) topic_id: Uuid,
    /// Its folder was created with the topic.
    has_folder: bool,
    logs: Arc<Logs>,
    config: RwLock<Arc<PartitionConfig>>,
    state: RwLock<State>,
    /// Those who wait for records.
    readers: Mutex<Vec<Weak<Notify>>>,
    has_readers: AtomicBool,
    /// Counts finished flushes.
    flushes: watch::Sender<u64>,
    is_flushing: Mutex<bool>,
    /// A task waits to flush what `flush.ms` wants flushed.
    flushes_later: AtomicBool,
    seen: Mutex<Seen>,
    /// The damage that was reported: consumers read on at the same place again and again.
    damage: Mutex<BTreeSet<String>>,
}

/// What was seen of a log at the last look.
struct Seen {
    end: i64,
    grown_at: Instant,
    is_quiet: bool,
}

enum State {
    /// It was not used yet.
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

impl State {
    fn report(&self, partition: &Partition) {
        match self {
            State::Failed {
                error: error @ PartitionError::Log(LogError::Corrupt { .. }),
                ..
            } => error!("partition {partition} is not available: {error}; {DAMAGE_ADVICE}"),
            State::Failed { error, .. } => {
                error!("partition {partition} is not available: {error}");
            }
            _ => {}
        }
    }
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
        has_folder: bool,
        config: Arc<PartitionConfig>,
        logs: Arc<Logs>,
    ) -> Arc<Partition> {
        Arc::new(Partition {
            topic: topic.into(),
            index,
            topic_id,
            has_folder,
            logs,
            config: RwLock::new(config),
            state: RwLock::new(State::Closed),
            readers: Mutex::new(Vec::new()),
            has_readers: AtomicBool::new(false),
            flushes: watch::Sender::new(0),
            is_flushing: Mutex::new(false),
            flushes_later: AtomicBool::new(false),
            damage: Mutex::default(),
            seen: Mutex::new(Seen {
                end: 0,
                grown_at: Instant::now(),
                is_quiet: false,
            }),
        })
    }

    /// The log, opened at its first use.
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
            state.report(self);
        }
        match &*state {
            State::Open(log) => Ok(Arc::clone(log)),
            State::Failed { error, .. } => Err(error.clone()),
            State::Deleted | State::Closed => Err(PartitionError::Deleted),
        }
    }

    /// Opens the log if it may have records. What goes wrong is reported, and remembered for those
    /// who ask for the log. One without records is opened when it is first used: until then it
    /// costs no file.
    pub(crate) fn open_if_begun(&self) {
        let mut state = self.state.write();
        if let State::Closed = *state
            && self.begun() == Begun::Maybe
        {
            *state = self.open();
            state.report(self);
        }
    }

    fn open(&self) -> State {
        let config = self.config.read().log.clone();
        match self.logs.open(
            &self.topic,
            self.index,
            self.topic_id,
            self.has_folder,
            config,
        ) {
            Ok(log) => State::Open(Arc::new(log)),
            Err(error) => State::Failed {
                error: error.into(),
                at: Instant::now(),
            },
        }
    }

    /// The log, if it is open.
    pub(crate) fn opened(&self) -> Option<Arc<Log>> {
        match &*self.state.read() {
            State::Open(log) => Some(Arc::clone(log)),
            _ => None,
        }
    }

    /// Whether the log could not be opened, or has failed since.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(&*self.state.read(), State::Failed { .. })
    }

    fn begun(&self) -> Begun {
        self.logs.begun(&self.topic, self.index, self.topic_id)
    }

    /// Whether there are records, or may be: the log is open, or its folder is not as new.
    pub(crate) fn is_begun(&self) -> bool {
        match &*self.state.read() {
            State::Open(_) | State::Failed { .. } => true,
            State::Deleted => false,
            State::Closed => self.begun() == Begun::Maybe,
        }
    }

    pub(crate) fn set_config(&self, config: &Arc<PartitionConfig>) {
        *self.config.write() = Arc::clone(config);
        if let Some(log) = self.opened() {
            log.set_config(config.log.clone());
        }
    }

    /// Takes the trouble of a log to heart: one that has lost its footing is closed, and opened
    /// again later.
    pub(crate) fn failed(&self, cause: &LogError) {
        if let LogError::DiskFull { .. } = cause {
            self.logs.full(cause);
        }
        if let LogError::Corrupt { .. } = cause {
            let mut damage = self.damage.lock();
            if damage.len() < DAMAGE_REPORTS_MAX && damage.insert(cause.to_string()) {
                error!(
                    "partition {self}: {cause}; records from there on are not readable; \
                     {DAMAGE_ADVICE}"
                );
            }
        }
        // If a flush found no room, it is unknown what is on the device, too.
        let is_lost = self.opened().is_some_and(|log| log.has_failed());
        if !is_lost && !matches!(cause, LogError::FlushFailed | LogError::Io { .. }) {
            return;
        }
        let mut state = self.state.write();
        if let State::Open(log) = &*state {
            // Its files are the next log's.
            log.detach();
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

    /// Opens a partition that has failed once more, when that was some time ago. One that is damaged
    /// stays as it is: an operator has to look at it.
    pub(crate) fn try_again(&self) {
        let is_due = |state: &State| match state {
            State::Failed {
                error: PartitionError::Log(LogError::Corrupt { .. }),
                ..
            } => false,
            State::Failed { at, .. } => at.elapsed() >= REOPEN_INTERVAL,
            _ => false,
        };
        if !is_due(&self.state.read()) {
            return;
        }
        let mut state = self.state.write();
        if let State::Failed { error: before, .. } = &*state
            && is_due(&state)
        {
            let before = before.to_string();
            *state = self.open();
            match &*state {
                State::Open(_) => info!("partition {self} is available again"),
                // The same line every few seconds would only be noise.
                State::Failed { error, .. } if error.to_string() == before => {}
                _ => state.report(self),
            }
        }
    }

    /// Looks whether there is something to do; comes every few seconds.
    ///
    /// Gives back the memory of the newest batches when the log has not grown for some time: their
    /// readers have read them.
    pub(crate) fn look(&self) {
        let Some(log) = self.opened() else { return };
        let (end, now) = (log.end_offset(), Instant::now());
        let mut seen = self.seen.lock();
        if seen.end != end {
            seen.end = end;
            seen.grown_at = now;
        } else if !seen.is_quiet && now - seen.grown_at >= QUIET_AFTER {
            log.drop_cache();
        }
        seen.is_quiet = now - seen.grown_at >= QUIET_AFTER;
    }

    /// Waits until everything before `offset` is on the device that was appended to `log`, which is
    /// this partition's. All who wait at a time share one flush, which runs on a thread of its own.
    ///
    /// A log that has failed may have been opened again meanwhile: what stands at the offset then
    /// may be something else.
    pub(crate) async fn flushed(
        self: &Arc<Self>,
        log: &Arc<Log>,
        offset: i64,
    ) -> Result<(), PartitionError> {
        let mut flushes = self.flushes.subscribe();
        loop {
            flushes.mark_unchanged();
            if log.flushed_offset() >= offset {
                return Ok(());
            }
            if !Arc::ptr_eq(&self.log()?, log) {
                return Err(LogError::FlushFailed.into());
            }
            self.start_flush(log);
            // The sender lives in the partition.
            let _ = flushes.changed().await;
        }
    }

    /// Begins to flush, unless a flush has begun, so that the flushes of several partitions that
    /// are waited for one after the other go on side by side.
    pub(crate) fn flush_soon(self: &Arc<Self>, log: &Arc<Log>, offset: i64) {
        if log.flushed_offset() < offset {
            self.start_flush(log);
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
            if let Err(error) = flushed {
                partition.failed(&error);
            }
            partition.flushes.send_modify(|count| *count += 1);
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

    /// To be called after each append: wakes readers, and sees to what `flush.messages` and
    /// `flush.ms` want. Returns whether the append is to be answered only after a flush: in Kafka
    /// the record with which `flush.messages` is reached is on the device when it is acknowledged,
    /// whatever its producer asked for.
    pub(crate) fn appended(self: &Arc<Self>, log: &Arc<Log>, end: i64) -> bool {
        self.logs.has_room();
        self.wake_readers();
        let config = Arc::clone(&self.config.read());
        let flushes = end - log.flushed_offset() >= config.flush_messages;
        if flushes {
            self.start_flush(log);
        } else if config.flush_ms < FLUSH_MS_MAX {
            self.flush_later(log, config.flush_ms);
        }
        flushes
    }

    /// Flushes in `after_ms`, unless a task is going to already.
    fn flush_later(self: &Arc<Self>, log: &Arc<Log>, after_ms: i64) {
        if self.flushes_later.swap(true, Ordering::AcqRel) {
            return;
        }
        let after = Duration::from_millis(after_ms.max(0) as u64);
        let (partition, log) = (Arc::downgrade(self), Arc::downgrade(log));
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let Some(partition) = partition.upgrade() else {
                return;
            };
            partition.flushes_later.store(false, Ordering::Release);
            if let Some(log) = log.upgrade()
                && log.flushed_offset() < log.end_offset()
            {
                partition.start_flush(&log);
            }
        });
    }

    fn wake_readers(&self) {
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

    /// Closes the log and removes its files. After an error they are left, perhaps in part.
    pub(crate) fn delete(&self) -> std::io::Result<()> {
        let before = std::mem::replace(&mut *self.state.write(), State::Deleted);
        if let State::Open(log) = before {
            log.detach();
        }
        let removed = self.logs.remove(&self.topic, self.index, self.topic_id);
        self.wake_readers();
        removed
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

#[cfg(test)]
mod tests {
    use kohort_log::Origin;
    use kohort_wire::records::{BatchBuilder, Compression};

    use super::*;
    use crate::{
        Broker,
        lines::Lines,
        settings::{BROKER, Values, View},
        topics::{NewTopic, partition_config::partition_config},
    };

    fn append(log: &Log) -> i64 {
        let mut builder = BatchBuilder::new(Compression::None, None);
        builder.append(0, None, Some(b"a"), []).unwrap();
        let batch = builder.finish();
        let appended = log.append(&batch, Origin::Client, crate::LEADER_EPOCH, 0);
        appended.unwrap().last_offset + 1
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_flushed_before_a_failure_is_not_vouched_for_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let broker = Broker::builder().data_dir(folder.path());
        let broker = broker.start().await.unwrap();
        let catalog = &broker.node().catalog;
        let topic = NewTopic {
            name: "t".to_owned(),
            partitions: 1,
            configs: Values::new(),
        };
        let created = catalog.create_topics(vec![topic], 10, false).await;
        let partition = Arc::clone(&created[0].as_ref().unwrap().partitions[0]);
        let log = partition.log().unwrap();
        let end = append(&log);
        partition.failed(&LogError::FlushFailed);
        while partition.opened().is_none() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        // Others have written since, and that is on the device.
        let again = partition.log().unwrap();
        append(&again);
        let flushed = again.flush().unwrap();
        assert!(flushed >= end);
        partition.flushed(&again, flushed).await.unwrap();
        assert!(partition.flushed(&log, end).await.is_err());
        broker.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_partition_that_stays_unavailable_is_reported_once() {
        let (lines, mut log) = tokio::sync::mpsc::unbounded_channel();
        let subscriber = tracing_subscriber::fmt().with_writer(move || Lines(lines.clone()));
        let _logging = tracing::subscriber::set_default(subscriber.finish());
        let folder = tempfile::tempdir().unwrap();
        let broker = Broker::builder().data_dir(folder.path());
        let broker = broker.start().await.unwrap();
        let nothing = Values::new();
        let view = View {
            table: BROKER,
            values: &nothing,
        };
        let config = Arc::new(partition_config("t", &nothing, view, 1 << 20));
        let logs = Arc::clone(&broker.node().catalog.logs);
        let partition = Partition::new("t", 0, Uuid(7), false, config, logs);
        // A file where its folder is to be.
        let file = folder.path().join("t-0");
        std::fs::write(&file, "").unwrap();
        assert!(partition.log().is_err());
        for _ in 0..5 {
            tokio::time::advance(REOPEN_INTERVAL).await;
            partition.try_again();
        }
        std::fs::remove_file(&file).unwrap();
        tokio::time::advance(REOPEN_INTERVAL).await;
        partition.try_again();
        let mut reported = Vec::new();
        while let Ok(line) = log.try_recv() {
            reported.extend(line.contains("available").then_some(line));
        }
        assert_eq!(reported.len(), 2, "{reported:?}");
        assert!(reported[0].contains("not available") && reported[1].contains("available again"));
    }
}
