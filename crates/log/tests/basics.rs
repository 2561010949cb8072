//! Append and read, in memory and on disk, and what a restart keeps.

mod common;

use common::{
    ALL, NOW, append, batch, batch_with, batches_from, produce, put, records_from, small,
    values_from,
};
use kohort_log::{Log, LogConfig, LogError, Origin, ReadLimit, TimestampOffset};
use kohort_wire::{
    ErrorCode,
    records::{Compression, TimestampType},
};

/// Runs a test with a log in memory and one on disk.
fn both(config: LogConfig, test: impl Fn(Log)) {
    test(Log::in_memory(config.clone()));
    let folder = tempfile::tempdir().unwrap();
    test(Log::open(&folder.path().join("topic-0"), config).unwrap());
}

fn configs() -> [LogConfig; 4] {
    let small = small();
    [
        LogConfig::default(),
        LogConfig {
            cache_bytes: 300,
            ..small.clone()
        },
        LogConfig {
            index_interval_bytes: 1 << 20,
            ..small.clone()
        },
        small,
    ]
}

#[test]
fn what_is_appended_is_read_from_every_offset() {
    for config in configs() {
        both(config, |log| {
            for i in 0..100 {
                assert_eq!(put(&log, &format!("value {i}")), i);
            }
            for from in 0..=100 {
                let expected: Vec<_> = (from..100).map(|i| format!("value {i}")).collect();
                assert_eq!(values_from(&log, from), expected);
            }
            for offset in [-1, 101] {
                let error = log.read(offset, ALL).unwrap_err();
                assert_eq!(error.error_code(), ErrorCode::OFFSET_OUT_OF_RANGE);
            }
        });
    }
}

#[test]
fn a_batch_is_read_whole_from_any_of_its_offsets() {
    for config in configs() {
        both(config, |log| {
            let three = [
                (None, Some("a"), NOW),
                (None, Some("b"), NOW),
                (None, Some("c"), NOW),
            ];
            assert_eq!(produce(&log, &three).last_offset, 2);
            assert_eq!(produce(&log, &three).base_offset, 3);
            for from in 0..6 {
                let batches = batches_from(&log, from, ALL).unwrap();
                assert_eq!(batches[0].header().base_offset, from / 3 * 3);
                assert_eq!(batches.len() as i64, 2 - from / 3);
            }
        });
    }
}

#[test]
fn reads_keep_to_their_limits_but_get_on() {
    for config in configs() {
        both(config, |log| {
            for i in 0..30 {
                put(&log, &format!("value {i:02}"));
            }
            let size = log
                .read(
                    0,
                    ReadLimit {
                        max_bytes: 1,
                        ..ALL
                    },
                )
                .unwrap()
                .len();
            let limit = |max_bytes, at_least_one| ReadLimit {
                max_bytes,
                at_least_one,
                until: None,
            };
            for from in 0..30 {
                assert_eq!(log.read(from, limit(size - 1, false)).unwrap().len(), 0);
                assert_eq!(log.read(from, limit(size - 1, true)).unwrap().len(), size);
                assert_eq!(log.read(from, limit(size, false)).unwrap().len(), size);
                assert!(log.read(from, limit(size * 3, true)).unwrap().len() <= size * 3);
                let until = ReadLimit {
                    until: Some(from),
                    ..ALL
                };
                assert!(log.read(from, until).unwrap().is_empty());
                assert_eq!(batches_from(&log, 0, until).unwrap().len() as i64, from);
            }
        });
    }
}

#[test]
fn a_restart_keeps_everything_whether_closed_or_not() {
    for (close, config) in [true, false]
        .into_iter()
        .flat_map(|c| configs().map(|config| (c, config)))
    {
        let folder = tempfile::tempdir().unwrap();
        let mut next = 0;
        for round in 0..4 {
            let log = Log::open(folder.path(), config.clone()).unwrap();
            assert_eq!(log.recovery().clean, close && round > 0);
            assert_eq!(log.end_offset(), next);
            for _ in 0..10 {
                put(&log, &next.to_string());
                next += 1;
            }
            let expected: Vec<_> = (0..next).map(|i| i.to_string()).collect();
            assert_eq!(values_from(&log, 0), expected);
            if close {
                log.close().unwrap();
                assert!(matches!(
                    append(&log, &batch(&[(None, None, NOW)])),
                    Err(LogError::Closed)
                ));
                assert_eq!(values_from(&log, 0), expected);
            }
        }
    }
}

#[test]
fn every_compression_is_kept_or_changed_to_the_topics() {
    for target in [
        None,
        Some(Compression::None),
        Some(Compression::Zstd),
        Some(Compression::Lz4),
    ] {
        both(
            LogConfig {
                compression: target,
                ..LogConfig::default()
            },
            |log| {
                for compression in Compression::ALL {
                    let entries = [(Some("k"), Some("v"), NOW), (None, None, NOW + 1)];
                    append(&log, &batch_with(compression, (-1, -1, -1), &entries)).unwrap();
                    let read = batches_from(&log, log.end_offset() - 2, ALL).unwrap();
                    assert_eq!(
                        read[0].header().compression(),
                        Ok(target.unwrap_or(compression))
                    );
                }
                let records = records_from(&log, 0);
                assert_eq!(records.len(), 10);
                assert!(
                    records
                        .iter()
                        .zip(0..)
                        .all(|(r, i)| r.offset == i && r.timestamp == NOW + i % 2)
                );
            },
        );
    }
}

