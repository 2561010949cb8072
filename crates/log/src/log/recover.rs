//! Finding the end of a log that was not closed, and making it whole.

use std::io;

use super::{open::Opening, replay::Replay};
use crate::{
    LogError,
    scan::{ScanError, Scanned},
    segment::Segment,
};

/// How much of an end that may not be on the device is written again at a time, in bytes.
const CHUNK: usize = 1 << 20;

/// Where the end of the log was found.
pub(super) struct Scan {
    pub(super) end_offset: i64,
    /// Where the first batch stands that is not known to be durable: segment and position.
    unflushed: Option<(usize, u64)>,
    /// What is to be cut off: from that position of the segment, and all segments behind.
    torn: Option<(usize, u64)>,
}

impl Opening {
    /// Checks every batch from that segment on, and changes nothing.
    pub(super) fn check(
        &mut self,
        segments: &[Segment],
        first: usize,
        point: i64,
        gaps_to: i64,
        replay: &mut Replay<'_>,
    ) -> Result<Scan, LogError> {
        let mut scan = Scan {
            end_offset: point.min(segments.get(first).map_or(0, |segment| segment.base_offset)),
            unflushed: None,
            torn: None,
        };
        // Records that follow a gap were not flushed, or the gap is where flushed ones were; only
        // compaction makes other gaps.
        let gap = |offset: i64, next: i64| next != offset && next > gaps_to;
        for (at, segment) in segments.iter().enumerate().skip(first) {
            if segment.base_offset < scan.end_offset {
                return Err(LogError::Corrupt {
                    file: segment.name(),
                    position: 0,
                    reason: "it begins before the segment ahead of it ends".to_owned(),
                });
            }
            let size = segment.size();
            if at > first && gap(scan.end_offset, segment.base_offset) {
                self.recovery.bytes_cut_off += size;
                scan.torn = Some((at - 1, segments[at - 1].size()));
                break;
            }
            scan.end_offset = segment.base_offset;
            segment.start_recovery();
            let mut scanner = segment.scan_file(size).checking_crc();
            let ended = loop {
                match scanner.next() {
                    Ok(Some(Scanned {
                        header, position, ..
                    })) => {
                        if gap(scan.end_offset, header.base_offset) {
                            break Some((position, "records are missing before it".to_owned()));
                        }
                        segment.recovered(&header);
                        replay.batch(&header);
                        if header.next_offset() > point {
                            scan.unflushed.get_or_insert((at, position));
                        }
                        scan.end_offset = header.next_offset();
                        self.recovery.bytes_checked += header.size() as u64;
                    }
                    Ok(None) => break None,
                    Err(error @ ScanError::Io(_)) => return Err(segment.scan_error(error)),
                    Err(ScanError::Damaged { position, reason }) => break Some((position, reason)),
                }
            };
            let Some((position, reason)) = ended else {
                continue;
            };
            if scan.end_offset < point {
                return Err(segment.scan_error(ScanError::Damaged { position, reason }));
            }
            self.recovery.bytes_cut_off += size - position;
            scan.torn = Some((at, position));
            break;
        }
        if scan.end_offset < point {
            let last = segments
                .last()
                .map_or_else(|| self.storage.name(), Segment::name);
            return Err(LogError::Corrupt {
                file: last,
                position: segments.last().map_or(0, Segment::size),
                reason: format!(
                    "the log ends at offset {}, but it was flushed up to {point}",
                    scan.end_offset
                ),
            });
        }
        Ok(scan)
    }

    /// Cuts off what is torn, and makes durable what is left.
    pub(super) fn repair(
        &mut self,
        segments: &mut Vec<Segment>,
        first: usize,
        scan: &Scan,
    ) -> Result<(), LogError> {
        if let Some((at, position)) = scan.torn {
            for segment in segments.drain(at + 1..).rev() {
                segment.remove()?;
                self.recovery.segments_removed += 1;
            }
            let torn = &segments[at];
            torn.file()
                .truncate(position)
                .map_err(|e| LogError::io("cannot cut off", torn.name(), e))?;
        }
        let Some((_, closed)) = segments.get(first..).and_then(<[_]>::split_last) else {
            return Ok(());
        };
        for segment in closed {
            segment.write_index()?;
        }
        if let Some((at, position)) = scan.unflushed {
            // The kernel may hold pages that it once failed to write and now takes for clean:
            // only what is written again is certain to be on the device after a flush.
            let mut position = position;
            for segment in &segments[at..] {
                rewrite(segment, position)
                    .map_err(|e| LogError::io("cannot write", segment.name(), e))?;
                position = 0;
            }
        }
        for (index, segment) in segments.iter().enumerate().skip(first) {
            let closed = index + 1 < segments.len();
            segment
                .sync(closed)
                .map_err(|e| LogError::io("cannot flush", segment.name(), e))?;
        }
        Ok(())
    }
}

fn rewrite(segment: &Segment, mut position: u64) -> io::Result<()> {
    let end = segment.size();
    let mut buffer = Vec::new();
    while position < end {
        buffer.clear();
        let length = CHUNK.min((end - position) as usize);
        segment.file().read_at(&mut buffer, position, length)?;
        if buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        segment.file().write_at(&buffer, position)?;
        position += buffer.len() as u64;
    }
    Ok(())
}
