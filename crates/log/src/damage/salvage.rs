//! Finding the batches of a segment that are whole, also behind damage.

use std::{io, ops::Range};

use kohort_wire::records::{BatchHeader, HEADER_LENGTH};

use crate::{
    scan::{ScanError, Scanner},
    storage::StorageFile,
};

/// How much is searched at a time, in bytes.
const WINDOW: usize = 1 << 20;

/// A run of whole batches without damage in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) bytes: Range<u64>,
    pub(super) offsets: Range<i64>,
}

/// What a segment's file holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Salvage {
    pub(super) runs: Vec<Run>,
    /// Where damage begins, and what it is; in front of a run, or behind the last one.
    pub(super) damage: Vec<(u64, String)>,
}

/// Looks for whole batches with offsets from `base` to before `below`. `ends_at` is where the last
/// one ends in a whole log, and `is_dense` says that compaction has left no gaps between them.
pub(super) fn salvage(
    file: &dyn StorageFile,
    base: i64,
    below: i64,
    ends_at: i64,
    is_dense: bool,
) -> io::Result<Salvage> {
    let size = file.len()?;
    let mut found = Salvage::default();
    let (mut position, mut expected) = (0, base);
    while position < size {
        let mut run = Run {
            bytes: position..position,
            offsets: expected..expected,
        };
        let mut batches = 0;
        let mut scanner = Scanner::new(file, position, size, expected).checking_crc();
        let reason = loop {
            match scanner.next() {
                Ok(None) => break None,
                Ok(Some(batch)) => {
                    let header = batch.header;
                    // The checksum does not cover the offset. Where compaction has not been, a
                    // jump within a file is damage.
                    let follows = !is_dense
                        || header.base_offset == run.offsets.end
                        || run.bytes.is_empty() && position > 0;
                    if header.next_offset() > below || !follows {
                        break Some("its offset is out of order".to_owned());
                    }
                    if run.bytes.is_empty() {
                        run.offsets.start = header.base_offset;
                    }
                    run.offsets.end = header.next_offset();
                    run.bytes.end = batch.position + header.size() as u64;
                    batches += 1;
                }
                Err(ScanError::Io(error)) => return Err(error),
                Err(ScanError::Damaged { reason, .. }) => break Some(reason),
            }
        };
        // Behind damage nothing but its own field says which offset a batch has, unless a batch
        // that follows agrees, or the place where the segment ends.
        let is_confirmed = position == 0 || !is_dense || batches > 1 || run.offsets.end == ends_at;
        let mut search_from = run.bytes.end + 1;
        if !is_confirmed {
            search_from = position + 1;
        } else {
            if !run.bytes.is_empty() {
                expected = run.offsets.end;
                found.runs.push(run.clone());
            }
            let Some(reason) = reason else { break };
            found.damage.push((run.bytes.end, reason));
        }
        // At least one offset is lost with the damage.
        match next_whole(file, search_from, size, expected.saturating_add(1), below)? {
            Some(next) => position = next,
            None => break,
        }
    }
    Ok(found)
}

/// Where the next whole batch begins, from `from` on.
fn next_whole(
    file: &dyn StorageFile,
    mut from: u64,
    size: u64,
    expected: i64,
    below: i64,
) -> io::Result<Option<u64>> {
    let mut window = Vec::new();
    while from + HEADER_LENGTH as u64 <= size {
        window.clear();
        file.read_at(&mut window, from, WINDOW)?;
        if window.len() < HEADER_LENGTH {
            return Ok(None);
        }
        for at in 0..=window.len() - HEADER_LENGTH {
            let Ok(header) = BatchHeader::parse(&window[at..]) else {
                continue;
            };
            let position = from + at as u64;
            let fits = position + header.size() as u64 <= size
                && (expected..below).contains(&header.base_offset)
                && header.last_offset_delta >= 0
                && header.next_offset() <= below;
            if !fits {
                continue;
            }
            let mut batch = Vec::new();
            file.read_at(&mut batch, position, header.size())?;
            if batch.len() == header.size() && header.check_crc(&batch).is_ok() {
                return Ok(Some(position));
            }
        }
        from += (window.len() - HEADER_LENGTH + 1) as u64;
    }
    Ok(None)
}
