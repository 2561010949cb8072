//! Deleting by time, by size, and on request.

mod common;

use common::{ALL, NOW, append, batch, put, records_from, sim_disk::SimDisk, small, values_from};
use kohort_log::{CleanupPolicy, Log, LogConfig};
use kohort_wire::ErrorCode;

fn filled(config: LogConfig) -> (SimDisk, Log) {
    let disk = SimDisk::new();
    let log = Log::with_storage(disk.storage(), config).unwrap();
    for i in 0..60 {
        append(
            &log,
            &batch(&[(None, Some(&i.to_string()), NOW + i * 1000)]),
        )
        .unwrap();
    }
    (disk, log)
}

fn logs(disk: &SimDisk) -> usize {
    disk.names()
        .iter()
        .filter(|name| name.ends_with(".log"))
        .count()
}

#[test]
fn segments_are_deleted_when_all_their_records_are_too_old() {
    let config = LogConfig {
        retention_ms: 20_000,
        ..small()
    };
    let (disk, log) = filled(config.clone());
    let segments = log.segment_count();
    log.maintain(NOW + 59_000).unwrap();
    let start = log.start_offset();
    // Offset 39 is just not too old; it keeps its segment.
    assert!((30..=39).contains(&start), "{start}");
    assert!(log.segment_count() < segments);
    assert_eq!(logs(&disk), log.segment_count());
    assert_eq!(values_from(&log, start)[0], start.to_string());
    let error = log.read(start - 1, ALL).unwrap_err();
    assert_eq!(error.error_code(), ErrorCode::OFFSET_OUT_OF_RANGE);
    let log = Log::with_storage(disk.storage(), config).unwrap();
    assert_eq!((log.start_offset(), log.end_offset()), (start, 60));
}

#[test]
fn a_log_in_which_everything_is_too_old_is_emptied_and_goes_on_at_its_end() {
    let config = LogConfig {
        retention_ms: 20_000,
        ..small()
    };
    let (disk, log) = filled(config.clone());
    let done = log.maintain(NOW + 200_000).unwrap();
    assert!(done.segments_deleted > 1);
    assert_eq!(
        (log.start_offset(), log.end_offset(), log.size()),
        (60, 60, 0)
    );
    for log in [
        log,
        Log::with_storage(disk.kill().storage(), config).unwrap(),
    ] {
        assert_eq!((log.start_offset(), log.end_offset()), (60, 60));
        assert_eq!(put(&log, "next"), 60);
        assert_eq!(values_from(&log, 60), ["next"]);
    }
}

#[test]
fn the_oldest_segments_are_deleted_while_the_log_is_larger_than_wanted() {
    let (_, log) = filled(LogConfig {
        retention_bytes: 1200,
        retention_ms: -1,
        ..small()
    });
    assert!(log.size() > 3000);
    log.maintain(NOW).unwrap();
    assert!((1200..1700).contains(&log.size()), "{}", log.size());
    assert_eq!(
        records_from(&log, log.start_offset()).len() as i64,
        60 - log.start_offset()
    );
    let (_, log) = filled(LogConfig {
        retention_bytes: 0,
        retention_ms: -1,
        ..small()
    });
    log.maintain(NOW).unwrap();
    // Nothing may be kept, so the newest segment goes too, as in Kafka.
    assert_eq!((log.segment_count(), log.size()), (1, 0));
    assert_eq!((log.start_offset(), log.end_offset()), (60, 60));
}

/// A log on a real disk whose records have these timestamps, in order and over again.
fn with_timestamps(folder: &std::path::Path, config: &LogConfig, timestamps: &[i64]) -> Log {
    let log = Log::open(folder, config.clone()).unwrap();
    for i in 0..60 {
        let (key, timestamp) = ((i % 3).to_string(), timestamps[i % timestamps.len()]);
        append(&log, &batch(&[(Some(&key), Some("v"), timestamp)])).unwrap();
    }
    log
}

#[test]
fn records_without_timestamps_are_as_old_as_their_file() {
    let config = LogConfig {
        retention_ms: 20_000,
        ..small()
    };
    let folder = tempfile::tempdir().unwrap();
    let log = with_timestamps(folder.path(), &config, &[-1]);
    log.maintain(NOW + 20_000).unwrap();
    assert_eq!(log.start_offset(), 0);
    log.maintain(NOW + 20_001).unwrap();
    assert_eq!((log.start_offset(), log.size()), (60, 0));
    // After a restart the file system knows.
    let folder = tempfile::tempdir().unwrap();
    with_timestamps(folder.path(), &config, &[-1])
        .close()
        .unwrap();
    let log = Log::open(folder.path(), config).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap().as_millis() as i64;
    log.maintain(now).unwrap();
    assert_eq!(log.start_offset(), 0);
    log.maintain(now + 30_000).unwrap();
    assert_eq!((log.start_offset(), log.size()), (60, 0));
}

#[test]
fn one_timestamp_is_enough_for_a_segment_and_the_latest_counts() {
    let config = LogConfig {
        retention_ms: 20_000,
        ..small()
    };
    for timestamps in [[-1, NOW + 50_000], [NOW + 50_000, -1]] {
        let folder = tempfile::tempdir().unwrap();
        let log = with_timestamps(folder.path(), &config, &timestamps);
        log.maintain(NOW + 70_000).unwrap();
        assert_eq!(log.start_offset(), 0, "{timestamps:?}");
        log.maintain(NOW + 70_001).unwrap();
        assert_eq!(log.start_offset(), 60, "{timestamps:?}");
    }
}

