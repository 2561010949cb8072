//! A topic's settings as its partitions and their logs take them.

use kohort_log::{CleanupPolicy, LogConfig};
use kohort_wire::records::{Compression, TimestampType};

use crate::settings::{
    Cleanup, StoredCompression, TOPIC, Timestamps, Values, View, effective_topic,
};

/// How much memory all partitions together keep of their newest batches, at most.
const CACHE_BYTES: usize = 64 << 20;

/// How much of it one partition may have when there are so many. It changes in few steps, so that
/// not every new topic changes the settings of all.
pub(crate) fn cache_bytes(partition_count: usize) -> usize {
    (CACHE_BYTES / partition_count.max(1).next_power_of_two()).clamp(16 << 10, 1 << 20)
}

/// The settings of a topic's partitions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartitionConfig {
    pub(crate) log: LogConfig,
    /// `flush.messages`.
    pub(crate) flush_messages: i64,
    /// `flush.ms`.
    pub(crate) flush_ms: i64,
}

/// The settings of a topic's partitions, from its own and the broker's.
pub(crate) fn partition_config(
    topic: &str,
    own: &Values,
    broker: View<'_>,
    cache_bytes: usize,
) -> PartitionConfig {
    let values = effective_topic(own, broker);
    let view = View {
        table: TOPIC,
        values: &values,
    };
    let is_offsets = topic == super::OFFSETS_TOPIC;
    let policy = view.words("cleanup.policy");
    let cleanup_policy = match (
        policy.contains(&Cleanup::Compact),
        policy.contains(&Cleanup::Delete),
    ) {
        // Whatever is set: committed offsets are not deleted because they are old.
        _ if is_offsets => CleanupPolicy::Compact,
        (true, true) => CleanupPolicy::CompactAndDelete,
        (true, false) => CleanupPolicy::Compact,
        (false, true) => CleanupPolicy::Delete,
        (false, false) => CleanupPolicy::Keep,
    };
    let timestamp_type = match view.word("message.timestamp.type") {
        Timestamps::LogAppendTime => TimestampType::LogAppendTime,
        Timestamps::CreateTime => TimestampType::CreateTime,
    };
    let compression = match view.word("compression.type") {
        StoredCompression::Uncompressed => Some(Compression::None),
        StoredCompression::Gzip => Some(Compression::Gzip),
        StoredCompression::Snappy => Some(Compression::Snappy),
        StoredCompression::Lz4 => Some(Compression::Lz4),
        StoredCompression::Zstd => Some(Compression::Zstd),
        StoredCompression::Producer => None,
    };
    let segment_bytes = view
        .optional_long("internal.segment.bytes")
        .unwrap_or_else(|| view.long("segment.bytes"));
    let log = LogConfig {
        segment_bytes: segment_bytes as u32,
        segment_ms: view.long("segment.ms"),
        segment_jitter_ms: view.long("segment.jitter.ms"),
        index_interval_bytes: view.long("index.interval.bytes") as u32,
        cleanup_policy,
        retention_ms: view.long("retention.ms"),
        retention_bytes: view.long("retention.bytes"),
        delete_retention_ms: view.long("delete.retention.ms"),
        min_cleanable_dirty_ratio: view.double("min.cleanable.dirty.ratio"),
        min_compaction_lag_ms: view.long("min.compaction.lag.ms"),
        max_compaction_lag_ms: view.long("max.compaction.lag.ms"),
        max_message_bytes: view.long("max.message.bytes") as u32,
        timestamp_type,
        timestamp_before_max_ms: view.long("message.timestamp.before.max.ms"),
        timestamp_after_max_ms: view.long("message.timestamp.after.max.ms"),
        compression,
        producer_id_expiration_ms: broker.long("producer.id.expiration.ms"),
        // Only the coordinator reads the groups' topic, and it does so once.
        cache_bytes: if is_offsets { 0 } else { cache_bytes },
        ..LogConfig::default()
    };
    PartitionConfig {
        log,
        flush_messages: view.long("flush.messages"),
        flush_ms: view.long("flush.ms"),
    }
}
