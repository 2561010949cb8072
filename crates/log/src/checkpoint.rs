//! The small files in which a log remembers what its segments do not say.

use std::{io, sync::Arc};

use crate::{
    files::{CHECKPOINT, CLEAN_SHUTDOWN, RECOVERY_POINT},
    storage::{Storage, StorageFile, read_file, replace_file},
};

/// `log-checkpoint`: what must survive, written seldom and whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Checkpoint {
    /// Where the log starts: records before were deleted.
    pub(crate) start_offset: i64,
    /// Everything before was compacted.
    pub(crate) cleaned_to: i64,
    /// Everything before is durable, and may have gaps: compaction went up to there.
    pub(crate) flushed_to: i64,
    /// Where the segments before `flushed_to` begin. Since there may be gaps, nothing else says
    /// that one is missing.
    pub(crate) segments: Vec<i64>,
}

impl Checkpoint {
    /// The checkpoint in the folder, if there is one yet. `Err(None)` if it is damaged.
    pub(crate) fn load(storage: &dyn Storage) -> Result<Option<Checkpoint>, Option<io::Error>> {
        let Some(bytes) = read_file(storage, CHECKPOINT)? else {
            return Ok(None);
        };
        let mut checkpoint = Checkpoint::default();
        let text = unseal(&bytes).ok_or(None)?;
        let mut lines = text.lines();
        if lines.next() != Some("0") {
            return Err(None);
        }
        for line in lines {
            let (name, value) = line.split_once(' ').ok_or(None)?;
            let value = value.parse().map_err(|_| None)?;
            match name {
                "start-offset" => checkpoint.start_offset = value,
                "cleaned-to" => checkpoint.cleaned_to = value,
                "flushed-to" => checkpoint.flushed_to = value,
                "segment" => checkpoint.segments.push(value),
                // Of a newer version.
                _ => {}
            }
        }
        Ok(Some(checkpoint))
    }

    /// Which segment must be there and is not, if there are those that begin at `bases` (sorted).
    pub(crate) fn missing_segment(&self, bases: &[i64]) -> Option<i64> {
        let ends = self.segments.iter().skip(1).copied();
        let mut segments = self.segments.iter().zip(ends.chain([self.flushed_to]));
        let missing = segments.find(|&(base, end)| {
            // One that ends before the start of the log may have been deleted.
            end > self.start_offset && bases.binary_search(base).is_err()
        });
        missing.map(|(&base, _)| base)
    }

    pub(crate) fn store(&self, storage: &dyn Storage) -> io::Result<()> {
        let mut text = format!(
            "0\nstart-offset {}\ncleaned-to {}\nflushed-to {}\n",
            self.start_offset, self.cleaned_to, self.flushed_to
        );
        for base_offset in &self.segments {
            text += &format!("segment {base_offset}\n");
        }
        replace_file(storage, CHECKPOINT, seal(text).as_bytes())
    }
}

/// Adds a line with the checksum of those before.
fn seal(text: String) -> String {
    let crc = crc32c::crc32c(text.as_bytes());
    format!("{text}crc32c {crc:08x}\n")
}

/// The lines before the checksum, if it fits them.
fn unseal(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (before, crc) = text.strip_suffix('\n')?.rsplit_once("crc32c ")?;
    let crc = u32::from_str_radix(crc, 16).ok()?;
    (crc == crc32c::crc32c(before.as_bytes())).then_some(before)
}

/// `recovery-point`: up to where the log is known to be durable. Written after every flush, in
/// place and without waiting for the device: it is true whenever it gets there. After a kill it is
/// exact, after a power failure it may be behind.
pub(crate) struct RecoveryPoint {
    file: Arc<dyn StorageFile>,
    slot: u64,
}

/// An offset and its checksum. Of two slots one is always whole.
const SLOT: usize = 12;

