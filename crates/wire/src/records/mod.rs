//! Record batches (magic 2), as they stand in Produce and Fetch and in a log's files.
//!
//! - [`Batch`] is one batch as it came, its header read and its length checked: what a broker
//!   stores and what it may look at without touching the records.
//! - [`split`] cuts a byte string into batches.
//! - [`Batch::records`] decompresses (bounded) and gives [`Records`], iterated in place.
//! - [`BatchBuilder`] makes a batch.
//! - [`BatchMut`] sets the few fields of a header that a broker assigns.
//!
//! The older message formats (magic 0 and 1) are recognised and refused: no client of this decade
//! writes them, and Kafka 4 dropped them too (KIP-724).

mod batch;
mod builder;
mod compression;
mod control;
mod error;
mod header;
mod iter;
mod split;
mod varint;
mod xerial;

pub use batch::{Batch, BatchMut};
pub use builder::{BatchBuilder, BuildError};
pub use compression::{Compression, Compressor, Level};
pub use control::{ControlRecord, EndTransactionMarker};
pub use error::RecordsError;
pub use header::{BatchHeader, HEADER_LENGTH, LOG_OVERHEAD, TimestampType};
pub use iter::{Header, Headers, Record, RecordIter, Records};
pub use split::{Batches, produced, split};

/// No timestamp.
pub const NO_TIMESTAMP: i64 = -1;
/// No producer id: the batch is not idempotent.
pub const NO_PRODUCER_ID: i64 = -1;
/// No producer epoch.
pub const NO_PRODUCER_EPOCH: i16 = -1;
/// No sequence number.
pub const NO_SEQUENCE: i32 = -1;
/// No leader epoch: what producers send.
pub const NO_PARTITION_LEADER_EPOCH: i32 = -1;

/// The sequence number `increment` after `sequence`; after the largest comes 0.
pub const fn increment_sequence(sequence: i32, increment: i32) -> i32 {
    (sequence as i64 + increment as i64).rem_euclid(1 << 31) as i32
}
