//! What a batch must be before it is appended, as Kafka's LogValidator has it.

use std::{cell::RefCell, ops::Range};

use kohort_wire::{
    ErrorCode,
    records::{
        BatchBuilder, BatchHeader, BatchMut, Compression, NO_TIMESTAMP, Record, RecordsError,
        TimestampType,
    },
};

use crate::{LogConfig, LogError, Origin, RecordRejection};

/// How many records a refusal names.
const REJECTIONS_MAX: usize = 10;
/// How large a buffer a thread keeps to decompress into, in bytes.
const SCRATCH_KEPT: usize = 1 << 20;

/// Batches that may be appended: complete but for their offsets.
#[derive(Debug)]
pub(crate) struct Validated {
    pub(crate) bytes: Vec<u8>,
    pub(crate) batches: Vec<(Range<usize>, BatchHeader)>,
}

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Checks `records`, copies them and sets what does not depend on where they are appended.
pub(crate) fn validate(
    config: &LogConfig,
    origin: Origin,
    records: &[u8],
    leader_epoch: i32,
    now_ms: i64,
) -> Result<Validated, LogError> {
    let mut validated = Validated {
        bytes: Vec::with_capacity(records.len()),
        batches: Vec::new(),
    };
    let mut rest = records;
    while !rest.is_empty() {
        let header = BatchHeader::parse(rest)?;
        let Some((batch, behind)) = rest.split_at_checked(header.size()) else {
            return Err(LogError::Records(RecordsError::Truncated {
                needed: header.size(),
                left: rest.len(),
            }));
        };
        rest = behind;
        let start = validated.bytes.len();
        match origin {
            Origin::Client => SCRATCH.with_borrow_mut(|scratch| {
                let result = client_batch(
                    config,
                    batch,
                    &header,
                    now_ms,
                    scratch,
                    &mut validated.bytes,
                );
                if scratch.capacity() > SCRATCH_KEPT {
                    *scratch = Vec::new();
                }
                result
            })?,
            Origin::Coordinator => validated.bytes.extend_from_slice(batch),
        }
        let batch = &mut validated.bytes[start..];
        BatchMut::new(batch).set_partition_leader_epoch(leader_epoch);
        let header = BatchHeader::parse(batch)?;
        validated
            .batches
            .push((start..validated.bytes.len(), header));
    }
    if validated.batches.is_empty() {
        return Err(LogError::Records(RecordsError::NotOneBatch));
    }
    Ok(validated)
}

fn client_batch(
    config: &LogConfig,
    batch: &[u8],
    header: &BatchHeader,
    now_ms: i64,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), LogError> {
    let limit = config.max_message_bytes as usize;
    if header.base_offset != 0 {
        return Err(RecordsError::Invalid("a produced batch does not begin at offset 0").into());
    }
    if batch.len() > limit {
        return Err(too_large(batch.len(), limit));
    }
    header.check_crc(batch)?;
    header.check_produced()?;
    if header.is_transactional() {
        return Err(LogError::InvalidTransaction);
    }
    let max_timestamp = client_records(config, batch, header, now_ms, scratch)?;
    let start = out.len();
    match config.compression {
        Some(compression) if compression != header.compression()? => {
            recompress(config, batch, header, compression, scratch, out)?;
            let size = out.len() - start;
            if size > limit {
                return Err(too_large(size, limit));
            }
        }
        _ => out.extend_from_slice(batch),
    }
    let mut batch = BatchMut::new(&mut out[start..]);
    match config.timestamp_type {
        // What the producer says of it need not be true.
        TimestampType::CreateTime => {
            batch.set_max_timestamp(TimestampType::CreateTime, max_timestamp);
        }
        TimestampType::LogAppendTime => {
            batch.set_max_timestamp(TimestampType::LogAppendTime, now_ms);
        }
    }
    Ok(())
}

fn too_large(size: usize, limit: usize) -> LogError {
    LogError::MessageTooLarge { size, limit }
}

/// Checks each record; returns the largest timestamp.
fn client_records(
    config: &LogConfig,
    batch: &[u8],
    header: &BatchHeader,
    now_ms: i64,
    scratch: &mut Vec<u8>,
) -> Result<i64, LogError> {
    let mut rejected = Rejected::default();
    let mut max_timestamp = NO_TIMESTAMP;
    let records = header.records_in(batch, scratch, config.max_decompressed_bytes)?;
    for (record, index) in records.zip(0..) {
        let record = record?;
        if record.offset_delta != index {
            return Err(RecordsError::Invalid("a produced batch has gaps in its offsets").into());
        }
        max_timestamp = max_timestamp.max(record.timestamp);
        if let Some((code, message)) = rejection(config, header, &record, now_ms) {
            rejected.add(code, RecordRejection { index, message });
        }
    }
    rejected.into_result().map(|()| max_timestamp)
}

fn rejection(
    config: &LogConfig,
    header: &BatchHeader,
    record: &Record<'_>,
    now_ms: i64,
) -> Option<(ErrorCode, &'static str)> {
    if config.cleanup_policy.compacts() && record.key.is_none() {
        let message = "A compacted topic does not take records without a key.";
        return Some((ErrorCode::INVALID_RECORD, message));
    }
    if header.timestamp_type() == TimestampType::LogAppendTime {
        let message = "A producer cannot set a record's timestamp type to LogAppendTime.";
        return Some((ErrorCode::INVALID_TIMESTAMP, message));
    }
    if config.timestamp_type == TimestampType::CreateTime && record.timestamp != NO_TIMESTAMP {
        let behind = i128::from(now_ms) - i128::from(record.timestamp);
        if behind > i128::from(config.timestamp_before_max_ms)
            || -behind > i128::from(config.timestamp_after_max_ms)
        {
            let message = "The timestamp is further from the broker's clock than \
                           message.timestamp.before.max.ms and .after.max.ms allow.";
            return Some((ErrorCode::INVALID_TIMESTAMP, message));
        }
    }
    None
}

#[derive(Default)]
struct Rejected {
    code: Option<ErrorCode>,
    records: Vec<RecordRejection>,
}

impl Rejected {
    fn add(&mut self, code: ErrorCode, record: RecordRejection) {
        // A bad timestamp wins, as in Kafka.
        if self.code != Some(ErrorCode::INVALID_TIMESTAMP) {
            self.code = Some(code);
        }
        if self.records.len() < REJECTIONS_MAX {
            self.records.push(record);
        }
    }

    fn into_result(self) -> Result<(), LogError> {
        let Some(code) = self.code else {
            return Ok(());
        };
        let message = match code {
            ErrorCode::INVALID_TIMESTAMP => "records have invalid timestamps",
            _ => "records break the rules of the topic",
        };
        Err(LogError::Rejected {
            code,
            message,
            records: self.records,
        })
    }
}

/// The same batch in the compression that the topic wants.
fn recompress(
    config: &LogConfig,
    batch: &[u8],
    header: &BatchHeader,
    compression: Compression,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), LogError> {
    let mut builder = BatchBuilder::new(compression, None);
    builder.start_like(header, None);
    for record in header.records_in(batch, scratch, config.max_decompressed_bytes)? {
        let record = record?;
        builder
            .append_at(
                record.offset,
                record.timestamp,
                record.key,
                record.value,
                record.headers,
            )
            .map_err(|_| RecordsError::Invalid("a batch is larger than 2 GiB"))?;
    }
    out.extend_from_slice(builder.build());
    Ok(())
}
