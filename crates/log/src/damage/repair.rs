//! Giving up what cannot be saved.

use std::sync::Arc;

use super::{
    Damage,
    survey::{Survey, Surveyed},
};
use crate::{
    LogError, Storage, StorageFile,
    checkpoint::Checkpoint,
    files::{self, CHECKPOINT, CLEAN_SHUTDOWN, CLEANED, INDEX, LOG, TIME_INDEX},
    log::complete_swap,
    segment::path,
    storage::{read_file, remove_file, replace_file},
};

/// How much is copied at a time, in bytes.
const CHUNK: usize = 1 << 20;
/// The end of the name under which a file is kept as it was.
const DAMAGED: &str = ".damaged";

/// What [`repair`](super::repair) did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Repaired {
    /// What was given up.
    pub given_up: Vec<Damage>,
    /// The files that hold what the log's files were before.
    pub kept: Vec<String>,
}

pub(super) fn repair(storage: &Arc<dyn Storage>) -> Result<Repaired, LogError> {
    let names = list(storage)?;
    complete_swap(storage, &names)?;
    let survey = Survey::of(storage)?;
    let mut repaired = Repaired {
        given_up: survey.damage.clone(),
        kept: Vec::new(),
    };
    if survey.damage.is_empty() {
        return Ok(repaired);
    }
    // The next start must look at everything.
    remove(storage, CLEAN_SHUTDOWN)?;
    let mut checkpoint = match &survey.checkpoint {
        Some(checkpoint) => checkpoint.clone(),
        None => {
            repaired.kept.push(keep(storage, CHECKPOINT)?);
            Checkpoint::default()
        }
    };
    let first = survey.segments.first().map(|it| it.base_offset);
    checkpoint.start_offset = survey.start_offset.max(first.unwrap_or(survey.end_offset));
    let lost_to = survey.damage.iter().map(|damage| damage.lost.end).max();
    let lost_to = lost_to.unwrap_or(0);
    // Compaction's gaps are not known any more if the checkpoint is not.
    let gaps_to = match survey.checkpoint {
        Some(_) => lost_to,
        None => survey.end_offset,
    };
    checkpoint.flushed_to = checkpoint.flushed_to.max(gaps_to);
    let bases = survey.segments.iter().map(|it| it.base_offset);
    checkpoint.segments = bases.filter(|&base| base < checkpoint.flushed_to).collect();

    if survey.found_end < survey.end_offset || survey.segments.is_empty() {
        // Offsets that were assigned are not assigned again: the log goes on behind them.
        let name = files::of(survey.end_offset, LOG);
        let file = storage
            .create(&name)
            .and_then(|file| file.sync().map(|()| file));
        file.map_err(|e| LogError::io("cannot create", path(storage, &name), e))?;
    }
    // What is torn the next start cuts off.
    let torn = survey.torn.map_or(survey.segments.len(), |(at, _)| at);
    for segment in &survey.segments[..torn] {
        if !segment.salvage.damage.is_empty() {
            let name = files::of(segment.base_offset, LOG);
            repaired.kept.push(keep(storage, &name)?);
            rewrite(storage, segment)?;
        }
    }
    checkpoint
        .store(&**storage)
        .map_err(|e| LogError::io("cannot write", path(storage, CHECKPOINT), e))?;
    storage
        .sync()
        .map_err(|e| LogError::io("cannot flush", storage.name(), e))?;
    Ok(repaired)
}

pub(super) fn begin_at(storage: &Arc<dyn Storage>, start_offset: i64) -> Result<(), LogError> {
    if list(storage)?
        .iter()
        .any(|name| files::offset(name, LOG).is_some())
    {
        return Err(LogError::Corrupt {
            file: storage.name(),
            position: 0,
            reason: "it has segments".to_owned(),
        });
    }
    let start_offset = start_offset.max(0);
    let name = files::of(start_offset, LOG);
    storage
        .create(&name)
        .and_then(|file| file.sync())
        .map_err(|e| LogError::io("cannot create", path(storage, &name), e))?;
    let checkpoint = Checkpoint {
        start_offset,
        flushed_to: start_offset,
        ..Checkpoint::default()
    };
    checkpoint
        .store(&**storage)
        .map_err(|e| LogError::io("cannot write", path(storage, CHECKPOINT), e))
}

fn list(storage: &Arc<dyn Storage>) -> Result<Vec<String>, LogError> {
    let names = storage.list();
    names.map_err(|e| LogError::io("cannot list", storage.name(), e))
}

fn remove(storage: &Arc<dyn Storage>, name: &str) -> Result<(), LogError> {
    remove_file(&**storage, name).map_err(|e| LogError::io("cannot remove", path(storage, name), e))
}

/// Copies a file to a name of its own beside it, durably; returns that.
fn keep(storage: &Arc<dyn Storage>, name: &str) -> Result<String, LogError> {
    let names = list(storage)?;
    let kept = (1..)
        .map(|number| match number {
            1 => format!("{name}{DAMAGED}"),
            _ => format!("{name}{DAMAGED}.{number}"),
        })
        .find(|kept| !names.contains(kept))
        .unwrap_or_default();
    let copy = || {
        if name == CHECKPOINT {
            let bytes = read_file(&**storage, name)?.unwrap_or_default();
            return replace_file(&**storage, &kept, &bytes);
        }
        let (from, to) = (storage.open(name)?, storage.create(&kept)?);
        let size = from.len()?;
        copy_range(&*from, 0, size, &*to, 0)?;
        to.sync()?;
        storage.sync()
    };
    copy().map_err(|e| LogError::io("cannot copy", path(storage, name), e))?;
    Ok(kept)
}

/// Puts a file with the whole batches of the segment in its place.
fn rewrite(storage: &Arc<dyn Storage>, segment: &Surveyed) -> Result<(), LogError> {
    let name = files::of(segment.base_offset, LOG);
    let new = format!("{name}{CLEANED}");
    let write = || {
        let (from, to) = (storage.open(&name)?, storage.create(&new)?);
        let mut end = 0;
        for run in &segment.salvage.runs {
            copy_range(&*from, run.bytes.start, run.bytes.end, &*to, end)?;
            end += run.bytes.end - run.bytes.start;
        }
        if let Some(modified) = from.modified_ms()? {
            to.set_modified_ms(modified)?;
        }
        to.sync()
    };
    write().map_err(|e| LogError::io("cannot write", path(storage, &new), e))?;
    for kind in [INDEX, TIME_INDEX] {
        remove(storage, &files::of(segment.base_offset, kind))?;
    }
    storage
        .rename(&new, &name)
        .and_then(|()| storage.sync())
        .map_err(|e| LogError::io("cannot rename", path(storage, &new), e))
}

fn copy_range(
    from: &dyn StorageFile,
    mut position: u64,
    end: u64,
    to: &dyn StorageFile,
    mut at: u64,
) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    while position < end {
        buffer.clear();
        let length = CHUNK.min((end - position) as usize);
        from.read_at(&mut buffer, position, length)?;
        if buffer.is_empty() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        to.write_at(&buffer, at)?;
        position += buffer.len() as u64;
        at += buffer.len() as u64;
    }
    Ok(())
}
