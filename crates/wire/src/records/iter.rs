//! The records of a batch, read in place.

use bytes::Bytes;

use super::varint::Reader;
use super::{BatchHeader, NO_SEQUENCE, RecordsError, TimestampType, increment_sequence};

/// One record: slices of the batch's (decompressed) bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The offset in the partition.
    pub offset: i64,
    /// The timestamp in ms, or −1.
    pub timestamp: i64,
    /// The sequence number of its idempotent producer, or −1.
    pub sequence: i32,
    /// The key; null is not the empty key.
    pub key: Option<&'a [u8]>,
    /// The value; null, in a compacted topic, deletes the key.
    pub value: Option<&'a [u8]>,
    /// The headers, read as they are asked for.
    pub headers: Headers<'a>,
    /// The offset minus the batch's base offset.
    pub offset_delta: i32,
    /// The record as it is written, its length field included.
    pub bytes: &'a [u8],
}

/// One header of a record. Keys may occur more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The key, UTF-8 by convention only.
    pub key: &'a [u8],
    /// The value.
    pub value: Option<&'a [u8]>,
}

/// The headers of a record, in their order. They were checked when the record was read.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Headers<'a> {
    /// How many are left.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether none is left.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The last header with that key, the one that counts by Kafka's convention.
    pub fn last_with_key(&self, key: &[u8]) -> Option<Header<'a>> {
        self.filter(|header| header.key == key).last()
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        if self.count == 0 {
            return None;
        }
        let mut reader = Reader(self.bytes);
        let header = read_header(&mut reader).ok()?;
        self.count -= 1;
        self.bytes = reader.0;
        Some(header)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Headers<'_> {}

impl std::fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

fn read_header<'a>(reader: &mut Reader<'a>) -> Result<Header<'a>, RecordsError> {
    let key = reader
        .nullable_bytes()?
        .ok_or(RecordsError::Invalid("a record has a header without a key"))?;
    Ok(Header {
        key,
        value: reader.nullable_bytes()?,
    })
}

/// Reads records one after the other and checks that there are as many as the header says, and
/// nothing behind them. After an error it ends.
#[derive(Debug, Clone)]
pub struct RecordIter<'a> {
    base_offset: i64,
    base_timestamp: i64,
    append_time: Option<i64>,
    base_sequence: i32,
    left: i32,
    bytes: &'a [u8],
}

impl<'a> RecordIter<'a> {
    /// The records of a batch with that header in its decompressed `bytes`.
    pub fn new(header: &BatchHeader, bytes: &'a [u8]) -> RecordIter<'a> {
        RecordIter {
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            append_time: match header.timestamp_type() {
                TimestampType::LogAppendTime => Some(header.max_timestamp),
                TimestampType::CreateTime => None,
            },
            base_sequence: header.base_sequence,
            left: header.count,
            bytes,
        }
    }

    fn read(&mut self) -> Result<Record<'a>, RecordsError> {
        let start = self.bytes;
        let mut outer = Reader(start);
        let length = usize::try_from(outer.varint()?)
            .map_err(|_| RecordsError::Invalid("a record has a negative length"))?;
        let mut reader = Reader(outer.take(length)?);
        // Of the attributes no bit is in use.
        reader.byte()?;
        let timestamp_delta = reader.varlong()?;
        let offset_delta = reader.varint()?;
        let key = reader.nullable_bytes()?;
        let value = reader.nullable_bytes()?;
        let count = usize::try_from(reader.varint()?)
            .map_err(|_| RecordsError::Invalid("a record has a negative number of headers"))?;
        let headers = Headers {
            count,
            bytes: reader.0,
        };
        for _ in 0..count {
            read_header(&mut reader)?;
        }
        if !reader.0.is_empty() {
            return Err(RecordsError::Invalid("a record is longer than its fields"));
        }
        self.bytes = outer.0;
        Ok(Record {
            offset: self.base_offset.wrapping_add(i64::from(offset_delta)),
            timestamp: self
                .append_time
                .unwrap_or(self.base_timestamp.wrapping_add(timestamp_delta)),
            sequence: match self.base_sequence {
                NO_SEQUENCE => NO_SEQUENCE,
                sequence => increment_sequence(sequence, offset_delta),
            },
            key,
            value,
            headers,
            offset_delta,
            bytes: &start[..start.len() - outer.0.len()],
        })
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, RecordsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left > 0 {
            let record = self.read();
            match record {
                Ok(_) => self.left -= 1,
                Err(_) => {
                    self.left = 0;
                    self.bytes = &[];
                }
            }
            return Some(record);
        }
        if self.left < 0 {
            self.left = 0;
            self.bytes = &[];
            return Some(Err(RecordsError::Invalid(
                "a batch has a negative number of records",
            )));
        }
        if !self.bytes.is_empty() {
            self.bytes = &[];
            return Some(Err(RecordsError::Invalid(
                "a batch has bytes behind its last record",
            )));
        }
        None
    }
}

/// The decompressed records of one batch.
#[derive(Debug, Clone)]
pub struct Records {
    header: BatchHeader,
    bytes: Bytes,
}

impl Records {
    pub(super) fn new(header: BatchHeader, bytes: Bytes) -> Records {
        Records { header, bytes }
    }

    /// The header of their batch.
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The bytes that the records are slices of.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Reads the records.
    pub fn iter(&self) -> RecordIter<'_> {
        RecordIter::new(&self.header, &self.bytes)
    }

    /// A part of one of these records as a slice that lives on its own: shares the memory of the
    /// whole batch.
    ///
    /// # Panics
    ///
    /// If `part` is not a part of [`Records::bytes`].
    pub fn slice_ref(&self, part: &[u8]) -> Bytes {
        self.bytes.slice_ref(part)
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = Result<Record<'a>, RecordsError>;
    type IntoIter = RecordIter<'a>;

    fn into_iter(self) -> RecordIter<'a> {
        self.iter()
    }
}
