//! The settings of topics. Names, types, defaults and bounds are Kafka's (`LogConfig`).

use super::definition::{Definition, Kind::*, Rule::*, Table, Values, View};
use super::{without_effect, words::*};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;

/// All settings of a topic.
pub(crate) const TOPIC: Table = Table {
    without_effect: without_effect::TOPIC,
    with_effect: &[
    Definition::new("cleanup.policy", List, "delete", "What happens to old records: delete them by age and size, compact them to the last of each key, or both; with an empty list, keep them forever.")
        .rule(SomeOf(Cleanup::WORDS)).fallbacks(&[("log.cleanup.policy", 1)]),
    Definition::new("compression.gzip.level", Int, "-1", "Kept for Kafka's sake; batches that are compressed again have gzip's usual level.")
        .rule(Between(-1, 9)).fallbacks(&[("compression.gzip.level", 1)]),
    Definition::new("compression.lz4.level", Int, "9", "Kept for Kafka's sake; batches that are compressed again have lz4's usual level.")
        .rule(Between(1, 17)).fallbacks(&[("compression.lz4.level", 1)]),
    Definition::new("compression.type", Text, "producer", "How batches are stored: as the producer compressed them, or compressed again in one way.")
        .rule(OneOf(StoredCompression::WORDS)).fallbacks(&[("compression.type", 1)]),
    Definition::new("compression.zstd.level", Int, "3", "Kept for Kafka's sake; batches that are compressed again have zstd's usual level.")
        .rule(Between(-131_072, 22)).fallbacks(&[("compression.zstd.level", 1)]),
    Definition::new("delete.retention.ms", Long, "86400000", "How long a compacted topic keeps the tombstone of a key.")
        .rule(AtLeast(0)).fallbacks(&[("log.cleaner.delete.retention.ms", 1)]),
    Definition::new("file.delete.delay.ms", Long, "60000", "Accepted without effect: files of deleted segments go at once, and reads under way still finish.")
        .rule(AtLeast(0)).fallbacks(&[("log.segment.delete.delay.ms", 1)]),
    Definition::new("flush.messages", Long, "9223372036854775807", "After how many records the log is flushed. The record that reaches the number is flushed before it is acknowledged, also with acks=1.")
        .rule(AtLeast(1)).fallbacks(&[("log.flush.interval.messages", 1)]),
    Definition::new("flush.ms", Long, "9223372036854775807", "How long a record may stay unflushed when no producer waits for it.")
        .rule(AtLeast(0)).fallbacks(&[("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)]),
    Definition::new("index.interval.bytes", Int, "4096", "One index entry for about so many bytes of the log.")
        .rule(AtLeast(0)).fallbacks(&[("log.index.interval.bytes", 1)]),
    Definition::new("internal.segment.bytes", Int, "", "The size of a segment, without the lower bound of segment.bytes. For tests.")
        .unset().rule(AtLeast(1)),
    Definition::new("max.compaction.lag.ms", Long, "9223372036854775807", "The longest that a record stays out of compaction. The newest segment is closed in time for it.")
        .rule(AtLeast(1)).fallbacks(&[("log.cleaner.max.compaction.lag.ms", 1)]),
    Definition::new("max.message.bytes", Int, "1048588", "The largest batch that may be appended, as it is stored.")
        .rule(AtLeast(0)).fallbacks(&[("message.max.bytes", 1)]),
    Definition::new("message.timestamp.after.max.ms", Long, "3600000", "How far in the future a record's timestamp may lie.")
        .rule(AtLeast(0)).fallbacks(&[("log.message.timestamp.after.max.ms", 1)]),
    Definition::new("message.timestamp.before.max.ms", Long, "9223372036854775807", "How far in the past a record's timestamp may lie.")
        .rule(AtLeast(0)).fallbacks(&[("log.message.timestamp.before.max.ms", 1)]),
    Definition::new("message.timestamp.type", Text, "CreateTime", "Whether records keep the producer's timestamps or get the time of their append.")
        .rule(OneOf(Timestamps::WORDS)).fallbacks(&[("log.message.timestamp.type", 1)]),
    Definition::new("min.cleanable.dirty.ratio", Double, "0.5", "How much of a compacted log has to be new before it is compacted again.")
        .rule(Ratio).fallbacks(&[("log.cleaner.min.cleanable.ratio", 1)]),
    Definition::new("min.compaction.lag.ms", Long, "0", "How long a record stays out of compaction at least.")
        .rule(AtLeast(0)).fallbacks(&[("log.cleaner.min.compaction.lag.ms", 1)]),
    Definition::new("min.insync.replicas", Int, "1", "Kafka's number of replicas that have to have a record. Of the one replica that there is, never more than one is asked for.")
        .rule(AtLeast(1)).fallbacks(&[("min.insync.replicas", 1)]),
    Definition::new("preallocate", Bool, "false", "Kept for Kafka's sake; files grow as they are written.")
        .fallbacks(&[("log.preallocate", 1)]),
    Definition::new("retention.bytes", Long, "-1", "How large a partition may grow before its oldest segments go; -1: no limit.")
        .fallbacks(&[("log.retention.bytes", 1)]),
    Definition::new("retention.ms", Long, "604800000", "How old records may grow before their segment goes; -1: no limit.")
        .rule(AtLeast(-1)).fallbacks(&[("log.retention.ms", 1), ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)]),
    Definition::new("segment.bytes", Int, "1073741824", "The size at which a segment is closed and the next begun.")
        .rule(AtLeast(1 << 20)).fallbacks(&[("log.segment.bytes", 1)]),
    Definition::new("segment.index.bytes", Int, "10485760", "Kept for Kafka's sake; an index grows with its segment.")
        .rule(AtLeast(4)).fallbacks(&[("log.index.size.max.bytes", 1)]),
    Definition::new("segment.jitter.ms", Long, "0", "By how much earlier than segment.ms a segment may be closed, so that not all are closed at once.")
        .rule(AtLeast(0)).fallbacks(&[("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)]),
    Definition::new("segment.ms", Long, "604800000", "The age at which a segment is closed and the next begun.")
        .rule(AtLeast(1)).fallbacks(&[("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)]),
    Definition::new("unclean.leader.election.enable", Bool, "false", "Kept for Kafka's sake; there is one replica.")
        .fallbacks(&[("unclean.leader.election.enable", 1)]),
],
};

/// The values that hold for a topic: its own, then the broker's, then the defaults.
pub(crate) fn effective(own: &Values, broker: View<'_>) -> Values {
    let mut values = Values::new();
    for definition in TOPIC.iter() {
        let value = match own.get(definition.name) {
            Some(value) => Some(value.clone()),
            None => inherited(definition, broker).map(|(_, value)| value),
        };
        values.extend(value.map(|value| (definition.name.to_owned(), value)));
    }
    values
}

/// The broker's setting that a topic's setting takes its value from, when it is set.
pub(crate) fn inherited(
    definition: &Definition,
    broker: View<'_>,
) -> Option<(&'static str, String)> {
    let mut fallbacks = definition.fallbacks.iter();
    fallbacks.find_map(|&(name, factor)| {
        let value = broker.values.get(name)?;
        let value = match (factor, value.parse::<i64>()) {
            (1, _) | (_, Err(_)) => value.clone(),
            (factor, Ok(number)) if number >= 0 => number.saturating_mul(factor).to_string(),
            (_, Ok(number)) => number.to_string(),
        };
        Some((name, value))
    })
}

/// What is wrong with the settings of `__consumer_offsets`, if anything is: offsets must not be
/// deleted because they are old.
pub(crate) fn check_offsets_topic(own: &Values, broker: View<'_>) -> Result<(), String> {
    let values = effective(own, broker);
    let view = View {
        table: TOPIC,
        values: &values,
    };
    match view.words::<Cleanup>("cleanup.policy").as_slice() {
        [Cleanup::Compact] => Ok(()),
        _ => Err(
            "cleanup.policy of __consumer_offsets has to be compact, or committed offsets would \
             be lost"
                .to_owned(),
        ),
    }
}