impl RecoveryPoint {
    /// The recovery point in the folder; 0 for a new log.
    pub(crate) fn open(storage: &dyn Storage) -> io::Result<(RecoveryPoint, i64)> {
        let file = match storage.open(RECOVERY_POINT) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                storage.create(RECOVERY_POINT)?
            }
            file => file?,
        };
        let mut bytes = Vec::new();
        file.read_at(&mut bytes, 0, 2 * SLOT)?;
        let (slots, _) = bytes.as_chunks::<SLOT>();
        let (mut point, mut slot) = (0, 0);
        for (read, index) in slots.iter().zip(0..) {
            let [a, b, c, d, e, f, g, h, i, j, k, l] = *read;
            let offset = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
            let whole = crc32c::crc32c(&read[..8]) == u32::from_be_bytes([i, j, k, l]);
            if whole && offset > point {
                point = offset;
                slot = 1 - index;
            }
        }
        Ok((RecoveryPoint { file, slot }, point))
    }

    pub(crate) fn store(&mut self, offset: i64) -> io::Result<()> {
        let mut bytes = [0; SLOT];
        bytes[..8].copy_from_slice(&offset.to_be_bytes());
        let crc = crc32c::crc32c(&bytes[..8]);
        bytes[8..].copy_from_slice(&crc.to_be_bytes());
        self.file.write_at(&bytes, self.slot * SLOT as u64)?;
        self.slot = 1 - self.slot;
        Ok(())
    }
}

/// `clean-shutdown`: how the log was when it was closed. It counts only if the log still is so,
/// and is removed by the first append, without waiting for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CleanShutdown {
    /// Where the newest segment begins.
    pub(crate) base_offset: i64,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// Where the log ends.
    pub(crate) end_offset: i64,
}

impl CleanShutdown {
    pub(crate) fn load(storage: &dyn Storage) -> io::Result<Option<CleanShutdown>> {
        let bytes = read_file(storage, CLEAN_SHUTDOWN)?.unwrap_or_default();
        let text = unseal(&bytes).unwrap_or_default();
        let fields: Vec<i64> = text.split_whitespace().flat_map(str::parse).collect();
        Ok(match fields[..] {
            [base_offset, size, end_offset] => Some(CleanShutdown {
                base_offset,
                size: size as u64,
                end_offset,
            }),
            _ => None,
        })
    }

    pub(crate) fn store(&self, storage: &dyn Storage) -> io::Result<()> {
        let text = format!("{} {} {}\n", self.base_offset, self.size, self.end_offset);
        replace_file(storage, CLEAN_SHUTDOWN, seal(text).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStorage;

    #[test]
    fn what_is_stored_is_loaded() {
        let storage = MemoryStorage::new();
        assert_eq!(Checkpoint::load(&storage).unwrap(), None);
        let checkpoint = Checkpoint {
            start_offset: 12,
            cleaned_to: 7,
            flushed_to: 9,
            segments: vec![0, 5],
        };
        checkpoint.store(&storage).unwrap();
        assert_eq!(
            Checkpoint::load(&storage).unwrap(),
            Some(checkpoint.clone())
        );
        let text = read_file(&storage, CHECKPOINT).unwrap().unwrap();
        for at in 0..text.len() {
            let mut damaged = text.clone();
            damaged[at] ^= 1;
            replace_file(&storage, CHECKPOINT, &damaged).unwrap();
            assert!(!matches!(Checkpoint::load(&storage), Ok(Some(c)) if c != checkpoint));
            replace_file(&storage, CHECKPOINT, &text[..at]).unwrap();
            assert!(Checkpoint::load(&storage).is_err());
        }
    }

    #[test]
    fn a_torn_recovery_point_falls_back_to_the_one_before() {
        let storage = MemoryStorage::new();
        let (mut point, offset) = RecoveryPoint::open(&storage).unwrap();
        assert_eq!(offset, 0);
        for offset in [5, 9, 12] {
            point.store(offset).unwrap();
            assert_eq!(RecoveryPoint::open(&storage).unwrap().1, offset);
        }
        // The next one goes to the second slot.
        let (point, _) = RecoveryPoint::open(&storage).unwrap();
        point.file.write_at(b"torn", SLOT as u64).unwrap();
        assert_eq!(RecoveryPoint::open(&storage).unwrap().1, 12);
        point.file.write_at(b"torn", 0).unwrap();
        assert_eq!(RecoveryPoint::open(&storage).unwrap().1, 0);
    }
}
