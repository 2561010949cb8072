//! The fetched batches of one partition, cut into records as the application asks for them.

use std::sync::Arc;

use bytes::Bytes;
use kohort_wire::{
    messages::AbortedTransaction,
    records::{Batch, BatchHeader, Compression, RecordIter, RecordsError},
};

use super::aborted::AbortedTransactions;
use crate::BufferPool;

/// How batches are decoded.
#[derive(Debug, Clone)]
pub struct Decoding {
    /// Whether checksums are verified.
    pub check_crcs: bool,
    /// How large the records of one batch may be once they are decompressed.
    pub decompressed_bytes_max: usize,
    /// The buffers into which batches are decompressed.
    pub buffers: Arc<BufferPool>,
}

/// The records of one partition from one answer.
#[derive(Debug)]
pub(super) struct Fetched {
    /// How many of the prefetched bytes it counts for.
    pub(super) size: usize,
    batches: Bytes,
    /// A batch of which a part has been delivered.
    open: Option<(BatchHeader, Bytes)>,
    aborted: AbortedTransactions,
    /// The offset to continue at.
    pub(super) next: i64,
    /// The epoch of the leader that wrote what was read last.
    pub(super) leader_epoch: i32,
}

/// Consecutive records of one batch, checked.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// The batch's header, with the number of records that `bytes` holds.
    pub header: BatchHeader,
    /// The records, decompressed.
    pub bytes: Bytes,
    /// The offset of the first record to deliver; those before it are skipped.
    pub from: i64,
    /// How many records are delivered.
    pub count: usize,
    /// The offset to continue at after them.
    pub next: i64,
}

impl Fetched {
    /// `aborted` is `None` if all records count. Reading begins at `offset`.
    pub(super) fn new(
        batches: Bytes,
        aborted: Option<Vec<AbortedTransaction>>,
        offset: i64,
    ) -> Fetched {
        Fetched {
            size: batches.len(),
            batches,
            open: None,
            aborted: AbortedTransactions::new(aborted),
            next: offset,
            leader_epoch: -1,
        }
    }

    /// The offset after the last whole batch, and its leader epoch. Looks at headers only.
    pub(super) fn end(&self) -> Option<(i64, i32)> {
        let mut batches = self.batches.clone();
        let mut end = None;
        while let Ok(batch) = Batch::split_from(&mut batches) {
            let header = batch.header();
            end = Some((header.next_offset(), header.partition_leader_epoch));
        }
        end
    }

    /// At most `most` records; `None` if there are no more.
    pub(super) fn next(
        &mut self,
        most: usize,
        decoding: &Decoding,
    ) -> Result<Option<Chunk>, RecordsError> {
        loop {
            if let Some((header, bytes)) = self.open.take()
                && let Some(chunk) = self.cut(header, bytes, most)?
            {
                return Ok(Some(chunk));
            } else if self.open.is_none() && !self.open_next(decoding)? {
                return Ok(None);
            }
        }
    }

    /// Cuts at most `most` records off a batch; `None` if none of it is wanted.
    fn cut(
        &mut self,
        header: BatchHeader,
        bytes: Bytes,
        most: usize,
    ) -> Result<Option<Chunk>, RecordsError> {
        let from = self.next;
        let mut records = RecordIter::new(&header, &bytes);
        let (mut length, mut total, mut wanted) = (0, 0, 0);
        let mut last = from - 1;
        let whole = loop {
            match records.next().transpose()? {
                Some(record) => {
                    length += record.bytes.len();
                    total += 1;
                    if record.offset >= from {
                        wanted += 1;
                        last = record.offset;
                    }
                }
                None => break true,
            }
            if wanted == most && total < header.count {
                break false;
            }
        };
        let mut taken = header;
        taken.count = total;
        self.leader_epoch = header.partition_leader_epoch;
        if whole {
            self.next = from.max(header.next_offset());
        } else {
            self.next = last + 1;
            let mut left = header;
            left.count -= total;
            self.open = Some((left, bytes.slice(length..)));
        }
        Ok((wanted > 0).then(|| Chunk {
            header: taken,
            bytes: bytes.slice(..length),
            from,
            count: wanted,
            next: self.next,
        }))
    }

