//! Opening a log, and what it takes after a crash.

use std::{
    collections::VecDeque,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64},
    },
};

use kohort_wire::records::BatchHeader;
use parking_lot::{Mutex, RwLock};

use super::{Log, View, Writer, compact};
use crate::{
    DiskStorage, LogConfig, LogError, MemoryStorage, Storage,
    cache::TailCache,
    checkpoint::{Checkpoint, CleanShutdown, RecoveryPoint},
    epochs::Epochs,
    files::{self, CHECKPOINT, CLEAN_SHUTDOWN, EPOCHS, LOG, RECOVERY_POINT, SNAPSHOT},
    producers::Producers,
    scan::{ScanError, Scanned},
    segment::{Segment, path},
    snapshot,
    storage::{read_file, remove_file, replace_file},
};

/// How much of an end that may not be on the device is written again at a time, in bytes.
const CHUNK: usize = 1 << 20;

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
        let storage = DiskStorage::open(folder)
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

struct Opening {
    storage: Arc<dyn Storage>,
    config: LogConfig,
    recovery: Recovery,
}

/// Where the end of the log was found.
struct Scan {
    end_offset: i64,
    /// Where the first batch stands that is not known to be durable: segment and position.
    unflushed: Option<(usize, u64)>,
    /// What is to be cut off: from that position of the segment, and all segments behind.
    torn: Option<(usize, u64)>,
}

