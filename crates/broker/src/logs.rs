//! Where the partitions' logs are: a folder for each, or memory.

use std::{
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use kohort_log::{Log, LogConfig, LogError};
use kohort_wire::Uuid;
use parking_lot::Mutex;
use tracing::{error, info, warn};

use crate::{
    data_folder::{DataFolder, is_segment},
    topics::{DeletedTopic, Snapshot},
};

/// The end of a folder's name that is about to be removed.
const DELETED: &str = "-delete";
/// The longest name that a file may have, in bytes.
const FILE_NAME_MAX: usize = 255;
/// Nothing was refused for so long: there is room again.
const ROOM_AFTER: Duration = Duration::from_secs(2);
/// Kafka's file that says whose a folder is.
const PARTITION_FILE: &str = "partition.metadata";
/// How many folders that belong to no topic are named in the log.
const STRAYS_NAMED_MAX: usize = 10;

/// Where the partitions' logs are.
#[derive(Debug)]
pub(crate) struct Logs {
    /// `None`: in memory.
    folder: Option<Arc<DataFolder>>,
    is_full: AtomicBool,
    refused_at: Mutex<Instant>,
}

/// What the folder of a partition looks like before its log is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It has no records, and never had any.
    No,
    /// It has records, or something is wrong with it.
    Maybe,
}

impl Logs {
    pub(crate) fn in_memory() -> Logs {
        Logs::new(None)
    }

    pub(crate) fn in_folder(folder: Arc<DataFolder>) -> Logs {
        Logs::new(Some(folder))
    }