    /// Opens the next batch that holds records for the application. Returns whether there is one.
    fn open_next(&mut self, decoding: &Decoding) -> Result<bool, RecordsError> {
        loop {
            if self.batches.is_empty() {
                return Ok(false);
            }
            let batch = match Batch::split_from(&mut self.batches) {
                Ok(batch) => batch,
                // An answer may end in the middle of a batch.
                Err(RecordsError::Truncated { .. }) => {
                    self.batches = Bytes::new();
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            let header = *batch.header();
            let wanted = header.next_offset() > self.next;
            if wanted && decoding.check_crcs {
                batch.check_crc()?;
            }
            // A batch before the position can still end a transaction.
            let aborted = self.aborted.pass(&batch, decoding.decompressed_bytes_max)?;
            if !wanted {
                continue;
            }
            if header.is_control() || aborted {
                self.next = header.next_offset();
                self.leader_epoch = header.partition_leader_epoch;
                continue;
            }
            let bytes = match header.compression()? {
                Compression::None => batch.records_bytes(),
                compression => {
                    let mut buffer = decoding.buffers.acquire();
                    let limit = decoding.decompressed_bytes_max;
                    compression.decompress(&batch.records_bytes(), &mut buffer, limit)?;
                    decoding.buffers.share(buffer)
                }
            };
            self.open = Some((header, bytes));
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use kohort_wire::records::BatchBuilder;

    use super::*;

    fn decoding() -> Decoding {
        Decoding {
            check_crcs: true,
            decompressed_bytes_max: 1 << 20,
            buffers: BufferPool::new(1, 1000),
        }
    }

    fn batch(base_offset: i64, count: i64) -> Vec<u8> {
        let mut builder = BatchBuilder::new(Compression::Lz4, None);
        builder.set_base_offset(base_offset);
        for number in 0..count {
            let value = format!("{}", base_offset + number);
            builder.append(0, None, Some(value.as_bytes()), []).unwrap();
        }
        builder.build().to_vec()
    }

    fn offsets(chunk: &Chunk) -> Vec<i64> {
        let records = RecordIter::new(&chunk.header, &chunk.bytes);
        let offsets = records.map(|record| record.unwrap().offset);
        offsets.filter(|offset| *offset >= chunk.from).collect()
    }

    fn all(mut fetched: Fetched, most: usize) -> Vec<Vec<i64>> {
        let next = std::iter::from_fn(|| fetched.next(most, &decoding()).unwrap());
        next.map(|chunk| {
            let offsets = offsets(&chunk);
            assert_eq!(offsets.len(), chunk.count);
            offsets
        })
        .collect()
    }

    #[test]
    fn reading_begins_in_the_middle_of_a_batch_and_is_cut_as_wanted() {
        let bytes = [batch(0, 5), batch(5, 2)].concat();
        let fetched = Fetched::new(bytes.clone().into(), None, 1);
        assert_eq!(fetched.end().unwrap().0, 7);
        assert_eq!(all(fetched, 3), [vec![1, 2, 3], vec![4], vec![5, 6]]);
        let fetched = Fetched::new(bytes.into(), None, 5);
        assert_eq!(all(fetched, 2), [vec![5, 6]]);
    }

    #[test]
    fn a_batch_that_is_not_whole_at_the_end_is_left_for_the_next_fetch() {
        let mut bytes = [batch(0, 2), batch(2, 2)].concat();
        bytes.pop();
        let fetched = Fetched::new(bytes.into(), None, 0);
        assert_eq!(fetched.end().unwrap().0, 2);
        assert_eq!(all(fetched, 9), [vec![0, 1]]);
    }

    #[test]
    fn a_damaged_batch_is_an_error() {
        let mut bytes = batch(0, 2);
        *bytes.last_mut().unwrap() ^= 1;
        let mut fetched = Fetched::new(bytes.into(), None, 0);
        assert!(fetched.next(9, &decoding()).is_err());
    }
}
