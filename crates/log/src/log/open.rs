//! Opening a log, and what it takes after a crash.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64},
    },
};

use parking_lot::{Mutex, RwLock};

use super::{Log, Writer, replay::Replay, swap, view::View};
use crate::{
    DiskStorage, LogConfig, LogError, MemoryStorage, OpenFiles, Storage,
    checkpoint::{Checkpoint, CleanShutdown, RecoveryPoint},
    epochs::Epochs,
    files::{self, CHECKPOINT, CLEAN_SHUTDOWN, EPOCHS, LOG, RECOVERY_POINT, SNAPSHOT},
    producers::Producers,
    segment::{Segment, path},
    snapshot,
    storage::{read_file, remove_file, replace_file},
};

/// What opening a log had to do after it was not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovery {
    /// The log was closed properly: nothing had to be done.
    pub clean: bool,
    /// How many bytes were checked against their checksums.
    pub bytes_checked: u64,
    /// How many bytes were cut off: the end of what had not been flushed.
    pub bytes_cut_off: u64,
    /// Segments removed because they came behind a torn one. Nothing in them had been flushed.
    pub segments_removed: usize,
}

impl Log {
    /// Opens the log in the folder (`<topic>-<partition>`), or makes a new one. Nobody else may
    /// have it open: see [`FolderLock`](crate::FolderLock).
    ///
    /// # Errors
    ///
    /// [`LogError::Corrupt`] if something that was flushed is damaged (nothing is changed then),
    /// or trouble with the disk.
    pub fn open(folder: &Path, config: LogConfig) -> Result<Log, LogError> {
        Log::open_within(folder, OpenFiles::unlimited(), config)
    }

    /// Opens the log as [`open`](Log::open) does, within a budget of open files.
    pub fn open_within(
        folder: &Path,
        files: Arc<OpenFiles>,
        config: LogConfig,
    ) -> Result<Log, LogError> {
        let storage = DiskStorage::with_files(folder, files)
            .map_err(|e| LogError::io("cannot open", folder.display().to_string(), e))?;
        Log::with_storage(Arc::new(storage), config)
    }

    /// A log in memory, gone when it is dropped. It behaves as one on disk.
    pub fn in_memory(config: LogConfig) -> Log {
        Log::with_storage(Arc::new(MemoryStorage::new()), config)
            .expect("memory has no trouble with the disk")
    }

    /// The log in any kind of folder.
    pub fn with_storage(storage: Arc<dyn Storage>, config: LogConfig) -> Result<Log, LogError> {
        Opening {
            storage,
            config,
            recovery: Recovery::default(),
        }
        .open()
    }
}

pub(super) struct Opening {
    pub(super) storage: Arc<dyn Storage>,
    config: LogConfig,
    pub(super) recovery: Recovery,
}

