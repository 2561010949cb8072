//! Examining the files of a log that is not open, and giving up what cannot be saved.
//!
//! [`check`] reads everything and changes nothing. [`repair`] changes no file without keeping what
//! it was beside it, under a name that ends in `.damaged`, and never makes an offset free that was
//! assigned before: where records are lost there is a gap, which consumers pass over.

mod repair;
mod salvage;
mod survey;

use std::{fmt, ops::Range, path::Path, sync::Arc};

pub use repair::Repaired;

use crate::{DiskStorage, LogError, Storage};
use survey::Survey;

/// Something that is wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file concerned, without its folder.
    pub file: String,
    /// Where in it, in bytes.
    pub position: Option<u64>,
    /// What is wrong.
    pub reason: String,
    /// The offsets that are lost with it. Empty if none are.
    pub lost: Range<i64>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(position) = self.position {
            write!(f, " at byte {position}")?;
        }
        write!(f, ": {}", self.reason)?;
        match self.lost.end - self.lost.start {
            ..=0 => Ok(()),
            1 => write!(f, "; offset {} is lost", self.lost.start),
            _ => write!(
                f,
                "; offsets {} to {} are lost",
                self.lost.start,
                self.lost.end - 1
            ),
        }
    }
}

/// What [`check`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Where the log starts.
    pub start_offset: i64,
    /// Where the log ends: the next offset to be assigned.
    pub end_offset: i64,
    /// How many segments there are.
    pub segments: usize,
    /// How many bytes of batches are whole.
    pub bytes: u64,
    /// What is wrong, in the order of offsets.
    pub damage: Vec<Damage>,
    /// Bytes at the end that were never flushed and are not whole. A crash leaves them, and the next
    /// start cuts them off.
    pub unfinished_bytes: u64,
}

/// Examines all files of the log in `folder`, which must not be open anywhere. Changes nothing.
///
/// # Errors
///
/// If the files cannot be read. What is wrong with them is no error.
pub fn check(folder: &Path) -> Result<Checked, LogError> {
    check_storage(&open(folder)?)
}

/// [`check`] for any kind of folder.
pub fn check_storage(storage: &Arc<dyn Storage>) -> Result<Checked, LogError> {
    Ok(Survey::of(storage)?.checked())
}

/// Gives up what [`check`] finds to be lost, and keeps everything else. Afterwards the log can be
/// opened, and has gaps where records are missing.
///
/// # Errors
///
/// If the files cannot be read or written. It can be tried again then.
pub fn repair(folder: &Path) -> Result<Repaired, LogError> {
    repair_storage(&open(folder)?)
}

/// [`repair`] for any kind of folder.
pub fn repair_storage(storage: &Arc<dyn Storage>) -> Result<Repaired, LogError> {
    repair::repair(storage)
}

/// Begins a log without records at `start_offset`, in a folder that has none: for a partition whose
/// folder is lost. Offsets before are never assigned again.
pub fn begin_at(folder: &Path, start_offset: i64) -> Result<(), LogError> {
    repair::begin_at(&open(folder)?, start_offset)
}

fn open(folder: &Path) -> Result<Arc<dyn Storage>, LogError> {
    let name = || folder.display().to_string();
    if !folder.is_dir() {
        let error = std::io::ErrorKind::NotFound.into();
        return Err(LogError::io("cannot open", name(), error));
    }
    let storage = DiskStorage::open(folder).map_err(|e| LogError::io("cannot open", name(), e))?;
    Ok(Arc::new(storage))
}
