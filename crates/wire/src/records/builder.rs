//! Making a batch.

use bytes::Bytes;

use super::{
    BatchHeader, BatchMut, Compression, Compressor, HEADER_LENGTH, Header, LOG_OVERHEAD, Level,
    NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP,
    TimestampType, varint,
};

/// Why a record cannot be part of a batch. The batch is as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A batch is at most 2 GiB long.
    #[error("the batch would be longer than 2 GiB")]
    TooLarge,
    /// Offsets grow from record to record, and by less than 2³¹ in all.
    #[error("offset {0} cannot follow in this batch")]
    Offset(i64),
}

/// Makes batches, one after the other, in buffers that it keeps.
///
/// ```
/// use kohort_wire::records::{Batch, BatchBuilder, Compression};
///
/// let mut builder = BatchBuilder::new(Compression::Zstd, None);
/// builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"), [])?;
/// let batch = Batch::parse(builder.finish())?;
/// for record in &batch.records(1 << 20)? {
///     assert_eq!(record?.value, Some(&b"value"[..]));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BatchBuilder {
    compressor: Compressor,
    header: BatchHeader,
    timestamp_type: TimestampType,
    transactional: bool,
    control: bool,
    delete_horizon_ms: Option<i64>,
    /// Of the last record, −1 without one: the header's may be greater from the start.
    last_delta: i32,
    /// Room for the header, then the records, not compressed.
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl BatchBuilder {
    /// A builder of batches that begin at offset 0 and are of no idempotent producer.
    pub fn new(compression: Compression, level: Option<Level>) -> BatchBuilder {
        let mut builder = BatchBuilder {
            compressor: Compressor::new(compression, level),
            header: BatchHeader {
                base_offset: 0,
                length: 0,
                partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
                crc: 0,
                attributes: 0,
                last_offset_delta: -1,
                base_timestamp: NO_TIMESTAMP,
                max_timestamp: NO_TIMESTAMP,
                producer_id: NO_PRODUCER_ID,
                producer_epoch: NO_PRODUCER_EPOCH,
                base_sequence: NO_SEQUENCE,
                count: 0,
            },
            timestamp_type: TimestampType::CreateTime,
            transactional: false,
            control: false,
            delete_horizon_ms: None,
            last_delta: -1,
            plain: Vec::new(),
            packed: Vec::new(),
        };
        builder.clear();
        builder
    }

    /// Drops the records; everything else stays as it was set.
    pub fn clear(&mut self) {
        self.plain.clear();
        self.plain.resize(HEADER_LENGTH, 0);
        self.header.count = 0;
        self.header.last_offset_delta = -1;
        self.last_delta = -1;
        self.header.base_timestamp = self.delete_horizon_ms.unwrap_or(NO_TIMESTAMP);
        self.header.max_timestamp = NO_TIMESTAMP;
    }

    /// Sets the offset of the first record, for batches that are not for a producer.
    pub const fn set_base_offset(&mut self, base_offset: i64) {
        self.header.base_offset = base_offset;
    }

    /// Sets the leader epoch.
    pub const fn set_partition_leader_epoch(&mut self, epoch: i32) {
        self.header.partition_leader_epoch = epoch;
    }

    /// Makes the batch one of an idempotent producer.
    pub const fn set_producer(&mut self, id: i64, epoch: i16, base_sequence: i32) {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
    }

    /// Makes the batch part of a transaction.
    pub const fn set_transactional(&mut self, transactional: bool) {
        self.transactional = transactional;
    }

    /// Makes the batch one that holds control records.
    pub const fn set_control(&mut self, control: bool) {
        self.control = control;
    }

    /// Takes everything but the records, the compression and the timestamps of records from
    /// `header`, for a batch that replaces it with some of its records (compaction): the range of
    /// offsets stays the same. `delete_horizon_ms` is set if the batch has one already or is to
    /// get one (KIP-534). Drops all records.
    pub fn start_like(&mut self, header: &BatchHeader, delete_horizon_ms: Option<i64>) {
        self.delete_horizon_ms = delete_horizon_ms;
        self.timestamp_type = header.timestamp_type();
        self.transactional = header.is_transactional();
        self.control = header.is_control();
        self.header = *header;
        self.clear();
        self.header.last_offset_delta = header.last_offset_delta;
        // Without records it stays, so that it is known when the producer last wrote.
        self.header.max_timestamp = header.max_timestamp;
    }

    /// How many records there are.
    pub const fn count(&self) -> usize {
        self.header.count as usize
    }

    /// Whether there are no records.
    pub const fn is_empty(&self) -> bool {
        self.header.count == 0
    }

    /// The length of the batch in bytes, as it would be without compression.
    pub const fn size(&self) -> usize {
        self.plain.len()
    }

    /// The most bytes that a record with these fields adds, without compression.
    pub fn record_size_max<'h>(
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = Header<'h>>,
    ) -> usize {
        // The length and the number of headers, the offset's and the timestamp's delta, and the
        // attributes.
        const AROUND: usize = 5 + 5 + 5 + 10 + 1;
        let fields = bytes_length(key) + bytes_length(value);
        let headers = headers
            .into_iter()
            .map(|header| bytes_length(Some(header.key)) + bytes_length(header.value));
        AROUND + fields + headers.sum::<usize>()
    }

    /// Appends a record behind the last one. The timestamp is in ms, or −1.
    pub fn append<'h, H>(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: H,
    ) -> Result<(), BuildError>
    where
        H: IntoIterator<Item = Header<'h>, IntoIter: Clone>,
    {
        let offset = self.header.next_offset();
        self.append_at(offset, timestamp, key, value, headers)
    }

    /// Appends a record with its offset, which is not less than the batch's base offset and
    /// greater than those before.
    pub fn append_at<'h, H>(
        &mut self,
        offset: i64,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: H,
    ) -> Result<(), BuildError>
    where
        H: IntoIterator<Item = Header<'h>, IntoIter: Clone>,
    {
        let offset_delta = offset
            .checked_sub(self.header.base_offset)
            .and_then(|delta| i32::try_from(delta).ok())
            .filter(|&delta| delta > self.last_delta)
            .ok_or(BuildError::Offset(offset))?;
        let base_timestamp = match self.header.count {
            0 if self.delete_horizon_ms.is_none() => timestamp,
            _ => self.header.base_timestamp,
        };
        let timestamp_delta = timestamp.wrapping_sub(base_timestamp);
        let headers = headers.into_iter();
        let header_count = headers.clone().count() as i64;
        let header_length: usize = headers
            .clone()
            .map(|header| bytes_length(Some(header.key)) + bytes_length(header.value))
            .sum();
        let length = 1
            + varint::length(timestamp_delta)
            + varint::length(i64::from(offset_delta))
            + bytes_length(key)
            + bytes_length(value)
            + varint::length(header_count)
            + header_length;
        if self.plain.len() + length + 5 > i32::MAX as usize {
            return Err(BuildError::TooLarge);
        }

        let out = &mut self.plain;
        varint::put(out, length as i64);
        out.push(0);
        varint::put(out, timestamp_delta);
        varint::put(out, i64::from(offset_delta));
        put_bytes(out, key);
        put_bytes(out, value);
        varint::put(out, header_count);
        for header in headers {
            put_bytes(out, Some(header.key));
            put_bytes(out, header.value);
        }
        self.header.base_timestamp = base_timestamp;
        if self.timestamp_type == TimestampType::CreateTime {
            self.header.max_timestamp = match self.header.count {
                0 => timestamp,
                _ => self.header.max_timestamp.max(timestamp),
            };
        }
        self.last_delta = offset_delta;
        self.header.last_offset_delta = self.header.last_offset_delta.max(offset_delta);
        self.header.count += 1;
        Ok(())
    }

    /// The batch, in the builder's own memory, for one who copies it elsewhere. Then come
    /// [`BatchBuilder::clear`] and the next batch.
    pub fn build(&mut self) -> &[u8] {
        let mut packed = std::mem::take(&mut self.packed);
        let is_packed = self.build_into(&mut packed);
        self.packed = packed;
        if is_packed { &self.packed } else { &self.plain }
    }

    /// Makes the batch in `packed` if it is compressed, and where the records are if not. Returns
    /// which.
    fn build_into(&mut self, packed: &mut Vec<u8>) -> bool {
        // No records, nothing to compress; Kafka's cleaner keeps such batches and writes them so.
        let compression = if self.is_empty() {
            Compression::None
        } else {
            self.compressor.compression()
        };
        let out = match compression {
            Compression::None => &mut self.plain,
            _ => {
                packed.clear();
                packed.resize(HEADER_LENGTH, 0);
                self.compressor
                    .compress(&self.plain[HEADER_LENGTH..], packed);
                packed
            }
        };
        self.header.length = (out.len() - LOG_OVERHEAD) as i32;
        self.header.set_attributes(
            compression,
            self.timestamp_type,
            self.transactional,
            self.control,
            self.delete_horizon_ms.is_some(),
        );
        out[..HEADER_LENGTH].copy_from_slice(&self.header.to_bytes());
        BatchMut::new(out).set_crc();
        compression != Compression::None
    }

    /// The batch in memory of its own; the builder is empty then.
    pub fn finish(&mut self) -> Bytes {
        let bytes = Bytes::copy_from_slice(self.build());
        self.clear();
        bytes
    }

    /// The batch, in `memory` or in memory that the builder gives for it: nothing is copied. The
    /// builder is empty then.
    pub fn finish_in(&mut self, mut memory: Vec<u8>) -> Vec<u8> {
        if !self.build_into(&mut memory) {
            std::mem::swap(&mut self.plain, &mut memory);
        }
        self.clear();
        memory
    }
}

fn bytes_length(bytes: Option<&[u8]>) -> usize {
    match bytes {
        Some(bytes) => varint::length(bytes.len() as i64) + bytes.len(),
        None => 1,
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            varint::put(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
        None => varint::put(out, -1),
    }
}
