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
/// The longest name that a file may have, in bytes.
const FILE_NAME_MAX: usize = 255;
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
        prepare(&folder, topic, index, topic_id)
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
        let is_its_own = match owner(&folder) {
            Some(id) => id == topic_id,
            None => is_partition(&folder).unwrap_or(false),
        };
        if !is_its_own {
            return;
        }
        let doomed = folder.with_file_name(aside(topic, index, topic_id, DELETED));
        let removed = fs::rename(&folder, &doomed).and_then(|()| fs::remove_dir_all(&doomed));
        if let Err(error) = removed {
            warn!("removing {}: {error}", folder.display());
        }
    }

    /// Puts aside folders that belong to no topic, and finishes removals that a crash has
    /// interrupted. What is not a partition's is somebody else's, and stays as it is.
    pub(crate) fn tidy(&self, snapshot: &Snapshot) -> io::Result<()> {
        let Some(path) = self.folder() else {
            return Ok(());
        };
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if !entry.file_type()?.is_dir() {
                continue;
            }
            let folder = entry.path();
            let done = match Named::parse(name) {
                Some(Named::Deleted) => fs::remove_dir_all(&folder),
                Some(Named::Partition { topic, index }) => {
                    tidy_partition(&folder, topic, index, snapshot)
                }
                None => continue,
            };
            if let Err(error) = done {
                warn!("folder {name} is not a topic's, and stays where it is: {error}");
            }
        }
        Ok(())
    }
}

/// What a folder is by its name.
enum Named<'a> {
    Partition { topic: &'a str, index: i32 },
    Deleted,
}

impl Named<'_> {
    fn parse(name: &str) -> Option<Named<'_>> {
        if let Some(name) = name.strip_suffix(DELETED) {
            let (partition, id) = name.rsplit_once('.')?;
            let is_ours = partition_of(partition).is_some() && id.parse::<Uuid>().is_ok();
            return is_ours.then_some(Named::Deleted);
        }
        let (topic, index) = partition_of(name)?;
        Some(Named::Partition { topic, index })
    }
}

/// The topic and the partition that a folder is named after.
fn partition_of(name: &str) -> Option<(&str, i32)> {
    let (topic, index) = name.rsplit_once('-')?;
    let index = index.parse().ok().filter(|&index: &i32| index >= 0)?;
    (!topic.is_empty()).then_some((topic, index))
}

fn tidy_partition(folder: &Path, topic: &str, index: i32, snapshot: &Snapshot) -> io::Result<()> {
    let id = owner(folder);
    let known = snapshot.partition(topic, index).ok();
    if known.is_some_and(|known| id.is_none_or(|id| id == known.topic_id)) {
        return Ok(());
    }
    if is_partition(folder)? {
        put_aside(folder, topic, index, id)?;
    }
    Ok(())
}

/// Keeps a folder that is in the way of a partition, or belongs to no topic, for somebody to look at.
fn put_aside(folder: &Path, topic: &str, index: i32, id: Option<Uuid>) -> io::Result<()> {
    let stray = folder.with_file_name(aside(topic, index, id.unwrap_or(Uuid::ZERO), STRAY));
    info!(
        "folder {topic}-{index} belongs to no topic; it is kept as {}",
        stray.display()
    );
    fs::rename(folder, stray)
}

/// The name that the folder of a partition gets when it is no longer one, with as much of the
/// topic's as there is room for: a topic may have as long a name as a file.
fn aside(topic: &str, index: i32, id: Uuid, end: &str) -> String {
    let rest = format!("-{index}.{id}{end}");
    let length = topic.floor_char_boundary(FILE_NAME_MAX - rest.len());
    format!("{}{rest}", &topic[..length])
}

/// Makes the folder of a partition, with Kafka's file that says whose it is, or what a crash has
/// left out of it. The folder of a topic of the same name that could not be removed is put aside.
fn prepare(folder: &Path, topic: &str, index: i32, topic_id: Uuid) -> io::Result<()> {
    match owner(folder) {
        Some(id) if id == topic_id => return Ok(()),
        Some(id) => {
            put_aside(folder, topic, index, Some(id))?;
            fs::create_dir(folder)?;
        }
        None if !folder.exists() => fs::create_dir(folder)?,
        None if is_partition(folder)? => {}
        None => {
            let error = "there is a folder that is not a partition's in its place";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, error));
        }
    }
    let text = format!("version: 0\ntopic_id: {topic_id}");
    fs::write(folder.join(PARTITION_FILE), text)
}

/// Whether a folder that is named like a partition's is one: it says whose it is, or has segments, or
/// a crash came before it had anything.
fn is_partition(folder: &Path) -> io::Result<bool> {
    let mut is_empty = true;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let is_segment = |name: &str| {
            let digits = name.strip_suffix(".log").unwrap_or_default();
            digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        if name == PARTITION_FILE || name.to_str().is_some_and(is_segment) {
            return Ok(true);
        }
        is_empty = false;
    }
    Ok(is_empty)
}

/// The id of the topic that a folder belongs to.
fn owner(folder: &Path) -> Option<Uuid> {
    let text = fs::read_to_string(folder.join(PARTITION_FILE)).ok()?;
    let id = text
        .lines()
        .find_map(|line| line.strip_prefix("topic_id: "))?;
    id.trim().parse().ok()
}
