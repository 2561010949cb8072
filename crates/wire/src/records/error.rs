//! What can be wrong with record batches.

use crate::ErrorCode;

/// Why bytes are not the record batches they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// The bytes end inside a batch.
    #[error("a batch of {needed} bytes has only {left} bytes left")]
    Truncated {
        /// What the batch says it takes, in bytes.
        needed: usize,
        /// What is left, in bytes.
        left: usize,
    },
    /// The length field cannot be true.
    #[error("a batch says its length is {0} bytes, too few for a batch")]
    BadLength(i32),
    /// A message of the formats before Kafka 0.11.
    #[error("message format {0} is no longer supported, only record batches (2)")]
    OldFormat(i8),
    /// No format Kafka ever had.
    #[error("{0} is no message format")]
    UnknownFormat(i8),
    /// The checksum does not fit the bytes.
    #[error("the checksum is {stored:#010x}, but the bytes have {computed:#010x}")]
    Checksum {
        /// What the header says.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// A compression this version of Kafka does not have.
    #[error("{0} is no compression type")]
    UnknownCompression(u8),
    /// The compressed bytes are damaged.
    #[error("the {0} data is damaged: {1}")]
    Decompression(super::Compression, String),
    /// The batch decompresses to more than the reader allows.
    #[error("the batch decompresses to more than {limit} bytes")]
    TooLargeDecompressed {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A record, or the batch around it, breaks the format.
    #[error("{0}")]
    Invalid(&'static str),
    /// More or fewer batches than a produce request may hold for one partition.
    #[error("a produce request must hold exactly one batch for a partition")]
    NotOneBatch,
}

impl RecordsError {
    /// The error code that Kafka answers a producer with.
    ///
    /// A batch that cannot be told apart from noise is CORRUPT_MESSAGE (the client may try again);
    /// one that was received as sent and breaks a rule is INVALID_RECORD.
    pub const fn error_code(&self) -> ErrorCode {
        match self {
            RecordsError::Truncated { .. }
            | RecordsError::BadLength(_)
            | RecordsError::UnknownFormat(_)
            | RecordsError::Checksum { .. }
            | RecordsError::Decompression(..) => ErrorCode::CORRUPT_MESSAGE,
            // What Kafka's ProduceRequest answers since KIP-724; UNSUPPORTED_FOR_MESSAGE_FORMAT
            // is for a log that is too old for the request, which no log is any more.
            RecordsError::OldFormat(_) | RecordsError::Invalid(_) | RecordsError::NotOneBatch => {
                ErrorCode::INVALID_RECORD
            }
            RecordsError::UnknownCompression(_) => ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
            RecordsError::TooLargeDecompressed { .. } => ErrorCode::MESSAGE_TOO_LARGE,
        }
    }
}
