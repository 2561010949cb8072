//! The header of a batch: everything that may be known of it without touching the records.

use super::{
    Compression, NO_PRODUCER_ID, NO_SEQUENCE, RecordIter, RecordsError, increment_sequence,
};

/// The length of a batch's header, in bytes: what an empty batch takes.
pub const HEADER_LENGTH: usize = 61;
/// The base offset and the length field, in bytes: what the length field does not count.
pub const LOG_OVERHEAD: usize = 12;

pub(super) const LENGTH_AT: usize = 8;
pub(super) const LEADER_EPOCH_AT: usize = 12;
pub(super) const MAGIC_AT: usize = 16;
pub(super) const CRC_AT: usize = 17;
// The checksum covers everything from here on, so the base offset and the leader epoch can be
// set without computing it again.
pub(super) const ATTRIBUTES_AT: usize = 21;
pub(super) const MAX_TIMESTAMP_AT: usize = 35;

const COMPRESSION_MASK: i16 = 0x07;
pub(super) const LOG_APPEND_TIME: i16 = 0x08;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
const DELETE_HORIZON: i16 = 0x40;

/// What the timestamps of a batch's records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampType {
    /// When the producer made the record.
    #[default]
    CreateTime,
    /// When the broker appended the batch: one time for all its records.
    LogAppendTime,
}