impl Opening {
    fn open(mut self) -> Result<Log, LogError> {
        let mut names = self.list()?;
        if compact::complete(&self.storage, &names)? {
            names = self.list()?;
        }
        let known = self.checkpoint()?;
        let mut checkpoint = known.unwrap_or_default();
        let (mut recovery_point, point) = RecoveryPoint::open(&*self.storage)
            .map_err(|e| self.io("cannot open", RECOVERY_POINT, e))?;
        // Where a log starts, and up to where it is compacted, it was flushed.
        let point = point
            .max(checkpoint.start_offset)
            .max(checkpoint.flushed_to);
        let bases = self.remove_before_start(&names, checkpoint.start_offset)?;
        let marker = CleanShutdown::load(&*self.storage)
            .map_err(|e| self.io("cannot read", CLEAN_SHUTDOWN, e))?;
        let mut segments = self.segments(&bases)?;
        if let (Some(known), Some(first)) = (known, segments.first())
            && first.base_offset > known.start_offset
        {
            return Err(LogError::Corrupt {
                file: first.name(),
                position: 0,
                reason: format!(
                    "the segments from offset {} on are gone",
                    known.start_offset
                ),
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
        let mut replay = Replay::new(self.snapshots(&names)?, epochs);
        for (at, segment) in segments[..checked_from].iter().enumerate() {
            segment.trust()?;
            let next = segments.get(at + 1).map(|next| next.base_offset).or(clean);
            replay.trusted(segment, next.unwrap_or(i64::MAX), known_epochs)?;
        }
        let end_offset = match clean {
            Some(end_offset) => end_offset,
            None => {
                let scan = self.check(
                    &segments,
                    checked_from,
                    point,
                    checkpoint.flushed_to,
                    &mut replay,
                )?;
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
            // A new log, or one of which nothing is left behind its start.
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

        let view = View {
            segments: segments.into_iter().map(Arc::new).collect(),
            cache: TailCache::new(self.config.cache_bytes),
            epochs: std::mem::take(epochs),
            start_offset,
            end_offset,
        };
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

    fn segments(&self, bases: &[i64]) -> Result<Vec<Segment>, LogError> {
        bases
            .iter()
            .map(|&base| Segment::open(&self.storage, base, self.config.index_interval_bytes))
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

    /// Checks every batch from that segment on, and changes nothing.
    fn check(
        &mut self,
        segments: &[Segment],
        first: usize,
        point: i64,
        gaps_to: i64,
        replay: &mut Replay<'_>,
    ) -> Result<Scan, LogError> {
        let mut scan = Scan {
            end_offset: point.min(segments.get(first).map_or(0, |segment| segment.base_offset)),
            unflushed: None,
            torn: None,
        };
        // Records that follow a gap were not flushed, or the gap is where flushed ones were; only
        // compaction makes other gaps.
        let gap = |offset: i64, next: i64| next != offset && offset >= gaps_to;
        for (at, segment) in segments.iter().enumerate().skip(first) {
            if segment.base_offset < scan.end_offset {
                return Err(LogError::Corrupt {
                    file: segment.name(),
                    position: 0,
                    reason: "it begins before the segment ahead of it ends".to_owned(),
                });
            }
            let size = segment.size();
            if at > first && gap(scan.end_offset, segment.base_offset) {
                self.recovery.bytes_cut_off += size;
                scan.torn = Some((at - 1, segments[at - 1].size()));
                break;
            }
            scan.end_offset = segment.base_offset;
            segment.start_recovery();
            let mut scanner = segment.scan_file(size).checking_crc();
            let ended = loop {
                match scanner.next() {
                    Ok(Some(Scanned {
                        header, position, ..
                    })) => {
                        if gap(scan.end_offset, header.base_offset) {
                            break Some((position, "records are missing before it".to_owned()));
                        }
                        segment.recovered(&header);
                        replay.batch(&header);
                        if header.next_offset() > point {
                            scan.unflushed.get_or_insert((at, position));
                        }
                        scan.end_offset = header.next_offset();
                        self.recovery.bytes_checked += header.size() as u64;
                    }
                    Ok(None) => break None,
                    Err(error @ ScanError::Io(_)) => return Err(segment.scan_error(error)),
                    Err(ScanError::Damaged { position, reason }) => break Some((position, reason)),
                }
            };
            let Some((position, reason)) = ended else {
                continue;
            };
            if scan.end_offset < point {
                return Err(segment.scan_error(ScanError::Damaged { position, reason }));
            }
            self.recovery.bytes_cut_off += size - position;
            scan.torn = Some((at, position));
            break;
        }
        if scan.end_offset < point {
            let last = segments
                .last()
                .map_or_else(|| self.storage.name(), Segment::name);
            return Err(LogError::Corrupt {
                file: last,
                position: segments.last().map_or(0, Segment::size),
                reason: format!(
                    "the log ends at offset {}, but it was flushed up to {point}",
                    scan.end_offset
                ),
            });
        }
        Ok(scan)
    }

    /// Cuts off what is torn, and makes durable what is left.
    fn repair(
        &mut self,
        segments: &mut Vec<Segment>,
        first: usize,
        scan: &Scan,
    ) -> Result<(), LogError> {
        if let Some((at, position)) = scan.torn {
            for segment in segments.drain(at + 1..).rev() {
                segment.remove()?;
                self.recovery.segments_removed += 1;
            }
            let torn = &segments[at];
            torn.file()
                .truncate(position)
                .map_err(|e| LogError::io("cannot cut off", torn.name(), e))?;
        }
        let Some((_, closed)) = segments.get(first..).and_then(<[_]>::split_last) else {
            return Ok(());
        };
        for segment in closed {
            segment.write_index()?;
        }
        if let Some((at, position)) = scan.unflushed {
            // The kernel may hold pages that it once failed to write and now takes for clean:
            // only what is written again is certain to be on the device after a flush.
            let mut position = position;
            for segment in &segments[at..] {
                rewrite(segment, position)
                    .map_err(|e| LogError::io("cannot write", segment.name(), e))?;
                position = 0;
            }
        }
        for (index, segment) in segments.iter().enumerate().skip(first) {
            let closed = index + 1 < segments.len();
            segment
                .sync(closed)
                .map_err(|e| LogError::io("cannot flush", segment.name(), e))?;
        }
        Ok(())
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

/// The segment that `offset` is in, or would be.
fn position(segments: &[Segment], offset: i64) -> usize {
    segments
        .partition_point(|segment| segment.base_offset <= offset)
        .saturating_sub(1)
}

/// Collects what the batches say of producers and epochs.
struct Replay<'a> {
    /// States of the producers ahead, the oldest first: as soon as the log is known to reach one,
    /// it counts.
    snapshots: VecDeque<(i64, Producers)>,
    snapshot_offset: Option<i64>,
    producers: Producers,
    epochs: &'a mut Epochs,
}

impl<'a> Replay<'a> {
    fn new(snapshots: Vec<(i64, Producers)>, epochs: &'a mut Epochs) -> Replay<'a> {
        Replay {
            snapshots: snapshots.into(),
            snapshot_offset: None,
            producers: Producers::default(),
            epochs,
        }
    }

    /// The log has all its batches up to that offset.
    fn reach(&mut self, offset: i64) {
        while let Some((taken, producers)) = self.snapshots.pop_front_if(|next| next.0 <= offset) {
            self.snapshot_offset = Some(taken);
            self.producers = producers;
        }
    }

    fn batch(&mut self, header: &BatchHeader) {
        self.reach(header.base_offset);
        self.producers.replay(header);
        self.epochs
            .assign(header.partition_leader_epoch, header.base_offset);
    }

    /// A segment that is not checked, whose batches all are below `next`.
    fn trusted(
        &mut self,
        segment: &Segment,
        next: i64,
        known_epochs: bool,
    ) -> Result<(), LogError> {
        let from = if known_epochs {
            // All there is to know of it may be in a snapshot; at least of a part of it.
            self.reach(next);
            match self.snapshot_offset {
                Some(offset) if offset >= next => return Ok(()),
                Some(offset) => segment.position(offset)?,
                None => 0,
            }
        } else {
            0
        };
        let mut scanner = segment.scan(from);
        while let Some(batch) = scanner.next().map_err(|e| segment.scan_error(e))? {
            if self
                .snapshot_offset
                .is_none_or(|offset| offset <= batch.header.base_offset)
            {
                self.batch(&batch.header);
            } else {
                let header = &batch.header;
                self.epochs
                    .assign(header.partition_leader_epoch, header.base_offset);
            }
        }
        Ok(())
    }
}

fn rewrite(segment: &Segment, mut position: u64) -> io::Result<()> {
    let end = segment.size();
    let mut buffer = Vec::new();
    while position < end {
        buffer.clear();
        let length = CHUNK.min((end - position) as usize);
        segment.file().read_at(&mut buffer, position, length)?;
        if buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        segment.file().write_at(&buffer, position)?;
        position += buffer.len() as u64;
    }
    Ok(())
}
