//! Files that were lost or changed while the log was closed are noticed: no reader gets what is
//! missing or wrong for granted, and no offset is assigned twice.

mod common;

use common::{ALL, NOW, append, batch, batches_from, put, records_from, sim_disk::SimDisk, small};
use kohort_log::{CleanupPolicy, Log, LogConfig, LogError, check_storage, repair_storage};
use proptest::prelude::*;

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
    if is_closed {
        log.close().unwrap()
    } else {
        return disk.kill();
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

/// What happened to the files of a log.
#[derive(Debug, Clone)]
enum Happened {
    Lost(usize),
    Flipped(usize, usize),
    CutOff(usize, usize),
    Zeroed(usize, usize),
    CheckpointChanged,
}

fn happen(disk: &SimDisk, happened: &Happened) {
    let names = segments(disk);
    let name = |at: usize| names[at % names.len()].as_str();
    match *happened {
        Happened::Lost(segment) => disk.delete(name(segment)),
        Happened::Flipped(segment, at) => disk.tamper(name(segment), |bytes| {
            let length = bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at % length) {
                *byte ^= 0x10;
            }
        }),
        Happened::CutOff(segment, at) => disk.tamper(name(segment), |bytes| {
            bytes.truncate(at % bytes.len().max(1));
        }),
        Happened::Zeroed(segment, at) => disk.tamper(name(segment), |bytes| {
            let at = at % bytes.len().max(1);
            let end = (at + 40).min(bytes.len());
            bytes[at..end].fill(0);
        }),
        Happened::CheckpointChanged => {
            if disk.names().iter().any(|name| name == "log-checkpoint") {
                disk.tamper("log-checkpoint", |bytes| bytes[1] ^= 1);
            }
        }
    }
}

#[test]
fn a_whole_log_has_no_damage_and_nothing_to_be_repaired() {
    for config in [small(), compacted()] {
        for is_closed in [true, false] {
            let disk = a_log(&config, is_closed);
            let before = disk.image();
            let checked = check_storage(&disk.storage()).unwrap();
            assert_eq!(checked.damage, []);
            assert_eq!((checked.start_offset, checked.end_offset), (0, 60));
            assert_eq!(checked.unfinished_bytes, 0);
            let repaired = repair_storage(&disk.storage()).unwrap();
            assert!(repaired.given_up.is_empty() && repaired.kept.is_empty());
            assert_eq!(disk.image(), before);
        }
    }
}

#[test]
fn a_torn_end_is_not_damage() {
    let disk = SimDisk::new();
    let log = Log::with_storage(disk.storage(), small()).unwrap();
    put(&log, "flushed");
    log.flush().unwrap();
    put(&log, "torn");
    let disk = disk.kill();
    let name = segments(&disk)[0].clone();
    disk.tamper(&name, |bytes| bytes.truncate(bytes.len() - 3));
    let checked = check_storage(&disk.storage()).unwrap();
    assert_eq!((checked.damage, checked.end_offset), (vec![], 1));
    assert!(checked.unfinished_bytes > 0);
}

#[test]
fn the_damage_says_which_offsets_are_lost() {
    let disk = a_log(&small(), true);
    let names = segments(&disk);
    let bases: Vec<i64> = names
        .iter()
        .map(|name| name[..20].parse().unwrap())
        .collect();
    disk.delete(&names[2]);
    disk.tamper(&names[4], |bytes| {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    });
    let checked = check_storage(&disk.storage()).unwrap();
    let lost: Vec<_> = checked
        .damage
        .iter()
        .map(|damage| damage.lost.clone())
        .collect();
    assert_eq!(lost, [bases[2]..bases[3], bases[5] - 1..bases[5]]);
    let text = checked.damage[1].to_string();
    assert!(
        text.starts_with(&names[4]) && text.contains("is lost"),
        "{text}"
    );
}