/// The header of a batch, in the order in which it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// The offset of the batch's first record; producers send 0.
    pub base_offset: i64,
    /// The batch's length in bytes without its first [`LOG_OVERHEAD`].
    pub length: i32,
    /// The epoch of the leader that appended the batch, or −1.
    pub partition_leader_epoch: i32,
    /// The CRC-32C of everything behind it.
    pub crc: u32,
    /// Compression (bits 0–2), timestamp type (3), transactional (4), control (5), delete
    /// horizon (6).
    pub attributes: i16,
    /// The last offset minus the base offset; stays when compaction removes records.
    pub last_offset_delta: i32,
    /// The time that the records' deltas count from, in ms; with a delete horizon, that one.
    pub base_timestamp: i64,
    /// The largest timestamp, in ms; for LogAppendTime the timestamp of all records.
    pub max_timestamp: i64,
    /// The idempotent producer's id, or −1.
    pub producer_id: i64,
    /// The idempotent producer's epoch, or −1.
    pub producer_epoch: i16,
    /// The sequence number of the first record, or −1.
    pub base_sequence: i32,
    /// How many records there are.
    pub count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`, which may end behind it.
    ///
    /// Of the values only the length (which the bytes needn't have) and the format are checked.
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, RecordsError> {
        let left = bytes.len();
        let Some(head) = bytes.first_chunk::<{ MAGIC_AT + 1 }>() else {
            return Err(RecordsError::Truncated {
                needed: HEADER_LENGTH,
                left,
            });
        };
        let length = i32::from_be_bytes(field(head, LENGTH_AT));
        match head[MAGIC_AT] as i8 {
            2 => {}
            magic @ (0 | 1) => return Err(RecordsError::OldFormat(magic)),
            magic => return Err(RecordsError::UnknownFormat(magic)),
        }
        if length < (HEADER_LENGTH - LOG_OVERHEAD) as i32 {
            return Err(RecordsError::BadLength(length));
        }
        let Some(head) = bytes.first_chunk::<HEADER_LENGTH>() else {
            return Err(RecordsError::Truncated {
                needed: LOG_OVERHEAD + length as usize,
                left,
            });
        };
        Ok(BatchHeader {
            base_offset: i64::from_be_bytes(field(head, 0)),
            length,
            partition_leader_epoch: i32::from_be_bytes(field(head, LEADER_EPOCH_AT)),
            crc: u32::from_be_bytes(field(head, CRC_AT)),
            attributes: i16::from_be_bytes(field(head, ATTRIBUTES_AT)),
            last_offset_delta: i32::from_be_bytes(field(head, 23)),
            base_timestamp: i64::from_be_bytes(field(head, 27)),
            max_timestamp: i64::from_be_bytes(field(head, MAX_TIMESTAMP_AT)),
            producer_id: i64::from_be_bytes(field(head, 43)),
            producer_epoch: i16::from_be_bytes(field(head, 51)),
            base_sequence: i32::from_be_bytes(field(head, 53)),
            count: i32::from_be_bytes(field(head, 57)),
        })
    }

    /// Writes the header as it is, checksum included.
    pub fn to_bytes(&self) -> [u8; HEADER_LENGTH] {
        let mut out = [0; HEADER_LENGTH];
        out[..8].copy_from_slice(&self.base_offset.to_be_bytes());
        out[LENGTH_AT..12].copy_from_slice(&self.length.to_be_bytes());
        out[LEADER_EPOCH_AT..16].copy_from_slice(&self.partition_leader_epoch.to_be_bytes());
        out[MAGIC_AT] = 2;
        out[CRC_AT..21].copy_from_slice(&self.crc.to_be_bytes());
        out[ATTRIBUTES_AT..23].copy_from_slice(&self.attributes.to_be_bytes());
        out[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        out[27..35].copy_from_slice(&self.base_timestamp.to_be_bytes());
        out[MAX_TIMESTAMP_AT..43].copy_from_slice(&self.max_timestamp.to_be_bytes());
        out[43..51].copy_from_slice(&self.producer_id.to_be_bytes());
        out[51..53].copy_from_slice(&self.producer_epoch.to_be_bytes());
        out[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        out[57..61].copy_from_slice(&self.count.to_be_bytes());
        out
    }

    /// The length of the whole batch, in bytes.
    pub const fn size(&self) -> usize {
        LOG_OVERHEAD + self.length as usize
    }

    /// The offset of the batch's last record, present or compacted away.
    pub const fn last_offset(&self) -> i64 {
        self.base_offset
            .saturating_add(self.last_offset_delta as i64)
    }

    /// The offset after the batch.
    pub const fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// The sequence number of the last record, or −1.
    pub const fn last_sequence(&self) -> i32 {
        match self.base_sequence {
            NO_SEQUENCE => NO_SEQUENCE,
            sequence => increment_sequence(sequence, self.last_offset_delta),
        }
    }

    /// How the records are compressed.
    pub const fn compression(&self) -> Result<Compression, RecordsError> {
        Compression::from_id((self.attributes & COMPRESSION_MASK) as u8)
    }

    /// What the timestamps are.
    pub const fn timestamp_type(&self) -> TimestampType {
        match self.attributes & LOG_APPEND_TIME {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        }
    }

    /// Whether the batch is part of a transaction.
    pub const fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether the batch holds a control record, which is not for applications.
    pub const fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// When compaction may remove the tombstones and the transaction marker of this batch, in ms
    /// (KIP-534).
    pub const fn delete_horizon_ms(&self) -> Option<i64> {
        match self.attributes & DELETE_HORIZON {
            0 => None,
            _ => Some(self.base_timestamp),
        }
    }

    /// Whether the batch is of an idempotent producer.
    pub const fn has_producer_id(&self) -> bool {
        self.producer_id != NO_PRODUCER_ID
    }

    /// Checks what a header of a producer's batch must be: records, their offsets without gaps, no
    /// control records, a sequence number when there is a producer id. As Kafka's LogValidator.
    pub fn check_produced(&self) -> Result<(), RecordsError> {
        let invalid = |what| Err(RecordsError::Invalid(what));
        self.compression()?;
        if self.last_offset_delta < 0 || self.base_offset > i64::MAX - i64::from(i32::MAX) {
            return invalid("a batch has an impossible range of offsets");
        }
        if self.count <= 0 {
            return invalid("a produced batch has no records");
        }
        if self.count - 1 != self.last_offset_delta {
            return invalid("a produced batch has not as many records as offsets");
        }
        if self.is_control() {
            return invalid("clients may not write control records");
        }
        if self.delete_horizon_ms().is_some() {
            return invalid("clients may not write a delete horizon");
        }
        if self.has_producer_id() && self.base_sequence < 0 {
            return invalid("a batch has a producer id without a sequence number");
        }
        Ok(())
    }

    /// Checks the checksum against the bytes of the whole `batch` that this header was read from.
    pub fn check_crc(&self, batch: &[u8]) -> Result<(), RecordsError> {
        let computed = crc32c::crc32c(batch.get(ATTRIBUTES_AT..).unwrap_or_default());
        if self.crc == computed {
            Ok(())
        } else {
            Err(RecordsError::Checksum {
                stored: self.crc,
                computed,
            })
        }
    }

    /// The records of the whole `batch` that this header was read from, decompressed if need be
    /// into `scratch` (to at most `limit` bytes), for a reader who looks at them and goes on.
    pub fn records_in<'a>(
        &self,
        batch: &'a [u8],
        scratch: &'a mut Vec<u8>,
        limit: usize,
    ) -> Result<RecordIter<'a>, RecordsError> {
        let compressed = batch.get(HEADER_LENGTH..).unwrap_or_default();
        let bytes = match self.compression()? {
            Compression::None => compressed,
            compression => {
                scratch.clear();
                compression.decompress(compressed, scratch, limit)?;
                scratch
            }
        };
        Ok(RecordIter::new(self, bytes))
    }

    pub(super) fn set_attributes(
        &mut self,
        compression: Compression,
        timestamp_type: TimestampType,
        transactional: bool,
        control: bool,
        delete_horizon: bool,
    ) {
        let flag = |set: bool, bit: i16| if set { bit } else { 0 };
        self.attributes = i16::from(compression.id())
            | flag(
                timestamp_type == TimestampType::LogAppendTime,
                LOG_APPEND_TIME,
            )
            | flag(transactional, TRANSACTIONAL)
            | flag(control, CONTROL)
            | flag(delete_horizon, DELETE_HORIZON);
    }
}

fn field<const N: usize, const M: usize>(head: &[u8; M], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&head[at..at + N]);
    value
}