    fn new(folder: Option<Arc<DataFolder>>) -> Logs {
        Logs {
            folder,
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

    /// The data folder, unless everything is in memory.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| folder.path())
    }

    /// Closes the files that have not been used since the last call.
    pub(crate) fn close_idle_files(&self) {
        if let Some(folder) = &self.folder {
            folder.files().close_idle();
        }
    }

    #[cfg(test)]
    pub(crate) fn data_folder(&self) -> &DataFolder {
        self.folder.as_ref().expect("the data is in a folder")
    }

    /// Whether a partition that is not open has, or may have, records.
    pub(crate) fn begun(&self, topic: &str, index: i32, topic_id: Uuid) -> Begun {
        let Some(folder) = &self.folder else {
            return Begun::No;
        };
        let folder = folder.path().join(folder_name(topic, index));
        match (owner(&folder), has_segments(&folder)) {
            (Some(id), Ok(false)) if id == topic_id => Begun::No,
            _ => Begun::Maybe,
        }
    }

    /// Creates the folders of a topic's new partitions, or none of them. [`sync`](Logs::sync) makes
    /// them durable.
    pub(crate) fn create(
        &self,
        topic: &str,
        topic_id: Uuid,
        partitions: Range<i32>,
        is_deleted: impl Fn(Uuid) -> bool,
    ) -> io::Result<()> {
        let Some(data) = &self.folder else {
            return Ok(());
        };
        for index in partitions.clone() {
            let folder = data.path().join(folder_name(topic, index));
            if let Err(error) = create(data, &folder, topic_id, &is_deleted) {
                self.undo_create(topic, topic_id, partitions.start..index + 1);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes folders that were created for a change that was not made after all. One that cannot
    /// be removed is empty, and does no harm.
    pub(crate) fn undo_create(&self, topic: &str, topic_id: Uuid, partitions: Range<i32>) {
        for index in partitions {
            let Some(folder) = self.partition_folder(topic, index) else {
                return;
            };
            let is_new = matches!(owner(&folder), Some(id) if id == topic_id);
            if is_new && matches!(has_segments(&folder), Ok(false)) {
                let _ = fs::remove_file(folder.join(PARTITION_FILE));
                let _ = fs::remove_dir(&folder);
            }
        }
    }

    fn partition_folder(&self, topic: &str, index: i32) -> Option<PathBuf> {
        self.folder()
            .map(|folder| folder.join(folder_name(topic, index)))
    }

    /// Opens the log of a partition. If `has_folder`, its folder was created with the topic, and
    /// that it is missing means that its records are.
    pub(crate) fn open(
        &self,
        topic: &str,
        index: i32,
        topic_id: Uuid,
        has_folder: bool,
        config: LogConfig,
    ) -> Result<Log, LogError> {
        let Some(data) = &self.folder else {
            return Ok(Log::in_memory(config));
        };
        let folder = data.path().join(folder_name(topic, index));
        prepare(data, &folder, topic_id, has_folder)?;
        let log = Log::open_within(&folder, Arc::clone(data.files()), config)?;
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
        self.folder.as_ref().map_or(Ok(()), |folder| folder.sync())
    }

    /// Removes the files of a partition of a deleted topic. A crash in the middle leaves a folder
    /// whose name says that it is to go.
    pub(crate) fn remove(&self, topic: &str, index: i32, topic_id: Uuid) -> io::Result<()> {
        let Some(data) = &self.folder else {
            return Ok(());
        };
        let folder = data.path().join(folder_name(topic, index));
        let removed = match owner(&folder) {
            Some(id) if id == topic_id => discard(data, &folder, topic, index, topic_id),
            Some(_) => Ok(()),
            None if !folder.exists() => Ok(()),
            // A power failure may have taken the file that says whose it is.
            None => match is_partition(&folder) {
                Ok(true) => discard(data, &folder, topic, index, topic_id),
                Ok(false) => Ok(()),
                Err(error) => Err(error),
            },
        };
        removed.inspect_err(|error| {
            warn!("removing {}, which is deleted: {error}", folder.display());
        })
    }

    /// Removes what is left of deleted topics. Returns whether nothing is.
    pub(crate) fn remove_topic(&self, id: Uuid, deleted: &DeletedTopic) -> bool {
        let Some(data) = &self.folder else {
            return true;
        };
        let mut is_gone = true;
        for index in 0..deleted.partitions {
            let folder = data.path().join(folder_name(&deleted.name, index));
            if owner(&folder) == Some(id) {
                let removed = discard(data, &folder, &deleted.name, index, id);
                is_gone &= removed.is_ok();
            }
        }
        is_gone
    }

    /// Finishes removals that a crash has interrupted, and names the folders that look like
    /// partitions and belong to no topic. They stay as they are: someone may need their records.
    pub(crate) fn tidy(&self, snapshot: &Snapshot) -> io::Result<()> {
        let Some(data) = &self.folder else {
            return Ok(());
        };
        let mut strays = Vec::new();
        for entry in fs::read_dir(data.path())? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if !entry.file_type()?.is_dir() {
                continue;
            }
            let folder = entry.path();
            match Named::parse(name) {
                Some(Named::Deleted) => {
                    if let Err(error) = data.remove_tree(&folder) {
                        warn!("removing {}: {error}", folder.display());
                    }
                }
                Some(Named::Partition { topic, index }) => {
                    let id = owner(&folder);
                    let known = snapshot.partition(topic, index).ok();
                    let is_known =
                        known.is_some_and(|known| id.is_none_or(|id| id == known.topic_id));
                    if !is_known && has_segments(&folder)? {
                        strays.push(name.to_owned());
                    }
                }
                None => {}
            }
        }
        report_strays(data.path(), strays);
        Ok(())
    }
}

fn report_strays(folder: &Path, mut strays: Vec<String>) {
    if strays.is_empty() {
        return;
    }
    strays.sort();
    let count = strays.len();
    strays.truncate(STRAYS_NAMED_MAX);
    let more = match count - strays.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    warn!(
        "{count} folders in {} look like partitions but belong to no topic of this broker; they \
         are left as they are, and may be moved away or removed: {}{more}",
        folder.display(),
        strays.join(", ")
    );
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

pub(crate) fn folder_name(topic: &str, index: i32) -> String {
    format!("{topic}-{index}")
}

/// The topic and the partition that a folder is named after.
fn partition_of(name: &str) -> Option<(&str, i32)> {
    let (topic, index) = name.rsplit_once('-')?;
    let index = index.parse().ok().filter(|&index: &i32| index >= 0)?;
    (!topic.is_empty()).then_some((topic, index))
}

/// Removes the folder of a partition: its name is free at once, and its files may take a while.
fn discard(data: &DataFolder, folder: &Path, topic: &str, index: i32, id: Uuid) -> io::Result<()> {
    let doomed = folder.with_file_name(doomed(topic, index, id));
    data.rename(folder, &doomed)?;
    // The next start removes it otherwise.
    if let Err(error) = data.remove_tree(&doomed) {
        warn!("removing {}: {error}", doomed.display());
    }
    Ok(())
}

/// The name of a partition's folder that is to be removed, with as much of the topic's name as
/// there is room for: a topic may have as long a name as a file.
fn doomed(topic: &str, index: i32, id: Uuid) -> String {
    let rest = format!("-{index}.{id}{DELETED}");
    let length = topic.floor_char_boundary(FILE_NAME_MAX - rest.len());
    format!("{}{rest}", &topic[..length])
}

/// Creates the folder of a new partition, with Kafka's file that says whose it is.
fn create(
    data: &DataFolder,
    folder: &Path,
    topic_id: Uuid,
    is_deleted: impl Fn(Uuid) -> bool,
) -> io::Result<()> {
    if folder.exists() {
        let in_the_way = || {
            let error = format!(
                "{} is in the way: it belongs to no topic of this broker; move it away or remove it",
                folder.display()
            );
            io::Error::new(io::ErrorKind::AlreadyExists, error)
        };
        let id = owner(folder);
        if !folder.is_dir() {
            return Err(in_the_way());
        } else if let Some(id) = id.filter(|&id| is_deleted(id)) {
            let (topic, index) = folder
                .file_name()
                .and_then(|name| name.to_str())
                .and_then(partition_of)
                .ok_or_else(in_the_way)?;
            discard(data, folder, topic, index, id)?;
            data.create_folder(folder)?;
        } else if !is_unused(folder)? {
            return Err(in_the_way());
        }
        // Otherwise a change that was interrupted has left it, without a single record.
    } else {
        data.create_folder(folder)?;
    }
    write_owner(data, folder, topic_id)
}

/// Looks whether the folder of a partition is as it has to be, and puts right what a crash may have
/// left undone.
fn prepare(
    data: &DataFolder,
    folder: &Path,
    topic_id: Uuid,
    has_folder: bool,
) -> Result<(), LogError> {
    let name = || folder.display().to_string();
    let failed = |error| LogError::io("cannot open", name(), error);
    let corrupt = |reason: &str| LogError::Corrupt {
        file: name(),
        position: 0,
        reason: reason.to_owned(),
    };
    match owner(folder) {
        Some(id) if id == topic_id => Ok(()),
        Some(id) => Err(corrupt(&format!(
            "it holds the records of another topic, with the id {id}"
        ))),
        None if !folder.exists() && has_folder => Err(corrupt(
            "the folder is missing, and the partition's records with it",
        )),
        None if !folder.exists() => {
            data.create_folder(folder).map_err(failed)?;
            write_owner(data, folder, topic_id).map_err(failed)?;
            // Before the first record in it is said to be durable.
            data.sync().map_err(failed)
        }
        // After a power failure the file may be missing or empty.
        None if is_partition(folder).map_err(failed)? => {
            write_owner(data, folder, topic_id).map_err(failed)
        }
        None => Err(failed(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a folder that is not a partition's in its place",
        ))),
    }
}

pub(crate) fn write_owner(data: &DataFolder, folder: &Path, topic_id: Uuid) -> io::Result<()> {
    let text = format!("version: 0\ntopic_id: {topic_id}");
    data.write_into(folder, PARTITION_FILE, text.as_bytes())
}

/// Whether a folder that is named like a partition's is one: it says whose it is, or has segments, or
/// a crash came before it had anything.
fn is_partition(folder: &Path) -> io::Result<bool> {
    Ok(folder.join(PARTITION_FILE).exists() || has_segments(folder)? || is_unused(folder)?)
}

/// Whether a folder holds nothing that anybody could miss.
fn is_unused(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if entry?.file_name() != PARTITION_FILE {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a folder has files with records.
fn has_segments(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if entry?.file_name().to_str().is_some_and(is_segment) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The id of the topic that a folder belongs to.
fn owner(folder: &Path) -> Option<Uuid> {
    let text = fs::read_to_string(folder.join(PARTITION_FILE)).ok()?;
    let id = text
        .lines()
        .find_map(|line| line.strip_prefix("topic_id: "))?;
    id.trim().parse().ok()
}