/// Repairs a log after something `happened` to its files, and checks what is left.
fn repairs(is_compacted: bool, is_closed: bool, happened: &[Happened]) {
    let config = if is_compacted { compacted() } else { small() };
    let disk = a_log(&config, is_closed);
    let whole = {
        let log = Log::with_storage(disk.kill().storage(), config.clone()).unwrap();
        records_from(&log, 0)
    };
    for it in happened {
        if !segments(&disk).is_empty() {
            happen(&disk, it);
        }
    }
    let checked = check_storage(&disk.storage()).unwrap();
    let before = disk.image();
    let repaired = repair_storage(&disk.storage()).unwrap();
    assert_eq!(&repaired.given_up, &checked.damage);
    // What the files were is kept.
    for (name, bytes) in &before {
        let after = disk.image();
        let derived = name.ends_with("index") || name == "clean-shutdown";
        let kept = repaired
            .kept
            .iter()
            .any(|kept| after.get(kept) == Some(bytes));
        if !derived && name != "log-checkpoint" {
            assert!(after.get(name) == Some(bytes) || kept, "{}", name);
        }
    }
    let again = check_storage(&disk.storage()).unwrap();
    assert_eq!(&again.damage, &[]);
    let log = Log::with_storage(disk.storage(), config.clone()).unwrap();
    assert_eq!(log.end_offset(), 60);
    let kept = records_from(&log, log.start_offset());
    // Which gaps compaction has made is in the checkpoint, and where a compacted segment ends is
    // nowhere.
    let is_gap_unknown = happened.iter().any(|it| match it {
        Happened::CheckpointChanged => true,
        Happened::CutOff(..) => is_compacted,
        _ => false,
    });
    let is_lost =
        |offset: i64| is_gap_unknown || checked.damage.iter().any(|it| it.lost.contains(&offset));
    for record in &whole {
        let has = kept.contains(record);
        assert!(
            has || is_lost(record.offset),
            "{:?} {:?}",
            record,
            checked.damage
        );
    }
    for record in &kept {
        assert!(whole.contains(record), "{:?}", record);
    }
    // The log goes on as any other: it grows, is compacted, and survives restarts.
    assert_eq!(put_keyed(&log), 60);
    log.maintain(NOW).unwrap();
    log.close().unwrap();
    let log = Log::with_storage(disk.kill().storage(), config).unwrap();
    assert_eq!(log.end_offset(), 61);
}

#[test]
fn a_batch_whose_offset_is_damaged_too_is_not_taken_for_another() {
    // The last bytes of a batch, and the offset of the next, which no checksum covers.
    for is_compacted in [false, true] {
        let config = if is_compacted { compacted() } else { small() };
        let disk = a_log(&config, true);
        for segment in [0, segments(&disk).len() - 1] {
            let length = disk.contents(&segments(&disk)[segment]).len();
            for at in (0..length).step_by(3) {
                repairs(is_compacted, true, &[Happened::Zeroed(segment, at)]);
            }
            for at in (40..length).step_by(74) {
                for offset_byte in 0..8 {
                    let next_batch = at - at % 74 + 74 + offset_byte;
                    let both = [at, next_batch].map(|at| Happened::Flipped(segment, at));
                    repairs(is_compacted, true, &both);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_a_repair_the_log_opens_and_has_all_that_was_whole_and_assigns_no_offset_twice(
        is_compacted: bool,
        is_closed: bool,
        happened in proptest::collection::vec(prop_oneof![
            any::<usize>().prop_map(Happened::Lost),
            any::<(usize, usize)>().prop_map(|(segment, at)| Happened::Flipped(segment, at)),
            any::<(usize, usize)>().prop_map(|(segment, at)| Happened::CutOff(segment, at)),
            any::<(usize, usize)>().prop_map(|(segment, at)| Happened::Zeroed(segment, at)),
            Just(Happened::CheckpointChanged),
        ], 1..4),
    ) {
        repairs(is_compacted, is_closed, &happened);
    }
}
