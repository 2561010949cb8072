//! One batch, and what a broker sets in it.

use bytes::Bytes;

use super::{
    BatchHeader, Compression, HEADER_LENGTH, RecordIter, Records, RecordsError, TimestampType,
    header::{ATTRIBUTES_AT, CRC_AT, LEADER_EPOCH_AT, LOG_APPEND_TIME, MAGIC_AT, MAX_TIMESTAMP_AT},
};

/// One whole batch and its header.
///
/// Cloning is cheap; the bytes are a slice of what they came in and keep all of that in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    header: BatchHeader,
    bytes: Bytes,
}

impl Batch {
    /// The batch that `bytes` are, all of them.
    pub fn parse(bytes: Bytes) -> Result<Batch, RecordsError> {
        let header = BatchHeader::parse(&bytes)?;
        match bytes.len().checked_sub(header.size()) {
            Some(0) => Ok(Batch { header, bytes }),
            Some(_) => Err(RecordsError::NotOneBatch),
            None => Err(RecordsError::Truncated {
                needed: header.size(),
                left: bytes.len(),
            }),
        }
    }

    /// The batch at the start of `bytes`, which is cut off from them; they stay as they are if
    /// it is not whole.
    pub fn split_from(bytes: &mut Bytes) -> Result<Batch, RecordsError> {
        let header = BatchHeader::parse(bytes)?;
        if bytes.len() < header.size() {
            return Err(RecordsError::Truncated {
                needed: header.size(),
                left: bytes.len(),
            });
        }
        Ok(Batch {
            header,
            bytes: bytes.split_to(header.size()),
        })
    }

    /// The header.
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The whole batch.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The records as they are in the batch, compressed or not.
    pub fn records_bytes(&self) -> Bytes {
        self.bytes.slice(HEADER_LENGTH..)
    }

    /// Checks the checksum against the bytes: reads all of them.
    pub fn check_crc(&self) -> Result<(), RecordsError> {
        self.header.check_crc(&self.bytes)
    }

    /// The records, decompressed if need be to at most `limit` bytes.
    pub fn records(&self, limit: usize) -> Result<Records, RecordsError> {
        let bytes = match self.header.compression()? {
            Compression::None => self.records_bytes(),
            compression => {
                let mut out = Vec::new();
                compression.decompress(&self.bytes[HEADER_LENGTH..], &mut out, limit)?;
                Bytes::from(out)
            }
        };
        Ok(Records::new(self.header, bytes))
    }

    /// The records' bytes, decompressed if need be into `scratch` (to at most `limit` bytes), for
    /// a reader who looks at them and goes on.
    pub fn records_in<'a>(
        &'a self,
        scratch: &'a mut Vec<u8>,
        limit: usize,
    ) -> Result<RecordIter<'a>, RecordsError> {
        self.header.records_in(&self.bytes, scratch, limit)
    }
}

/// A batch whose header a broker completes.
#[derive(Debug)]
pub struct BatchMut<'a>(&'a mut [u8]);

impl<'a> BatchMut<'a> {
    /// The batch that `bytes` are, all of them; it has been parsed before.
    ///
    /// # Panics
    ///
    /// If `bytes` are shorter than a header.
    pub fn new(bytes: &'a mut [u8]) -> BatchMut<'a> {
        assert!(bytes.len() >= HEADER_LENGTH, "a batch has a header");
        BatchMut(bytes)
    }

    /// Sets where the batch begins. The checksum does not cover this.
    pub fn set_base_offset(&mut self, base_offset: i64) {
        self.0[..8].copy_from_slice(&base_offset.to_be_bytes());
    }

    /// Sets the epoch of the leader that appends it. The checksum does not cover this.
    pub fn set_partition_leader_epoch(&mut self, epoch: i32) {
        self.0[LEADER_EPOCH_AT..MAGIC_AT].copy_from_slice(&epoch.to_be_bytes());
    }

    /// Sets the largest timestamp and what timestamps are, and the checksum, if that changes
    /// anything.
    pub fn set_max_timestamp(&mut self, timestamp_type: TimestampType, max_timestamp: i64) {
        let attributes = i16::from_be_bytes([self.0[ATTRIBUTES_AT], self.0[ATTRIBUTES_AT + 1]]);
        let new_attributes = match timestamp_type {
            TimestampType::CreateTime => attributes & !LOG_APPEND_TIME,
            TimestampType::LogAppendTime => attributes | LOG_APPEND_TIME,
        };
        let new_max = max_timestamp.to_be_bytes();
        let max = &mut self.0[MAX_TIMESTAMP_AT..MAX_TIMESTAMP_AT + 8];
        if attributes == new_attributes && *max == new_max {
            return;
        }
        max.copy_from_slice(&new_max);
        self.0[ATTRIBUTES_AT..ATTRIBUTES_AT + 2].copy_from_slice(&new_attributes.to_be_bytes());
        self.set_crc();
    }

    /// Computes the checksum and sets it.
    pub fn set_crc(&mut self) {
        let crc = crc32c::crc32c(&self.0[ATTRIBUTES_AT..]);
        self.0[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&crc.to_be_bytes());
    }
}
