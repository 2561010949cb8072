//! Compaction keeps the latest record of each key, and the offsets.

mod common;

use std::collections::BTreeMap;

use common::{
    ALL, NOW, Seen, append, batch, batch_with, batches_from, records_from, sim_disk::SimDisk, small,
};
use kohort_log::{CleanupPolicy, Log, LogConfig, LogError, Origin};
use kohort_wire::{ErrorCode, records::Compression};
use proptest::prelude::*;

fn config() -> LogConfig {
    LogConfig {
        cleanup_policy: CleanupPolicy::Compact,
        min_cleanable_dirty_ratio: 0.0,
        delete_retention_ms: 10_000,
        ..small()
    }
}

fn set(log: &Log, key: &str, value: Option<&str>) -> i64 {
    append(log, &batch(&[(Some(key), value, NOW)]))
        .unwrap()
        .base_offset
}

/// Fills the newest segment, which is never compacted, until there is another one.
fn roll(log: &Log) {
    let segments = log.segment_count();
    while log.segment_count() == segments {
        set(log, "filler", Some("of segments"));
    }
}

fn without_filler(log: &Log) -> Vec<Seen> {
    let mut records = records_from(log, 0);
    records.retain(|record| record.key.as_deref() != Some("filler"));
    records
}

#[test]
fn the_latest_record_of_each_key_stays_where_it_was() {
    let log = Log::in_memory(config());
    let mut latest = BTreeMap::new();
    for i in 0..100 {
        let key = (i * i % 7).to_string();
        latest.insert(
            key.clone(),
            (set(&log, &key, Some(&i.to_string())), i.to_string()),
        );
    }
    roll(&log);
    let done = log.maintain(NOW).unwrap();
    assert!(done.segments_compacted > 3 && done.bytes_compacted > 1000);
    let kept: BTreeMap<_, _> = without_filler(&log)
        .into_iter()
        .map(|record| (record.key.unwrap(), (record.offset, record.value.unwrap())))
        .collect();
    assert_eq!(kept, latest);
    assert_eq!(without_filler(&log).len(), latest.len());
    // A second time there is nothing to do.
    assert_eq!(log.maintain(NOW).unwrap().segments_compacted, 0);
}

#[test]
fn reading_from_an_offset_that_is_gone_goes_on_at_the_next_one() {
    let log = Log::in_memory(config());
    for i in 0..50 {
        set(&log, "k", Some(&i.to_string()));
    }
    roll(&log);
    log.maintain(NOW).unwrap();
    for from in 0..50 {
        assert_eq!(records_from(&log, from)[0].value.as_deref(), Some("49"));
        let first = &batches_from(&log, from, ALL).unwrap()[0];
        assert!(first.header().last_offset() >= from);
    }
}

#[test]
fn a_tombstone_removes_its_key_and_stays_for_a_while() {
    let log = Log::in_memory(config());
    set(&log, "a", Some("1"));
    set(&log, "b", Some("1"));
    let tombstone = set(&log, "a", None);
    roll(&log);
    log.maintain(NOW).unwrap();
    let seen = without_filler(&log);
    assert_eq!(seen.len(), 2);
    assert_eq!(
        (seen[1].offset, &seen[1].value, seen[1].timestamp),
        (tombstone, &None, NOW)
    );
    // Within delete.retention.ms of its first compaction it stays, and then it goes.
    roll(&log);
    log.maintain(NOW + 9_999).unwrap();
    assert_eq!(without_filler(&log).len(), 2);
    roll(&log);
    log.maintain(NOW + 10_000).unwrap();
    assert_eq!(without_filler(&log).len(), 1);
}

#[test]
fn the_last_batch_of_a_producer_stays_if_only_its_header() {
    let disk = SimDisk::new();
    let log = Log::with_storage(disk.storage(), config()).unwrap();
    let sent = batch_with(
        Compression::Zstd,
        (9, 2, 40),
        &[(Some("k"), Some("v"), NOW); 3],
    );
    let offset = append(&log, &sent).unwrap().base_offset;
    set(&log, "k", Some("newer"));
    roll(&log);
    log.maintain(NOW).unwrap();
    let batches = batches_from(&log, 0, ALL).unwrap();
    let header = *batches[0].header();
    assert_eq!(
        (
            header.producer_id,
            header.count,
            header.base_offset,
            header.last_offset()
        ),
        (9, 0, offset, offset + 2)
    );
    for log in [
        Log::with_storage(disk.kill().storage(), config()).unwrap(),
        log,
    ] {
        let again = append(&log, &sent).unwrap();
        assert_eq!((again.base_offset, again.duplicate), (offset, true));
        let next = batch_with(Compression::None, (9, 2, 43), &[(Some("k"), None, NOW)]);
        assert!(!append(&log, &next).unwrap().duplicate);
    }
}

