//! What can go wrong with a log.

use std::{io, path::PathBuf, sync::Arc};

use kohort_wire::{ErrorCode, records::RecordsError};

/// Why one record made its batch be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRejection {
    /// Which record of the batch, from 0.
    pub index: i32,
    /// What is wrong with it.
    pub message: &'static str,
}

/// Why a log did not do what it was asked to.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The offset is not in the log.
    #[error("offset {offset} is not in the log, which has {start} to {end}")]
    OffsetOutOfRange {
        /// What was asked for.
        offset: i64,
        /// Where the log starts.
        start: i64,
        /// Where the log ends.
        end: i64,
    },
    /// The batch is damaged or breaks the format. Nothing was appended.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// Records of the batch break the topic's rules. Nothing was appended.
    #[error("{message}")]
    Rejected {
        /// INVALID_RECORD or INVALID_TIMESTAMP.
        code: ErrorCode,
        /// What is wrong, in general.
        message: &'static str,
        /// The first of the records concerned.
        records: Vec<RecordRejection>,
    },
    /// The batch is larger than `max.message.bytes`.
    #[error("a batch of {size} bytes is larger than the topic's max.message.bytes, {limit}")]
    MessageTooLarge {
        /// Of the batch, in bytes.
        size: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The batches don't fit a segment (`segment.bytes`).
    #[error("batches of {size} bytes are larger than the topic's segment.bytes, {limit}")]
    LargerThanSegment {
        /// Of the batches, in bytes.
        size: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// An idempotent producer's batch is not the next one.
    #[error("producer {producer_id} sent sequence number {sequence}, after {last}")]
    OutOfOrderSequence {
        /// The producer.
        producer_id: i64,
        /// The sequence number of the batch's first record.
        sequence: i32,
        /// The last sequence number of that producer and epoch in the log, or −1.
        last: i32,
    },
    /// An idempotent producer was replaced by a newer one.
    #[error("producer {producer_id} sent epoch {epoch}, after {current}")]
    InvalidProducerEpoch {
        /// The producer.
        producer_id: i64,
        /// The epoch of the batch.
        epoch: i16,
        /// The newest epoch in the log.
        current: i16,
    },
    /// A transactional batch, and no transaction.
    #[error("the batch is part of no transaction that is known here")]
    InvalidTransaction,
    /// There is no room left. Appends work again when there is.
    #[error("the disk is full: {action} {file}")]
    DiskFull {
        /// What was being done.
        action: &'static str,
        /// With which file.
        file: String,
    },
    /// The operating system failed.
    #[error("{action} {file}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// With which file.
        file: String,
        /// Why it failed.
        source: Arc<io::Error>,
    },
    /// A file does not hold what was written to it. The file is left as it is.
    #[error("{file} is damaged at byte {position}: {reason}")]
    Corrupt {
        /// Which file.
        file: String,
        /// Where, in bytes.
        position: u64,
        /// In what way.
        reason: String,
    },
    /// A flush failed, so it is unknown what is on the device. The log must be opened again.
    #[error("an earlier flush of this log failed; it takes no more data until it is opened again")]
    FlushFailed,
    /// The log was closed.
    #[error("the log is closed")]
    Closed,
    /// Another process holds the folder.
    #[error("another process is using the data folder {}", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
}

impl LogError {
    /// The error code that Kafka answers with.
    pub const fn error_code(&self) -> ErrorCode {
        match self {
            LogError::OffsetOutOfRange { .. } => ErrorCode::OFFSET_OUT_OF_RANGE,
            LogError::Records(error) => error.error_code(),
            LogError::Rejected { code, .. } => *code,
            LogError::MessageTooLarge { .. } => ErrorCode::MESSAGE_TOO_LARGE,
            LogError::LargerThanSegment { .. } => ErrorCode::RECORD_LIST_TOO_LARGE,
            LogError::OutOfOrderSequence { .. } => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
            LogError::InvalidProducerEpoch { .. } => ErrorCode::INVALID_PRODUCER_EPOCH,
            LogError::InvalidTransaction => ErrorCode::INVALID_TXN_STATE,
            LogError::DiskFull { .. }
            | LogError::Io { .. }
            | LogError::Corrupt { .. }
            | LogError::FlushFailed
            | LogError::Closed
            | LogError::Locked { .. } => ErrorCode::KAFKA_STORAGE_ERROR,
        }
    }

    /// Whether the trouble is with the disk and not with what was asked.
    pub const fn is_storage(&self) -> bool {
        self.error_code().0 == ErrorCode::KAFKA_STORAGE_ERROR.0
    }

    /// Trouble of the operating system with a file.
    pub fn io(action: &'static str, file: impl Into<String>, error: io::Error) -> LogError {
        let file = file.into();
        match error.kind() {
            kind if is_full(kind) => LogError::DiskFull { action, file },
            _ => LogError::Io {
                action,
                file,
                source: Arc::new(error),
            },
        }
    }
}

/// Whether there is no room: on the device, in the user's quota, or in what one file may have
/// (`ulimit -f`).
const fn is_full(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
