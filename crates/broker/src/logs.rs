//! Where the partitions' logs are: a folder for each, or memory.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use kohort_log::{FolderLock, Log, LogConfig, LogError};
use kohort_wire::Uuid;
use parking_lot::Mutex;
use tracing::{error, info, warn};

use crate::topics::{Snapshot, sync_folder};

/// The end of a folder's name that is about to be removed.
const DELETED: &str = "-delete";
/// The end of a folder's name that belongs to no topic; kept for somebody to look at.
const STRAY: &str = "-stray";
/// Nothing was refused for so long: there is room again.
const ROOM_AFTER: Duration = Duration::from_secs(2);
/// Kafka's file that says whose a folder is.
const PARTITION_FILE: &str = "partition.metadata";

/// Where the partitions' logs are.
#[derive(Debug)]
pub(crate) struct Logs {
    place: Place,
    is_full: AtomicBool,
    refused_at: Mutex<Instant>,
}

#[derive(Debug)]
enum Place {
    Memory,
    Folder { path: PathBuf, _lock: FolderLock },
}

impl Logs {
    pub(crate) fn in_memory() -> Logs {
        Logs::new(Place::Memory)
    }

    pub(crate) fn in_folder(path: PathBuf, lock: FolderLock) -> Logs {
        Logs::new(Place::Folder { path, _lock: lock })
    }

    fn new(place: Place) -> Logs {
        Logs {
            place,
            is_full: AtomicBool::new(false),
            refused_at: Mutex::new(Instant::now()),
        }
    }

    /// Says that the disk is full, once for all partitions.
    pub(crate) fn full(&self, error: &LogError) {
        *self.refused_at.lock() = Instant::now();
        if !self.is_full.swap(true, Ordering::Relaxed) {
            error!("{error}; records are refused until there is room, reads go on");
        }
    }

    /// To be called after each append: says that there is room again. Next to a large batch that is
    /// refused a small one may find its place; so that has to be some time ago.
    pub(crate) fn has_room(&self) {
        if self.is_full.load(Ordering::Relaxed)
            && self.refused_at.lock().elapsed() >= ROOM_AFTER
            && self.is_full.swap(false, Ordering::Relaxed)
        {
            info!("there is room on the disk again");
        }
    }

    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::Memory => None,
            Place::Folder { path, .. } => Some(path),
        }
    }

    fn partition_folder(&self, topic: &str, index: i32) -> Option<PathBuf> {
        self.folder()
            .map(|folder| folder.join(format!("{topic}-{index}")))
    }

    /// Whether a partition has a folder.
    pub(crate) fn exists(&self, topic: &str, index: i32) -> bool {
        self.partition_folder(topic, index)
            .is_some_and(|folder| folder.exists())
    }

    /// Opens the log of a partition, or begins it.
    pub(crate) fn open(
        &self,
        topic: &str,
        index: i32,
        topic_id: Uuid,
        config: LogConfig,
    ) -> Result<Log, LogError> {
        let Some(folder) = self.partition_folder(topic, index) else {
            return Ok(Log::in_memory(config));
        };
        prepare(&folder, topic_id)
            .map_err(|error| LogError::io("cannot create", folder.display().to_string(), error))?;
        let log = Log::open(&folder, config)?;
        let recovery = log.recovery();
        if recovery.bytes_cut_off > 0 {
            warn!(
                "{topic}-{index}: {} bytes that a crash had left unfinished were cut off",
                recovery.bytes_cut_off
            );
        }
        Ok(log)
    }

    /// Makes durable which partitions have folders.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.folder().map_or(Ok(()), sync_folder)
    }

    /// Removes the files of a partition. A crash in the middle leaves a folder whose name says that
    /// it is to go.
    pub(crate) fn remove(&self, topic: &str, index: i32, topic_id: Uuid) {
        let Some(folder) = self.partition_folder(topic, index) else {
            return;
        };
        if !folder.exists() {
            return;
        }
        let doomed = folder.with_file_name(format!("{topic}-{index}.{topic_id}{DELETED}"));
        let removed = fs::rename(&folder, &doomed).and_then(|()| fs::remove_dir_all(&doomed));
        if let Err(error) = removed {
            warn!("removing {}: {error}", folder.display());
        }
    }

    /// Puts aside folders that belong to no topic, and finishes removals that a crash has
    /// interrupted.
    pub(crate) fn tidy(&self, snapshot: &Snapshot) -> io::Result<()> {
        let Some(path) = self.folder() else {
            return Ok(());
        };
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if !entry.file_type()?.is_dir() || name.ends_with(STRAY) {
                continue;
            }
            if name.ends_with(DELETED) {
                fs::remove_dir_all(entry.path())?;
                continue;
            }
            let Some((topic, index)) = name.rsplit_once('-') else {
                continue;
            };
            let Ok(index) = index.parse::<i32>() else {
                continue;
            };
            let id = owner(&entry.path());
            let known = snapshot.partition(topic, index).ok();
            if known.is_none_or(|known| id.is_some_and(|id| id != known.topic_id)) {
                let id = id.unwrap_or(Uuid::ZERO);
                let stray = entry.path().with_file_name(format!("{name}.{id}{STRAY}"));
                info!(
                    "folder {name} belongs to no topic; it is kept as {}",
                    stray.display()
                );
                fs::rename(entry.path(), stray)?;
            }
        }
        Ok(())
    }
}

/// Makes the folder of a partition, with Kafka's file that says whose it is, or what a crash has
/// left out of it.
fn prepare(folder: &Path, topic_id: Uuid) -> io::Result<()> {
    if owner(folder).is_some() {
        return Ok(());
    }
    if !folder.exists() {
        fs::create_dir(folder)?;
    }
    let text = format!("version: 0\ntopic_id: {topic_id}");
    fs::write(folder.join(PARTITION_FILE), text)
}

/// The id of the topic that a folder belongs to.
fn owner(folder: &Path) -> Option<Uuid> {
    let text = fs::read_to_string(folder.join(PARTITION_FILE)).ok()?;
    let id = text
        .lines()
        .find_map(|line| line.strip_prefix("topic_id: "))?;
    id.trim().parse().ok()
}