#[test]
fn compression_and_producers_survive_a_batch_that_is_written_anew() {
    for compression in Compression::ALL {
        let log = Log::in_memory(config());
        let entries = [
            (Some("old"), Some("1"), NOW),
            (Some("new"), Some("1"), NOW + 1),
        ];
        append(&log, &batch_with(compression, (3, 0, 0), &entries)).unwrap();
        set(&log, "old", Some("2"));
        roll(&log);
        log.maintain(NOW).unwrap();
        let header = *batches_from(&log, 0, ALL).unwrap()[0].header();
        assert_eq!((header.count, header.compression()), (1, Ok(compression)));
        assert_eq!(
            (
                header.producer_id,
                header.base_sequence,
                header.last_offset_delta
            ),
            (3, 0, 1)
        );
        let seen = &without_filler(&log)[0];
        assert_eq!(
            (seen.offset, seen.timestamp, seen.key.as_deref()),
            (1, NOW + 1, Some("new"))
        );
    }
}

#[test]
fn compaction_waits_until_enough_is_dirty_or_old_enough() {
    let mut config = LogConfig {
        min_cleanable_dirty_ratio: 0.5,
        ..config()
    };
    let log = Log::in_memory(config.clone());
    for i in 0..60 {
        set(&log, &i.to_string(), Some("v"));
    }
    roll(&log);
    assert!(log.maintain(NOW).unwrap().segments_compacted > 0);
    roll(&log);
    assert_eq!(log.maintain(NOW).unwrap().segments_compacted, 0);
    config.max_compaction_lag_ms = 1000;
    log.set_config(config.clone());
    assert_eq!(log.maintain(NOW + 1000).unwrap().segments_compacted, 0);
    config.min_compaction_lag_ms = 5000;
    log.set_config(config.clone());
    assert_eq!(log.maintain(NOW + 1001).unwrap().segments_compacted, 0);
    assert!(log.maintain(NOW + 6000).unwrap().segments_compacted > 0);
}

#[test]
fn what_was_compacted_away_is_not_served_from_memory() {
    let log = Log::in_memory(LogConfig {
        cache_bytes: 1 << 20,
        ..config()
    });
    for i in 0..60 {
        set(&log, &(i % 3).to_string(), Some("v"));
    }
    roll(&log);
    log.maintain(NOW).unwrap();
    assert_eq!(without_filler(&log).len(), 3);
    // What is in the newest segment still comes from memory.
    assert!(log.is_cached(log.end_offset() - 1));
    // Readers of the files and of memory agree, whatever happens to the segments.
    for i in 0..60 {
        set(&log, &(i % 4).to_string(), Some("w"));
        let cached = records_from(&log, log.start_offset());
        if i % 7 == 0 {
            log.maintain(NOW).unwrap();
        }
        if i % 13 == 0 {
            log.delete_records(log.end_offset() - 5).unwrap();
        }
        let mut after = records_from(&log, log.start_offset());
        log.drop_cache();
        assert_eq!(after, records_from(&log, log.start_offset()));
        after.retain(|record| !cached.contains(record));
        assert_eq!(after, []);
    }
}

#[test]
fn records_without_timestamps_wait_for_the_lags_by_the_age_of_their_file() {
    let untimed = |log: &Log, count: usize| {
        for i in 0..count {
            append(log, &batch(&[(Some(&(i % 3).to_string()), Some("v"), -1)])).unwrap();
        }
    };
    let log = Log::in_memory(LogConfig {
        min_compaction_lag_ms: 5000,
        ..config()
    });
    untimed(&log, 60);
    assert_eq!(log.maintain(NOW + 4999).unwrap().segments_compacted, 0);
    assert!(log.maintain(NOW + 5000).unwrap().segments_compacted > 0);

    let log = Log::in_memory(LogConfig {
        min_cleanable_dirty_ratio: 1.0,
        max_compaction_lag_ms: 5000,
        ..config()
    });
    untimed(&log, 60);
    assert_eq!(log.maintain(NOW + 5000).unwrap().segments_compacted, 0);
    assert!(log.maintain(NOW + 5001).unwrap().segments_compacted > 0);
}

