//! Files that were lost or changed while the log was closed are noticed: no reader gets what is
//! missing or wrong for granted, and no offset is assigned twice.

mod common;

use common::{ALL, NOW, append, batch, batches_from, put, records_from, sim_disk::SimDisk, small};
use kohort_log::{CleanupPolicy, Log, LogConfig, LogError};

fn compacted() -> LogConfig {
    LogConfig {
        cleanup_policy: CleanupPolicy::Compact,
        min_cleanable_dirty_ratio: 0.0,
        ..small()
    }
}

/// A log of several segments, closed or killed.
fn a_log(config: &LogConfig, is_closed: bool) -> SimDisk {
    let disk = SimDisk::new();
    let log = Log::with_storage(disk.storage(), config.clone()).unwrap();
    for i in 0..60 {
        let key = (i % 40).to_string();
        append(&log, &batch(&[(Some(&key), Some("value"), NOW)])).unwrap();
        if i == 50 && config.cleanup_policy.compacts() {
            assert!(log.maintain(NOW).unwrap().segments_compacted > 2);
        }
    }
    log.flush().unwrap();
    match is_closed {
        true => log.close().unwrap(),
        false => return disk.kill(),
    }
    disk
}

fn segments(disk: &SimDisk) -> Vec<String> {
    let names = disk.names().into_iter();
    names.filter(|name| name.ends_with(".log")).collect()
}

#[test]
fn a_missing_segment_is_noticed_wherever_it_was() {
    for config in [small(), compacted()] {
        for is_closed in [true, false] {
            let count = segments(&a_log(&config, is_closed)).len();
            assert!(count > 4);
            for lost in 0..count {
                let disk = a_log(&config, is_closed);
                let name = segments(&disk)[lost].clone();
                disk.delete(&name);
                let before = disk.image();
                let opened = Log::with_storage(disk.storage(), config.clone());
                let error = opened.err().unwrap_or_else(|| panic!("{name} of {count}"));
                assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
                assert_eq!(disk.image(), before, "{name}: {error}");
            }
        }
    }
}

#[test]
fn a_log_whose_segments_are_all_gone_does_not_begin_again_at_its_start() {
    for is_closed in [true, false] {
        let disk = a_log(&small(), is_closed);
        for name in segments(&disk) {
            disk.delete(&name);
        }
        Log::with_storage(disk.storage(), small()).unwrap_err();
    }
}

#[test]
fn what_retention_and_requests_have_deleted_is_not_missing() {
    for mut config in [small(), compacted()] {
        for (before, is_closed) in [(17, true), (33, false), (-1, true), (59, false)] {
            let disk = a_log(&config, is_closed);
            let log = Log::with_storage(disk.storage(), config.clone()).unwrap();
            log.delete_records(before).unwrap();
            let start = log.start_offset();
            drop(log);
            let log = Log::with_storage(disk.kill().storage(), config.clone()).unwrap();
            log.maintain(NOW).unwrap();
            let log = Log::with_storage(disk.kill().storage(), config.clone()).unwrap();
            assert_eq!((log.start_offset(), log.end_offset()), (start, 60));
            config.retention_ms = 1000;
            log.set_config(config.clone());
            log.maintain(NOW + 2000).unwrap();
            let end = log.end_offset();
            let log = Log::with_storage(disk.kill().storage(), config.clone()).unwrap();
            assert_eq!(log.end_offset(), end);
        }
    }
}

#[test]
fn a_flipped_bit_in_a_closed_segment_is_served_to_nobody() {
    let disk = a_log(&small(), true);
    let expected = {
        let log = Log::with_storage(disk.kill().storage(), small()).unwrap();
        records_from(&log, 0)
    };
    let name = segments(&disk)[1].clone();
    let length = disk.contents(&name).len();
    for at in (0..length).step_by(7) {
        let disk = disk.kill();
        disk.tamper(&name, |bytes| bytes[at] ^= 4);
        // It may be noticed at the start; else by who comes to it, and by nobody else.
        let Ok(log) = Log::with_storage(disk.storage(), small()) else {
            continue;
        };
        let mut errors = 0;
        for from in 0..60 {
            match log.read(from, ALL) {
                Ok(read) => {
                    for batch in kohort_wire::records::split(read.into_bytes()) {
                        let batch = batch.unwrap();
                        batch.check_crc().unwrap();
                        for record in common::seen(&batch, 0) {
                            assert_eq!(record, expected[record.offset as usize]);
                        }
                    }
                }
                Err(error) => {
                    assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
                    assert!(error.to_string().contains(&name), "{error}");
                    errors += 1;
                }
            }
        }
        // The field for the leader epoch is not covered by the checksum.
        assert!(errors > 0 || !disk_is_damaged(&disk, &name), "{at}");
        assert!(errors < 20, "{at}: {errors}");
        assert_eq!(put(&log, "next"), 60);
    }
}

fn disk_is_damaged(disk: &SimDisk, name: &str) -> bool {
    let bytes = disk.contents(name).into();
    kohort_wire::records::split(bytes)
        .any(|batch| batch.and_then(|batch| batch.check_crc()).is_err())
}

#[test]
fn compaction_and_lookups_stop_at_damage_and_do_not_hide_it() {
    let config = compacted();
    let disk = a_log(&small(), true);
    let name = segments(&disk)[1].clone();
    // The value of the second record.
    disk.tamper(&name, |bytes| {
        let at = bytes.windows(5).rposition(|it| it == b"value").unwrap();
        bytes[at] = b'x';
    });
    let log = Log::with_storage(disk.storage(), config).unwrap();
    let error = log.maintain(NOW).unwrap_err();
    assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
    assert!(batches_from(&log, 0, ALL).is_err());
    assert!(log.offset_for_timestamp(NOW + 1).unwrap().is_none());
    assert_eq!(put_keyed(&log), 60);
}

fn put_keyed(log: &Log) -> i64 {
    append(log, &batch(&[(Some("k"), Some("v"), NOW)]))
        .unwrap()
        .base_offset
}
