//! Reading batches from a segment's file.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use kohort_wire::records::{BatchHeader, HEADER_LENGTH, RecordsError};

use super::Segment;
use crate::{LogError, index::OffsetEntry};

/// How much is read in front of what is wanted in one go, whatever `index.interval.bytes` says: it
/// may be as large as a segment.
const SLACK_MAX: usize = 64 << 10;

/// What a reader wants of a segment.
pub(crate) struct Wanted {
    pub(crate) from: i64,
    pub(crate) until: i64,
    /// Where the log ends: no batch reaches further.
    pub(crate) log_end: i64,
    pub(crate) max_bytes: usize,
    pub(crate) at_least_one: bool,
}

impl Segment {
    /// Whole batches from the one with `from` (or the next after a gap) to `until`, at most
    /// `max_bytes` of them, or one larger one if that is wanted. `None` if there is no such batch
    /// here.
    pub(crate) fn read(&self, wanted: &Wanted) -> Result<Option<Bytes>, LogError> {
        let from = wanted.from;
        let read = match self.read_from(self.entry(from)?, wanted) {
            // The index may be what is wrong, once.
            Err(LogError::Corrupt { .. }) if !self.rebuilt.load(Ordering::Acquire) => {
                self.rebuild_index()?;
                self.read_from(self.entry(from)?, wanted)?
            }
            result => result?,
        };
        read.map(|(position, bytes)| self.verify(position, bytes))
            .transpose()
    }

    /// Checks the batches that are read for the first time since the segment was opened. What
    /// stands in front of a damaged one is given out; reading on from there is an error.
    fn verify(&self, position: u64, bytes: Bytes) -> Result<Bytes, LogError> {
        let end = position + bytes.len() as u64;
        if bytes.is_empty() || self.verified.lock().contains(position, end) {
            return Ok(bytes);
        }
        let mut whole = 0;
        while whole < bytes.len() {
            let rest = &bytes[whole..];
            let checked = BatchHeader::parse(rest).and_then(|header| {
                let batch = rest.get(..header.size()).ok_or(RecordsError::NotOneBatch)?;
                header.check_crc(batch).map(|()| header.size())
            });
            match checked {
                Ok(size) => whole += size,
                Err(error) if whole == 0 => {
                    return Err(LogError::Corrupt {
                        file: self.name(),
                        position,
                        reason: error.to_string(),
                    });
                }
                Err(_) => break,
            }
        }
        self.verified.lock().add(position, position + whole as u64);
        Ok(bytes.slice(..whole))
    }

    fn read_from(
        &self,
        entry: Option<OffsetEntry>,
        wanted: &Wanted,
    ) -> Result<Option<(u64, Bytes)>, LogError> {
        let &Wanted {
            from,
            until,
            log_end,
            max_bytes,
            at_least_one,
        } = wanted;
        let size = self.size();
        let mut position = entry.map_or(0, |entry| u64::from(entry.position));
        // An index of other times could lead behind what is wanted.
        let mut expected = entry.map(|entry| self.base_offset + i64::from(entry.offset));
        let slack =
            (self.state.lock().index_interval_bytes as usize).min(SLACK_MAX) + HEADER_LENGTH;
        let mut length = max_bytes.saturating_add(slack);
        // Behind the batches that were passed over.
        let mut behind = self.base_offset;
        let mut is_behind_known = entry.is_none();
        loop {
            let left = usize::try_from(size.saturating_sub(position)).unwrap_or(usize::MAX);
            if left == 0 {
                return Ok(None);
            }
            let mut buffer = Vec::new();
            self.file
                .read_at(&mut buffer, position, length.min(left))
                .map_err(|e| LogError::io("cannot read", self.name(), e))?;
            if buffer.len() < length.min(left) {
                return Err(LogError::Corrupt {
                    file: self.name(),
                    position: position + buffer.len() as u64,
                    reason: "it is shorter than it was".to_owned(),
                });
            }
            let mut at = 0;
            // Over the batches before the one that is wanted.
            let header = loop {
                let header = match self.header(&buffer[at..], position + at as u64, size) {
                    Ok(Some(header)) => header,
                    Ok(None) => break None,
                    Err(error) => return Err(error),
                };
                if expected
                    .take()
                    .is_some_and(|last| last != header.last_offset())
                {
                    return Err(LogError::Corrupt {
                        file: self.name(),
                        position,
                        reason: "its index leads to another batch".to_owned(),
                    });
                }
                if header.base_offset < behind
                    // Batches are appended whole, so none reaches across where the log ended.
                    || header.base_offset < log_end && header.next_offset() > log_end
                    || self.is_dense && is_behind_known && header.base_offset != behind
                {
                    return Err(LogError::Corrupt {
                        file: self.name(),
                        position: position + at as u64,
                        reason: "its offset is out of order".to_owned(),
                    });
                }
                if header.last_offset() >= from {
                    break Some(header);
                }
                behind = header.next_offset();
                is_behind_known = true;
                at += header.size();
                if at > buffer.len() {
                    break None;
                }
            };
            let Some(first) = header else {
                position += at as u64;
                length = length.max(slack);
                continue;
            };
            if first.next_offset() > until || (first.size() > max_bytes && !at_least_one) {
                return Ok(Some((position, Bytes::new())));
            }
            if first.size() > buffer.len() - at {
                position += at as u64;
                length = first.size().max(max_bytes);
                continue;
            }
            let mut end = at + first.size();
            let mut behind = first.next_offset();
            while let Ok(Some(next)) = self.header(&buffer[end..], position + end as u64, size) {
                let next_end = end + next.size();
                if next_end > buffer.len()
                    || next_end - at > max_bytes
                    || next.next_offset() > until
                    || next.base_offset < behind
                    || self.is_dense && next.base_offset != behind
                {
                    break;
                }
                (end, behind) = (next_end, next.next_offset());
            }
            return Ok(Some((
                position + at as u64,
                Bytes::from(buffer).slice(at..end),
            )));
        }
    }

    /// The header at the start of `bytes`, or `None` if they are too few and there are more.
    pub(super) fn header(
        &self,
        bytes: &[u8],
        position: u64,
        size: u64,
    ) -> Result<Option<BatchHeader>, LogError> {
        let corrupt = |reason: String| LogError::Corrupt {
            file: self.name(),
            position,
            reason,
        };
        if bytes.len() < HEADER_LENGTH && position + HEADER_LENGTH as u64 <= size {
            return Ok(None);
        }
        if bytes.is_empty() && position == size {
            return Ok(None);
        }
        let header = BatchHeader::parse(bytes).map_err(|e| corrupt(e.to_string()))?;
        if position + header.size() as u64 > size {
            return Err(corrupt("it is longer than the file".to_owned()));
        }
        if header.base_offset < self.base_offset || header.last_offset_delta < 0 {
            return Err(corrupt("its offset is out of order".to_owned()));
        }
        Ok(Some(header))
    }
}
