//! Reading batches.

use bytes::{Bytes, BytesMut};

use super::Log;
use crate::{LogError, segment::Wanted};

/// How much to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimit {
    /// At most so many bytes; whole batches only.
    pub max_bytes: usize,
    /// One batch even if it is larger than that, so that a consumer gets on.
    pub at_least_one: bool,
    /// Nothing of this offset or later: the flushed offset or the last stable one, if the reader
    /// is not to see what is appended at once.
    pub until: Option<i64>,
}

/// Whole batches, one after the other; the first has the offset that was asked for, or the next
/// one that there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    /// The bytes, in pieces.
    pub slices: Vec<Bytes>,
    /// Where the log started when it was read.
    pub start_offset: i64,
    /// Where it ended.
    pub end_offset: i64,
}

impl Read {
    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.slices.iter().map(Bytes::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// All bytes in one piece: copied if there are several.
    pub fn into_bytes(self) -> Bytes {
        match <[Bytes; 1]>::try_from(self.slices) {
            Ok([one]) => one,
            Err(slices) => slices.concat().into(),
        }
    }
}

/// Smaller pieces are copied together: a piece costs its writer more than so many bytes.
const PIECE_MIN: usize = 4096;

impl Log {
    /// Reads whole batches from the one with offset `from` on. At the end of the log, none.
    ///
    /// The newest batches come from memory, without a system call; others from one file.
    ///
    /// # Errors
    ///
    /// [`LogError::OffsetOutOfRange`], or trouble with the disk.
    pub fn read(&self, from: i64, limit: ReadLimit) -> Result<Read, LogError> {
        let max_bytes = limit.max_bytes;
        let (mut read, until, segments) = {
            let view = self.view.read();
            let read = Read {
                slices: Vec::new(),
                start_offset: view.start_offset(),
                end_offset: view.end_offset,
            };
            if from < view.start_offset() || from > view.end_offset {
                return Err(LogError::OffsetOutOfRange {
                    offset: from,
                    start: view.start_offset(),
                    end: view.end_offset,
                });
            }
            let until = limit.until.unwrap_or(i64::MAX).min(view.end_offset);
            if from >= until {
                return Ok(read);
            }
            match view.cache.read(from, until, max_bytes, limit.at_least_one) {
                Some(slices) => {
                    let read = Read { slices, ..read };
                    drop(view);
                    return Ok(read.coalesced());
                }
                // Not the whole list: a log may have thousands of segments, and the one with the
                // offset almost always has a batch.
                None => {
                    let at = view.segment_at(from);
                    (
                        read,
                        until,
                        view.segments()[at..]
                            .iter()
                            .take(8)
                            .cloned()
                            .collect::<Vec<_>>(),
                    )
                }
            }
        };
        let wanted = Wanted {
            from,
            until,
            log_end: read.end_offset,
            max_bytes,
            at_least_one: limit.at_least_one,
        };
        let mut last = from;
        for segment in &segments {
            last = segment.base_offset;
            if let Some(bytes) = segment.read(&wanted)? {
                if !bytes.is_empty() {
                    read.slices.push(bytes);
                }
                return Ok(read);
            }
        }
        // All were empty from there on (compaction): go on behind them.
        if last > from {
            self.read(last, limit)
        } else {
            Ok(read)
        }
    }
}

impl Read {
    /// Copies small pieces together.
    fn coalesced(mut self) -> Read {
        let small = |slice: &Bytes| slice.len() < PIECE_MIN;
        if self.slices.len() < 2 || !self.slices.iter().any(small) {
            return self;
        }
        let mut pieces = Vec::new();
        let mut together = BytesMut::new();
        for slice in self.slices {
            if small(&slice) {
                together.extend_from_slice(&slice);
            } else {
                if !together.is_empty() {
                    pieces.push(together.split().freeze());
                }
                pieces.push(slice);
            }
        }
        if !together.is_empty() {
            pieces.push(together.freeze());
        }
        self.slices = pieces;
        self
    }
}