#[test]
fn records_without_timestamps_do_not_keep_what_comes_after_them() {
    let config = LogConfig {
        retention_ms: 20_000,
        ..small()
    };
    let log = Log::in_memory(config);
    for i in 0..60 {
        let timestamp = if i < 20 { -1 } else { NOW };
        append(&log, &batch(&[(None, Some(&i.to_string()), timestamp)])).unwrap();
    }
    log.maintain(NOW + 20_001).unwrap();
    assert_eq!(log.start_offset(), 60);
}

#[test]
fn a_segment_that_compaction_wrote_is_as_old_as_those_it_replaced() {
    let config = LogConfig {
        cleanup_policy: CleanupPolicy::CompactAndDelete,
        min_cleanable_dirty_ratio: 0.0,
        retention_ms: 20_000,
        ..small()
    };
    let folder = tempfile::tempdir().unwrap();
    let log = with_timestamps(folder.path(), &config, &[-1]);
    let later = NOW + 19_000;
    assert!(log.maintain(later).unwrap().segments_compacted > 0);
    log.maintain(NOW + 20_001).unwrap();
    assert_eq!(log.start_offset(), 60);
}

#[test]
fn a_compacted_log_is_not_deleted_from_unless_its_policy_says_so() {
    for policy in [CleanupPolicy::Compact, CleanupPolicy::CompactAndDelete] {
        let disk = SimDisk::new();
        let config = LogConfig {
            cleanup_policy: policy,
            retention_ms: 1000,
            ..small()
        };
        let log = Log::with_storage(disk.storage(), config).unwrap();
        for i in 0..60 {
            append(&log, &batch(&[(Some(&i.to_string()), Some("v"), NOW)])).unwrap();
        }
        log.maintain(NOW + 100_000).unwrap();
        let left = records_from(&log, log.start_offset()).len();
        assert_eq!(left, if policy.deletes() { 0 } else { 60 });
    }
}

#[test]
fn deleted_records_are_gone_at_once_and_stay_gone_and_the_space_follows() {
    for before in [1, 17, 59, 60, -1] {
        let (disk, log) = filled(LogConfig {
            retention_ms: -1,
            ..small()
        });
        let start = if before == -1 { 60 } else { before };
        assert_eq!(log.delete_records(before).unwrap(), start);
        assert_eq!(log.delete_records(start - 1).unwrap(), start);
        assert_eq!(log.start_offset(), start);
        let error = log.read(start - 1, ALL).unwrap_err();
        assert_eq!(error.error_code(), ErrorCode::OFFSET_OUT_OF_RANGE);
        assert_eq!(values_from(&log, start).len() as i64, 60 - start);
        assert_eq!(log.earliest().offset, start);
        let segments = log.segment_count();
        log.maintain(NOW).unwrap();
        assert_eq!(log.segment_count() < segments, start > 10, "{start}");
        let after = disk.power_failure(&mut |_| 0);
        let log = Log::with_storage(after.storage(), small()).unwrap();
        assert_eq!((log.start_offset(), log.end_offset()), (start, 60));
    }
}

#[test]
fn records_beyond_the_end_cannot_be_deleted() {
    let (_, log) = filled(small());
    for before in [61, -2] {
        let error = log.delete_records(before).unwrap_err();
        assert_eq!(error.error_code(), ErrorCode::OFFSET_OUT_OF_RANGE);
    }
}

#[test]
fn a_reader_of_a_deleted_segment_finishes_in_peace() {
    let (_, log) = filled(LogConfig {
        retention_bytes: 0,
        retention_ms: -1,
        ..small()
    });
    let read = log.read(0, ALL).unwrap();
    log.maintain(NOW).unwrap();
    assert!(!read.into_bytes().is_empty());
}

#[test]
fn a_segment_is_rolled_when_it_spans_too_much_time() {
    let log = Log::in_memory(LogConfig {
        segment_ms: 10_000,
        ..LogConfig::default()
    });
    for i in 0..60 {
        append(
            &log,
            &batch(&[(None, Some(&i.to_string()), NOW + i * 1000)]),
        )
        .unwrap();
    }
    assert_eq!(log.segment_count(), 6);
    assert_eq!(values_from(&log, 0).len(), 60);
}

#[test]
fn jitter_has_logs_roll_at_different_times_and_never_late() {
    let counts: std::collections::BTreeSet<_> = (0..5)
        .map(|_| {
            let folder = tempfile::tempdir().unwrap();
            let config = LogConfig {
                segment_ms: 100_000,
                segment_jitter_ms: 90_000,
                ..LogConfig::default()
            };
            let log = Log::open(folder.path(), config).unwrap();
            for i in 0..400 {
                let entry = (None, Some("v"), NOW + i * 1000);
                log.append(
                    &batch(&[entry]),
                    kohort_log::Origin::Client,
                    0,
                    NOW + i * 1000,
                )
                .unwrap();
            }
            assert!(
                (4..40).contains(&log.segment_count()),
                "{}",
                log.segment_count()
            );
            log.segment_count()
        })
        .collect();
    assert!(counts.len() > 1, "{counts:?}");
}

#[test]
fn silent_producers_are_forgotten() {
    let log = Log::in_memory(LogConfig {
        producer_id_expiration_ms: 1000,
        ..LogConfig::default()
    });
    let bytes = common::batch_with(
        kohort_wire::records::Compression::None,
        (5, 0, 0),
        &[(None, None, NOW)],
    );
    append(&log, &bytes).unwrap();
    assert_eq!(log.maintain(NOW + 999).unwrap().producers_expired, 0);
    assert_eq!(log.maintain(NOW + 1000).unwrap().producers_expired, 1);
    assert!(log.producers().is_empty());
}