#[test]
fn an_idempotent_producer_gets_the_first_offset_for_a_duplicate_also_after_a_restart() {
    for close in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let send = |log: &Log, sequence| {
            append(
                log,
                &batch_with(
                    Compression::None,
                    (7, 1, sequence),
                    &[(None, Some("v"), NOW); 2],
                ),
            )
        };
        let log = Log::open(folder.path(), small()).unwrap();
        for i in 0..20 {
            put(&log, "other");
            let appended = send(&log, i * 2).unwrap();
            assert_eq!(
                (appended.base_offset, appended.duplicate),
                (i64::from(i) * 3 + 1, false)
            );
            let again = send(&log, i * 2).unwrap();
            assert_eq!(
                (again.base_offset, again.last_offset, again.duplicate),
                (i64::from(i) * 3 + 1, i64::from(i) * 3 + 2, true)
            );
        }
        if close {
            log.close().unwrap();
        }
        drop(log);
        let log = Log::open(folder.path(), small()).unwrap();
        // As many as a client may have in flight, wherever a segment has ended between them.
        for batch in 15..20 {
            let again = send(&log, batch * 2).unwrap();
            let offset = i64::from(batch) * 3 + 1;
            assert_eq!((again.base_offset, again.duplicate), (offset, true));
        }
        let error = send(&log, 42).unwrap_err();
        assert_eq!(error.error_code(), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        assert_eq!(send(&log, 40).unwrap().base_offset, 60);
        assert_eq!(log.producers()[0].1.last_sequence(), 41);
    }
}

#[test]
fn a_refused_batch_changes_nothing() {
    let config = LogConfig {
        max_message_bytes: 200,
        ..small()
    };
    both(config, |log| {
        put(&log, "before");
        let mut damaged = batch(&[(None, Some("v"), NOW)]).to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        let long = "v".repeat(200);
        for (bytes, code) in [
            (damaged, ErrorCode::CORRUPT_MESSAGE),
            (
                batch(&[(None, Some(&long), NOW)]).to_vec(),
                ErrorCode::MESSAGE_TOO_LARGE,
            ),
            (batch(&[]).to_vec(), ErrorCode::INVALID_RECORD),
            (
                batch(&[(None, None, NOW + 3_600_001)]).to_vec(),
                ErrorCode::INVALID_TIMESTAMP,
            ),
            (b"noise".to_vec(), ErrorCode::CORRUPT_MESSAGE),
            (Vec::new(), ErrorCode::INVALID_RECORD),
        ] {
            assert_eq!(append(&log, &bytes).unwrap_err().error_code(), code);
        }
        assert_eq!(put(&log, "after"), 1);
        assert_eq!(values_from(&log, 0), ["before", "after"]);
    });
}

#[test]
fn with_log_append_time_the_broker_sets_the_timestamps() {
    let config = LogConfig {
        timestamp_type: TimestampType::LogAppendTime,
        ..LogConfig::default()
    };
    both(config, |log| {
        let bytes = batch(&[(None, None, 5), (None, None, 9)]);
        let appended = log.append(&bytes, Origin::Client, 0, NOW).unwrap();
        assert_eq!(appended.log_append_time_ms, NOW);
        assert!(
            records_from(&log, 0)
                .iter()
                .all(|record| record.timestamp == NOW)
        );
    });
}

#[test]
fn offsets_are_found_by_time() {
    for config in configs() {
        both(config, |log| {
            // Times go up by 10, but each third record is late.
            for i in 0..60 {
                let late = if i % 3 == 2 { 25 } else { 0 };
                produce(
                    &log,
                    &[
                        (None, None, NOW + i * 10 - late),
                        (None, None, NOW + i * 10 + 1),
                    ],
                );
            }
            let records = records_from(&log, 0);
            for time in NOW - 50..NOW + 700 {
                let first = records.iter().find(|record| record.timestamp >= time);
                let found = log.offset_for_timestamp(time).unwrap();
                let expected = first.map(|record| TimestampOffset {
                    offset: record.offset,
                    timestamp: record.timestamp,
                    leader_epoch: 0,
                });
                assert_eq!(found, expected, "{}", time - NOW);
            }
            let max = log.offset_of_max_timestamp().unwrap().unwrap();
            assert_eq!((max.offset, max.timestamp), (119, NOW + 591));
            assert_eq!(log.earliest().offset, 0);
            assert_eq!(log.latest().offset, 120);
        });
    }
    both(small(), |log| {
        assert_eq!(log.offset_of_max_timestamp().unwrap(), None);
        assert_eq!(log.offset_for_timestamp(0).unwrap(), None);
    });
}

#[test]
fn leader_epochs_end_where_the_next_begins_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path(), small()).unwrap();
    let one = batch(&[(None, None, NOW)]);
    for epoch in [0, 0, 1, 1, 1, 4] {
        log.append(&one, Origin::Client, epoch, NOW).unwrap();
    }
    for _ in 0..2 {
        let log = Log::open(folder.path(), small()).unwrap();
        assert_eq!(log.latest_epoch(), Some(4));
        for (epoch, end) in [
            (0, (0, 2)),
            (1, (1, 5)),
            (3, (1, 5)),
            (4, (4, 6)),
            (5, (-1, -1)),
        ] {
            let found = log.epoch_end_offset(epoch);
            assert_eq!((found.epoch, found.end_offset), end);
        }
        std::fs::remove_file(folder.path().join("leader-epoch-checkpoint")).unwrap();
    }
}