impl Opening {
    fn open(mut self) -> Result<Log, LogError> {
        let mut names = self.list()?;
        if swap::complete(&self.storage, &names)? {
            names = self.list()?;
        }
        let known = self.checkpoint()?;
        let mut checkpoint = known.clone().unwrap_or_default();
        // Kafka keeps elsewhere how far a log is compacted: in one that it wrote, any gap may be
        // one that compaction made.
        let is_foreign = known.is_none() && !names.iter().any(|name| name == RECOVERY_POINT);
        let (mut recovery_point, point) = RecoveryPoint::open(&*self.storage)
            .map_err(|e| self.io("cannot open", RECOVERY_POINT, e))?;
        // Where a log starts, and up to where it is compacted, it was flushed.
        let point = point
            .max(checkpoint.start_offset)
            .max(checkpoint.flushed_to);
        let bases = self.remove_before_start(&names, checkpoint.start_offset)?;
        let marker = CleanShutdown::load(&*self.storage)
            .map_err(|e| self.io("cannot read", CLEAN_SHUTDOWN, e))?;
        let gaps_to = if is_foreign {
            i64::MAX
        } else {
            checkpoint.flushed_to
        };
        let mut segments = self.segments(&bases, gaps_to)?;
        if let (Some(known), Some(first)) = (&known, segments.first())
            && first.base_offset > known.start_offset
        {
            return Err(missing(first.name(), known.start_offset, first.base_offset));
        }
        if known.is_none()
            && !is_foreign
            && let Some(first) = segments.first()
            && first.base_offset > 0
        {
            return Err(missing(first.name(), 0, first.base_offset));
        }
        if let Some(base) = checkpoint.missing_segment(&bases) {
            let name = path(&self.storage, &files::of(base, LOG));
            return Err(LogError::Corrupt {
                file: name,
                position: 0,
                reason: "the segment is missing".to_owned(),
            });
        }
        let clean = self.is_clean(&segments, marker, point);
        self.recovery.clean = clean.is_some();

        let mut epochs = self.epochs()?;
        let known_epochs = epochs.is_some();
        let epochs = epochs.get_or_insert_default();
        let checked_from = match clean {
            Some(_) => segments.len(),
            None => position(&segments, point),
        };
        for pair in segments[..(checked_from + 1).min(segments.len())].windows(2) {
            let [segment, next] = pair else { continue };
            // What compaction may have removed is not missing.
            if next.base_offset > gaps_to
                && let Some(end) = segment.closed_end()?
                && end != next.base_offset
            {
                return Err(missing(next.name(), end, next.base_offset));
            }
        }
        let mut replay = Replay::new(self.snapshots(&names)?, epochs);
        for (at, segment) in segments[..checked_from].iter().enumerate() {
            segment.trust()?;
            let next = segments.get(at + 1).map(|next| next.base_offset).or(clean);
            replay.trusted(segment, next.unwrap_or(i64::MAX), known_epochs)?;
        }
        let end_offset = match clean {
            Some(end_offset) => end_offset,
            None => {
                let scan = self.check(&segments, checked_from, point, gaps_to, &mut replay)?;
                self.repair(&mut segments, checked_from, &scan)?;
                remove_file(&*self.storage, CLEAN_SHUTDOWN)
                    .map_err(|e| self.io("cannot remove", CLEAN_SHUTDOWN, e))?;
                scan.end_offset
            }
        };
        replay.reach(end_offset);
        let (producers, snapshot_offset) = (replay.producers, replay.snapshot_offset);
        self.remove_snapshots(&names, snapshot_offset, end_offset)?;
        if !self.recovery.clean && !names.is_empty() {
            // What was removed must not come back when the log has grown beyond it.
            self.storage
                .sync()
                .map_err(|e| LogError::io("cannot flush", self.storage.name(), e))?;
        }
        epochs.truncate_end(end_offset);
        if !known_epochs && epochs.latest().is_some() {
            replace_file(&*self.storage, EPOCHS, epochs.encode().as_bytes())
                .map_err(|e| self.io("cannot write", EPOCHS, e))?;
        }

        let mut start_offset = checkpoint.start_offset;
        let mut end_offset = end_offset;
        if let Some(first) = segments.first() {
            start_offset = start_offset.max(first.base_offset);
        }
        if segments.is_empty() || start_offset > end_offset {
            // A new log, or one that has no records after its start.
            for segment in segments.drain(..) {
                segment.remove()?;
            }
            end_offset = start_offset;
            segments.push(self.create(start_offset)?);
        }
        if let Some(active) = segments.last()
            && self.recovery.clean
        {
            active.load_index()?;
        }
        recovery_point
            .store(end_offset)
            .map_err(|e| self.io("cannot write", RECOVERY_POINT, e))?;
        checkpoint.start_offset = start_offset;
        if is_foreign && !bases.is_empty() {
            // From now on gaps are known to be compaction's only up to here.
            checkpoint.flushed_to = segments.last().map_or(0, |active| active.base_offset);
            let closed = segments.split_last().map_or(&[][..], |(_, closed)| closed);
            checkpoint.segments = closed.iter().map(|segment| segment.base_offset).collect();
            checkpoint
                .store(&*self.storage)
                .map_err(|e| self.io("cannot write", CHECKPOINT, e))?;
        }

        let view = View::new(
            segments.into_iter().map(Arc::new).collect(),
            self.config.cache_bytes,
            std::mem::take(epochs),
            start_offset,
            end_offset,
        );
        let writer = Writer {
            producers,
            untidy: false,
            segment_began_ms: None,
            marked_clean: self.recovery.clean,
        };
        Ok(Log {
            storage: self.storage,
            config: RwLock::new(Arc::new(self.config)),
            writer: Mutex::new(writer),
            view: RwLock::new(view),
            flush: Mutex::new(recovery_point),
            maintenance: Mutex::new(checkpoint),
            flushed: AtomicI64::new(end_offset),
            flush_failed: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            recovery: self.recovery,
        })
    }

    fn io(&self, action: &'static str, name: &str, error: io::Error) -> LogError {
        LogError::io(action, path(&self.storage, name), error)
    }

    fn list(&self) -> Result<Vec<String>, LogError> {
        self.storage
            .list()
            .map_err(|e| LogError::io("cannot list", self.storage.name(), e))
    }

