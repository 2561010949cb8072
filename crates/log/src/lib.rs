//! The partition log on disk, in Kafka's own segment format.
//!
//! One [`Log`] is one partition: batches are appended and read back as slices. The code is
//! synchronous; any number of threads may share a log. Time is an argument everywhere.
//!
//! # What is promised
//!
//! - **Offsets** are given out in order and, as long as what the operating system was given
//!   reaches the disk, once. What was appended but not flushed survives a kill of the process; a
//!   power failure may take it, and then its offsets are given out again.
//! - **Flushed is durable.** [`Log::flush`] returns the offset up to which everything is on the
//!   device. Many callers share one flush. A produce with acks=all is answered once its last
//!   offset is below that; acks=1 after [`Log::append`].
//! - **Visibility is the reader's choice.** By default a reader sees what is appended, at once, as
//!   with a single Kafka replica; [`ReadLimit::until`] keeps it to what is flushed.
//! - **A kill at any byte** costs at most batches that were not flushed: a torn end is cut off at
//!   the next start ([`Recovery`]). A clean [`Log::close`] makes the next start skip the scan.
//! - **Damage is not repaired silently.** A segment that is missing, or a batch that was flushed
//!   and no longer fits its checksum where the end of the log is looked for, makes [`Log::open`]
//!   refuse the partition ([`LogError::Corrupt`] names file and position). A damaged batch
//!   elsewhere is an error for who reads it first, and for compaction. All files stay as they are:
//!   [`check`] shows what is lost and [`repair`] gives it up.
//! - **A full disk** fails the append ([`LogError::DiskFull`]); the log stays readable, and
//!   appends work again once there is room.
//! - **A failed flush is final.** After it nobody knows what is on the device, and the kernel
//!   forgets the pages it could not write. The log refuses appends and flushes
//!   ([`LogError::FlushFailed`]), stays readable, and must be opened again; opening writes what
//!   was not known to be flushed once more before it trusts it.
//!
//! # Files
//!
//! As in Kafka: `<base offset>.log`, `.index`, `.timeindex`, `.snapshot` (producer state) and
//! `leader-epoch-checkpoint`, so Kafka's tools read them; a snapshot has more behind what they read,
//! the batches before each producer's last one. Kohort's own: `recovery-point` and
//! `log-checkpoint`, which Kafka keeps for the whole data folder. The indexes of the newest
//! segment are in memory and written when it is rolled or closed.

mod cache;
mod checkpoint;
mod config;
mod damage;
mod epochs;
mod error;
mod files;
mod folder_lock;
mod index;
mod log;
mod producers;
mod scan;
mod segment;
mod snapshot;
mod storage;
mod validate;

pub use config::{CleanupPolicy, LogConfig};
pub use damage::{
    Checked, Damage, Repaired, begin_at, check, check_storage, repair, repair_storage,
};
pub use epochs::EpochEnd;
pub use error::{LogError, RecordRejection};
pub use folder_lock::FolderLock;
pub use log::{
    AbortedTransaction, Appended, Log, Maintenance, Origin, Read, ReadLimit, Recovery,
    TimestampOffset,
};
pub use producers::{ProducerBatch, ProducerState};
pub use storage::{DiskStorage, MemoryStorage, OpenFiles, Storage, StorageFile};
