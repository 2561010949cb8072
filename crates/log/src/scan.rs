//! Going through the batches of a segment file, one after the other.

use std::io;

use kohort_wire::records::{BatchHeader, HEADER_LENGTH, RecordsError};

use crate::storage::StorageFile;

/// How much is read at a time, in bytes.
const CHUNK: usize = 1 << 18;

/// Why a scan ended early.
#[derive(Debug)]
pub(crate) enum ScanError {
    Io(io::Error),
    /// What stands at `position` is no batch, or not the one that was written.
    Damaged {
        position: u64,
        reason: String,
    },
}

/// One batch of a file.
#[derive(Debug)]
pub(crate) struct Scanned<'a> {
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
    pub(crate) bytes: &'a [u8],
}

/// Reads batch after batch up to `end`.
pub(crate) struct Scanner<'a> {
    file: &'a dyn StorageFile,
    end: u64,
    /// Where the next batch begins in the file.
    position: u64,
    buffer: Vec<u8>,
    /// Where the buffer begins in the file.
    buffer_position: u64,
    /// Batches begin at this offset or later; grows.
    next_offset: i64,
    check_crc: bool,
}

impl<'a> Scanner<'a> {
    /// Offsets must not be less than `next_offset`.
    pub(crate) fn new(
        file: &'a dyn StorageFile,
        position: u64,
        end: u64,
        next_offset: i64,
    ) -> Scanner<'a> {
        Scanner {
            file,
            end,
            position,
            buffer: Vec::new(),
            buffer_position: position,
            next_offset,
            check_crc: false,
        }
    }

    pub(crate) fn checking_crc(mut self) -> Scanner<'a> {
        self.check_crc = true;
        self
    }

    /// The offset behind the last batch.
    pub(crate) fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// The next batch, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Scanned<'_>>, ScanError> {
        let position = self.position;
        if position >= self.end {
            return Ok(None);
        }
        let damaged = |reason: &dyn ToString| {
            Err(ScanError::Damaged {
                position,
                reason: reason.to_string(),
            })
        };
        self.fill(HEADER_LENGTH)?;
        let header = match BatchHeader::parse(self.buffered()) {
            Ok(header) => header,
            Err(error) => return damaged(&error),
        };
        if header.size() as u64 > self.end - position {
            return damaged(&RecordsError::Truncated {
                needed: header.size(),
                left: (self.end - position) as usize,
            });
        }
        if header.base_offset < self.next_offset || header.last_offset_delta < 0 {
            return damaged(&"its offset is out of order");
        }
        self.fill(header.size())?;
        let start = (position - self.buffer_position) as usize;
        let Some(bytes) = self.buffer.get(start..start + header.size()) else {
            return damaged(&"the file is shorter than it was");
        };
        if self.check_crc
            && let Err(error) = header.check_crc(bytes)
        {
            return damaged(&error);
        }
        self.position += header.size() as u64;
        self.next_offset = header.next_offset();
        Ok(Some(Scanned {
            position,
            header,
            bytes,
        }))
    }

    fn buffered(&self) -> &[u8] {
        let start = (self.position - self.buffer_position) as usize;
        self.buffer.get(start..).unwrap_or_default()
    }

    /// Has at least `length` bytes in the buffer, if the file has them.
    fn fill(&mut self, length: usize) -> Result<(), ScanError> {
        if self.buffered().len() >= length {
            return Ok(());
        }
        let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
        self.buffer.clear();
        self.buffer_position = self.position;
        self.file
            .read_at(&mut self.buffer, self.position, length.max(CHUNK).min(left))
            .map_err(ScanError::Io)
    }
}