    fn checkpoint(&self) -> Result<Option<Checkpoint>, LogError> {
        Checkpoint::load(&*self.storage).map_err(|error| match error {
            Some(error) => self.io("cannot read", CHECKPOINT, error),
            None => LogError::Corrupt {
                file: path(&self.storage, CHECKPOINT),
                position: 0,
                reason: "it is not what was written there".to_owned(),
            },
        })
    }

    /// Removes the segments that a deletion left behind; returns where the others begin.
    fn remove_before_start(&self, names: &[String], start: i64) -> Result<Vec<i64>, LogError> {
        let mut bases: Vec<i64> = names
            .iter()
            .filter_map(|name| files::offset(name, LOG))
            .collect();
        bases.sort_unstable();
        let gone = bases
            .partition_point(|&base| base <= start)
            .saturating_sub(1);
        for base in bases.drain(..gone) {
            for kind in [LOG, files::INDEX, files::TIME_INDEX] {
                let name = files::of(base, kind);
                remove_file(&*self.storage, &name)
                    .map_err(|e| self.io("cannot remove", &name, e))?;
            }
        }
        Ok(bases)
    }

    fn segments(&self, bases: &[i64], gaps_to: i64) -> Result<Vec<Segment>, LogError> {
        let interval = self.config.index_interval_bytes;
        bases
            .iter()
            .map(|&base| Segment::open(&self.storage, base, interval, base >= gaps_to))
            .collect()
    }

    /// Where the log ends, if it is as it was closed.
    fn is_clean(
        &self,
        segments: &[Segment],
        marker: Option<CleanShutdown>,
        point: i64,
    ) -> Option<i64> {
        let (marker, last) = (marker?, segments.last()?);
        let same = marker.base_offset == last.base_offset
            && marker.size == last.size()
            && marker.end_offset >= point;
        same.then_some(marker.end_offset)
    }

    fn epochs(&self) -> Result<Option<Epochs>, LogError> {
        let bytes =
            read_file(&*self.storage, EPOCHS).map_err(|e| self.io("cannot read", EPOCHS, e))?;
        // A damaged one is made anew from the batches.
        Ok(bytes.and_then(|bytes| Epochs::decode(&bytes)))
    }

    /// The states of the producers that are whole, the oldest first.
    fn snapshots(&self, names: &[String]) -> Result<Vec<(i64, Producers)>, LogError> {
        let mut snapshots = Vec::new();
        for name in names {
            let Some(offset) = files::offset(name, SNAPSHOT) else {
                continue;
            };
            let bytes =
                read_file(&*self.storage, name).map_err(|e| self.io("cannot read", name, e))?;
            if let Some(producers) = bytes.and_then(|bytes| snapshot::decode(&bytes)) {
                snapshots.push((offset, producers));
            }
        }
        snapshots.sort_unstable_by_key(|&(offset, _)| offset);
        Ok(snapshots)
    }

    /// Removes the states of producers that are damaged, that the log does not reach, or that are
    /// older than the one that was used; that one is made durable.
    fn remove_snapshots(
        &self,
        names: &[String],
        used: Option<i64>,
        end_offset: i64,
    ) -> Result<(), LogError> {
        if let Some(used) = used
            && !self.recovery.clean
        {
            let name = files::of(used, SNAPSHOT);
            self.storage
                .open(&name)
                .and_then(|file| file.sync())
                .map_err(|e| self.io("cannot flush", &name, e))?;
        }
        for name in names {
            let Some(offset) = files::offset(name, SNAPSHOT) else {
                continue;
            };
            // Newer ones than the one that was used are damaged.
            if Some(offset) != used || offset > end_offset {
                remove_file(&*self.storage, name).map_err(|e| self.io("cannot remove", name, e))?;
            }
        }
        Ok(())
    }

    fn create(&self, base_offset: i64) -> Result<Segment, LogError> {
        let interval = self.config.index_interval_bytes;
        Segment::create(&self.storage, base_offset, "", interval)
    }
}

fn missing(file: String, from: i64, to: i64) -> LogError {
    LogError::Corrupt {
        file,
        position: 0,
        reason: format!(
            "the records before it are missing, from offset {from} to {}",
            to - 1
        ),
    }
}

/// The segment that `offset` is in, or would be.
fn position(segments: &[Segment], offset: i64) -> usize {
    segments
        .partition_point(|segment| segment.base_offset <= offset)
        .saturating_sub(1)
}
