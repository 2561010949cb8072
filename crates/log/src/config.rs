//! The settings of a log.

use kohort_wire::records::{Compression, TimestampType};

/// What happens to old data (`cleanup.policy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CleanupPolicy {
    /// Whole segments are deleted when they are too old or the log too large.
    #[default]
    Delete,
    /// Of each key the latest record is kept.
    Compact,
    /// Both.
    CompactAndDelete,
    /// Neither: everything is kept forever.
    Keep,
}

impl CleanupPolicy {
    /// Whether old segments are deleted.
    pub const fn deletes(self) -> bool {
        match self {
            CleanupPolicy::Delete | CleanupPolicy::CompactAndDelete => true,
            CleanupPolicy::Compact | CleanupPolicy::Keep => false,
        }
    }

    /// Whether only the latest record of a key is kept.
    pub const fn compacts(self) -> bool {
        match self {
            CleanupPolicy::Compact | CleanupPolicy::CompactAndDelete => true,
            CleanupPolicy::Delete | CleanupPolicy::Keep => false,
        }
    }
}

/// The settings of a log, under Kafka's names (topic settings) and with Kafka's defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment is rolled before it would grow beyond this.
    pub segment_bytes: u32,
    /// `segment.ms`: a segment is rolled when it spans more time.
    pub segment_ms: i64,
    /// `segment.jitter.ms`: by up to so much earlier, so that not all logs roll at once.
    pub segment_jitter_ms: i64,
    /// `index.interval.bytes`: how many bytes there are between two index entries, about.
    pub index_interval_bytes: u32,
    /// `cleanup.policy`.
    pub cleanup_policy: CleanupPolicy,
    /// `retention.ms`: segments older than this are deleted; −1: never.
    pub retention_ms: i64,
    /// `retention.bytes`: the oldest segments are deleted while the log is larger; −1: never.
    pub retention_bytes: i64,
    /// `delete.retention.ms`: how long a compacted log keeps tombstones.
    pub delete_retention_ms: i64,
    /// `min.cleanable.dirty.ratio`: compaction runs when so much of the log has not been compacted.
    pub min_cleanable_dirty_ratio: f64,
    /// `min.compaction.lag.ms`: newer records are not compacted away.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`: older records are compacted whatever the dirty ratio.
    pub max_compaction_lag_ms: i64,
    /// `max.message.bytes`: the largest batch that a client may append.
    pub max_message_bytes: u32,
    /// The largest batch that a client may append, decompressed, in bytes. Kafka knows no such
    /// limit: it unpacks a little at a time. Larger ones get MESSAGE_TOO_LARGE.
    pub max_decompressed_bytes: usize,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far behind the clock a timestamp may be.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far ahead of the clock a timestamp may be.
    pub timestamp_after_max_ms: i64,
    /// `compression.type`: `None` keeps what the producer chose.
    pub compression: Option<Compression>,
    /// `producer.id.expiration.ms` (a broker setting): when a silent idempotent producer is
    /// forgotten.
    pub producer_id_expiration_ms: i64,
    /// How many bytes of the newest batches stay in memory for consumers at the tail.
    pub cache_bytes: usize,
    /// How many bytes of keys one compaction may hold in memory
    /// (`log.cleaner.dedupe.buffer.size`).
    pub cleaner_buffer_bytes: usize,
}

impl LogConfig {
    /// How much time a segment may span before it is rolled. A compacted log rolls in time for
    /// `max.compaction.lag.ms`, since only closed segments are compacted (KIP-354).
    pub(crate) fn segment_span_ms(&self) -> i64 {
        if self.cleanup_policy.compacts() {
            self.segment_ms.min(self.max_compaction_lag_ms)
        } else {
            self.segment_ms
        }
    }
}

const HOUR_MS: i64 = 60 * 60 * 1000;

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * HOUR_MS,
            segment_jitter_ms: 0,
            index_interval_bytes: 4096,
            cleanup_policy: CleanupPolicy::Delete,
            retention_ms: 7 * 24 * HOUR_MS,
            retention_bytes: -1,
            delete_retention_ms: 24 * HOUR_MS,
            min_cleanable_dirty_ratio: 0.5,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            max_message_bytes: 1_048_588,
            max_decompressed_bytes: 64 << 20,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: HOUR_MS,
            compression: None,
            producer_id_expiration_ms: 24 * HOUR_MS,
            cache_bytes: 1 << 20,
            cleaner_buffer_bytes: 64 << 20,
        }
    }
}