#[test]
fn no_record_stays_out_of_compaction_for_longer_than_the_largest_lag() {
    // In the newest segment of a log to which nobody appends, with and without timestamps.
    for timestamp in [NOW, -1] {
        let disk = SimDisk::new();
        let config = LogConfig {
            segment_bytes: 1 << 20,
            min_cleanable_dirty_ratio: 1.0,
            max_compaction_lag_ms: 5000,
            ..config()
        };
        let log = Log::with_storage(disk.storage(), config.clone()).unwrap();
        for i in 0..30 {
            append(
                &log,
                &batch(&[(Some(&(i % 3).to_string()), Some("v"), timestamp)]),
            )
            .unwrap();
        }
        log.maintain(NOW + 5000).unwrap();
        assert_eq!((log.segment_count(), records_from(&log, 0).len()), (1, 30));
        log.maintain(NOW + 5001).unwrap();
        assert_eq!(records_from(&log, 0).len(), 3);
        // An empty segment is not rolled again.
        log.maintain(NOW + 50_000).unwrap();
        assert_eq!(log.segment_count(), 2);
    }
    // A log that is written to rolls at the next append.
    let log = Log::in_memory(LogConfig {
        segment_bytes: 1 << 20,
        max_compaction_lag_ms: 5000,
        ..config()
    });
    for i in 0..30 {
        append(&log, &batch(&[(Some("k"), Some("v"), NOW + i * 1000)])).unwrap();
    }
    assert_eq!(log.segment_count(), 5);
    // A segment with an old record behind one with young ones counts.
    let log = Log::in_memory(LogConfig {
        min_cleanable_dirty_ratio: 1.0,
        max_compaction_lag_ms: 50_000,
        ..config()
    });
    for i in 0..60 {
        append(&log, &batch(&[(Some("k"), Some("v"), NOW - i * 1000)])).unwrap();
    }
    assert!(log.maintain(NOW).unwrap().segments_compacted > 0);
}

#[test]
fn a_compacted_topic_takes_no_record_without_a_key() {
    let log = Log::in_memory(config());
    let entries = [
        (Some("k"), None, NOW),
        (None, Some("v"), NOW),
        (None, None, NOW),
    ];
    match append(&log, &batch(&entries)).unwrap_err() {
        kohort_log::LogError::Rejected { code, records, .. } => {
            assert_eq!(code, ErrorCode::INVALID_RECORD);
            assert_eq!(records.iter().map(|r| r.index).collect::<Vec<_>>(), [1, 2]);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn segments_that_compaction_left_small_become_one_the_next_time() {
    let log = Log::in_memory(config());
    for i in 0..200 {
        set(&log, &(i % 3).to_string(), Some("v"));
    }
    assert!(log.segment_count() > 20);
    log.maintain(NOW).unwrap();
    roll(&log);
    log.maintain(NOW).unwrap();
    assert!(log.segment_count() < 5, "{}", log.segment_count());
}

/// The state of a group may be larger than a segment.
#[test]
fn a_batch_of_the_coordinator_may_be_larger_than_a_segment() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path(), config()).unwrap();
    let long = "v".repeat(2_000);
    let huge = batch(&[(Some("a"), Some(&long), NOW)]);
    let appended = |log: &Log, batches: &[u8]| log.append(batches, Origin::Coordinator, 0, NOW);
    for round in 0..3 {
        set(&log, "b", Some(&format!("{round}")));
        appended(&log, &huge).unwrap();
    }
    // Several batches can be appended one after the other.
    let several = [&huge[..], &huge[..]].concat();
    for (refused, origin) in [
        (&several[..], Origin::Coordinator),
        (&huge[..], Origin::Client),
    ] {
        let refused = log.append(refused, origin, 0, NOW).unwrap_err();
        assert!(matches!(refused, LogError::LargerThanSegment { .. }));
    }
    roll(&log);
    log.maintain(NOW).unwrap();
    log.close().unwrap();
    let log = Log::open(folder.path(), config()).unwrap();
    let kept = without_filler(&log);
    let kept: Vec<_> = kept
        .iter()
        .map(|seen| (seen.offset, seen.value.as_deref()))
        .collect();
    assert_eq!(kept, [(4, Some("2")), (5, Some(&*long))]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn compacted_again_and_again_with_little_memory_it_holds_what_a_map_holds(
        rounds in proptest::collection::vec(
            proptest::collection::vec((0..8u8, any::<bool>(), 0..5usize), 1..40),
            1..5,
        ),
        cleaner_buffer_bytes in prop_oneof![Just(100usize), Just(400), Just(1 << 20)],
    ) {
        let log = Log::in_memory(LogConfig { cleaner_buffer_bytes, ..config() });
        let mut map = BTreeMap::new();
        for (round, sets) in rounds.into_iter().enumerate() {
            for (index, (key, is_set, compression)) in sets.into_iter().enumerate() {
                let (key, value) = (key.to_string(), format!("{round}-{index}"));
                let value = is_set.then_some(value.as_str());
                let entries = [(Some(key.as_str()), value, NOW), (Some("other"), Some("x"), NOW)];
                let bytes = batch_with(Compression::ALL[compression], (-1, -1, -1), &entries);
                let offset = append(&log, &bytes).unwrap().base_offset;
                map.insert(key.clone(), (offset, value.map(str::to_owned)));
            }
            for _ in 0..4 {
                log.maintain(NOW).unwrap();
            }
            let mut read = BTreeMap::new();
            for record in records_from(&log, 0) {
                if record.key.as_deref() != Some("other") {
                    read.insert(record.key.unwrap(), (record.offset, record.value));
                }
            }
            prop_assert_eq!(&read, &map);
        }
    }
}
