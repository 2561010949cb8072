//! Crashes at any point, compared with a model of what must be there afterwards.

mod common;

use std::{collections::HashMap, io, sync::Arc};

use common::{
    ALL, NOW, Seen, append, batch, batch_with, batches_from, put, records_from, sim_disk::SimDisk,
    small, values_from,
};
use kohort_log::{CleanupPolicy, Log, LogConfig, LogError, Storage};
use kohort_wire::{ErrorCode, records::Compression};
use proptest::prelude::*;

fn open(disk: &SimDisk, config: &LogConfig) -> Log {
    Log::with_storage(disk.storage(), config.clone()).unwrap()
}

fn last_log(disk: &SimDisk) -> String {
    disk.names()
        .into_iter()
        .rfind(|name| name.ends_with(".log"))
        .unwrap()
}

#[test]
fn a_torn_end_is_cut_off_at_every_byte_and_the_log_goes_on() {
    for config in [small(), LogConfig::default()] {
        let disk = SimDisk::new();
        let log = open(&disk, &config);
        let mut ends = Vec::new();
        for i in 0..8 {
            put(&log, &format!("value {i}"));
            ends.push((last_log(&disk), disk.contents(&last_log(&disk)).len()));
        }
        let name = last_log(&disk);
        for cut in 0..disk.contents(&name).len() {
            let torn = disk.kill();
            torn.tamper(&name, |bytes| bytes.truncate(cut));
            let log = open(&torn, &config);
            let left = ends
                .iter()
                .filter(|(file, end)| *file < name || *end <= cut)
                .count();
            assert_eq!(log.end_offset() as usize, left);
            let before = ends[..left].iter().rfind(|(file, _)| *file == name);
            let whole = before.map_or(0, |(_, end)| *end);
            assert_eq!(log.recovery().bytes_cut_off as usize, cut - whole);
            assert_eq!(put(&log, "new") as usize, left);
            let mut expected: Vec<_> = (0..left).map(|i| format!("value {i}")).collect();
            expected.push("new".to_owned());
            assert_eq!(values_from(&log, 0), expected);
        }
    }
}

#[test]
fn an_end_with_any_byte_wrong_is_cut_off_if_it_was_not_flushed_and_refused_if_it_was() {
    for flushed in [false, true] {
        let disk = SimDisk::new();
        let log = open(&disk, &LogConfig::default());
        put(&log, "one");
        log.flush().unwrap();
        let name = last_log(&disk);
        let start = disk.contents(&name).len();
        put(&log, "two");
        if flushed {
            log.flush().unwrap();
        }
        for at in start..disk.contents(&name).len() {
            let damaged = disk.kill();
            damaged.tamper(&name, |bytes| bytes[at] ^= 0x10);
            // Neither the checksum nor the log's order covers the leader epoch.
            if (start + 12..start + 16).contains(&at) {
                continue;
            }
            let image = damaged.image();
            match Log::with_storage(damaged.storage(), LogConfig::default()) {
                Ok(log) => {
                    assert!(!flushed, "byte {at}");
                    assert_eq!(values_from(&log, 0), ["one"]);
                }
                Err(error) => {
                    assert!(flushed, "byte {at}: {error}");
                    assert!(
                        matches!(&error, LogError::Corrupt { file, position, .. }
                        if file.ends_with(&name) && *position == start as u64),
                        "{error}"
                    );
                    assert_eq!(error.error_code(), ErrorCode::KAFKA_STORAGE_ERROR);
                    assert_eq!(damaged.image(), image, "nothing is changed");
                }
            }
        }
    }
}

#[test]
fn flushed_data_that_is_gone_is_noticed() {
    let disk = SimDisk::new();
    let log = open(&disk, &small());
    for i in 0..20 {
        put(&log, &i.to_string());
    }
    log.flush().unwrap();
    for lost in disk
        .names()
        .into_iter()
        .filter(|name| name.ends_with(".log"))
    {
        let damaged = disk.kill();
        if lost == last_log(&disk) {
            damaged.tamper(&lost, |bytes| bytes.truncate(bytes.len() - 1))
        } else {
            continue;
        }
        let error = Log::with_storage(damaged.storage(), small()).unwrap_err();
        assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
    }
}

#[test]
fn damage_in_an_old_segment_costs_reads_there_and_nothing_else() {
    let disk = SimDisk::new();
    let log = open(&disk, &small());
    for i in 0..30 {
        put(&log, &i.to_string());
    }
    log.close().unwrap();
    let first = disk
        .names()
        .into_iter()
        .find(|name| name.ends_with(".log"))
        .unwrap();
    disk.tamper(&first, |bytes| bytes[8..12].copy_from_slice(&[0x7f; 4]));
    let log = open(&disk, &small());
    let error = log.read(0, ALL).unwrap_err();
    assert!(
        matches!(error, LogError::Corrupt { position: 0, .. }),
        "{error}"
    );
    assert_eq!(put(&log, "30"), 30);
    assert_eq!(values_from(&log, 20).len(), 11);
}

type Damage<'a> = &'a dyn Fn(&SimDisk, &str);

#[test]
fn missing_or_damaged_indexes_are_made_anew() {
    let damages: [Damage<'_>; 5] = [
        &|disk, name| disk.delete(name),
        &|disk, name| disk.tamper(name, |bytes| bytes.truncate(bytes.len() / 2 + 1)),
        &|disk, name| disk.tamper(name, Vec::clear),
        &|disk, name| {
            disk.tamper(name, |bytes| {
                bytes.iter_mut().for_each(|byte| *byte ^= 0x55)
            })
        },
        &|disk, name| {
            disk.tamper(name, |bytes| {
                // Looks right, leads to the wrong batches.
                if let Some(last) = bytes.last_mut() {
                    *last = last.wrapping_add(3)
                }
            })
        },
    ];
    for (kind, (index, damage)) in [".index", ".timeindex"]
        .into_iter()
        .flat_map(|kind| damages.iter().enumerate().map(move |d| (kind, d)))
    {
        let disk = SimDisk::new();
        let log = open(&disk, &small());
        for i in 0..40 {
            append(&log, &batch(&[(None, Some(&i.to_string()), NOW + i)])).unwrap();
        }
        log.close().unwrap();
        for name in disk.names().into_iter().filter(|name| name.ends_with(kind)) {
            damage(&disk, &name);
        }
        let log = open(&disk, &small());
        for from in 0..40 {
            assert_eq!(
                values_from(&log, from).len() as i64,
                40 - from,
                "{kind} {index}"
            );
        }
        if kind == ".index" || index < 4 {
            for time in 0..40 {
                let found = log.offset_for_timestamp(NOW + time).unwrap().unwrap();
                assert_eq!(found.offset, time, "{kind} {index}");
            }
        }
    }
}

#[test]
fn a_full_disk_fails_the_append_and_nothing_else_until_there_is_room() {
    for room in 0..400 {
        let disk = SimDisk::new();
        let log = open(&disk, &small());
        put(&log, "before");
        disk.set_room(room);
        let mut written = vec!["before".to_owned()];
        for i in 0..10 {
            match append(&log, &batch(&[(None, Some(&i.to_string()), NOW)])) {
                Ok(appended) => {
                    assert_eq!(appended.base_offset as usize, written.len());
                    written.push(i.to_string());
                }
                Err(error) => {
                    assert!(matches!(error, LogError::DiskFull { .. }), "{error}");
                    assert_eq!(error.error_code(), ErrorCode::KAFKA_STORAGE_ERROR);
                }
            }
            assert_eq!(values_from(&log, 0), written);
        }
        disk.heal();
        assert_eq!(put(&log, "after") as usize, written.len());
        written.push("after".to_owned());
        assert_eq!(values_from(&log, 0), written);
        log.flush().unwrap();
        assert_eq!(values_from(&open(&disk.kill(), &small()), 0), written);
    }
}

#[test]
fn after_a_failed_flush_the_log_takes_nothing_until_it_is_opened_again() {
    let disk = SimDisk::new();
    let log = open(&disk, &small());
    put(&log, "one");
    log.flush().unwrap();
    put(&log, "two");
    disk.fail_syncs();
    assert!(matches!(log.flush(), Err(LogError::Io { .. })));
    disk.heal();
    assert!(matches!(log.flush(), Err(LogError::FlushFailed)));
    assert!(matches!(
        append(&log, &batch(&[(None, None, NOW)])),
        Err(LogError::FlushFailed)
    ));
    assert!(log.has_failed());
    assert_eq!(log.flushed_offset(), 1);
    assert_eq!(values_from(&log, 0), ["one", "two"]);
    drop(log);
    let log = open(&disk, &small());
    assert_eq!(put(&log, "three"), 2);
    log.flush().unwrap();
    let log = open(&disk.power_failure(&mut |_| 0), &small());
    assert_eq!(values_from(&log, 0), ["one", "two", "three"]);
}

#[test]
fn many_waiting_for_a_flush_share_it() {
    let disk = SimDisk::new();
    let log = open(&disk, &LogConfig::default());
    put(&log, "first");
    log.flush().unwrap();
    let before = disk.syncs();
    for i in 0..100 {
        put(&log, &i.to_string());
    }
    for _ in 0..100 {
        assert_eq!(log.flush().unwrap(), 101);
    }
    assert_eq!(disk.syncs() - before, 1);
}

#[test]
fn producers_are_known_after_a_segment_that_ended_where_all_was_flushed() {
    let disk = SimDisk::new();
    let log = open(&disk, &small());
    let entries = [(Some("key"), Some("value"), NOW)];
    let batch_of = |sequence| batch_with(Compression::None, (PRODUCER, 0, sequence), &entries);
    for sequence in 0..3 {
        append(&log, &batch_of(sequence)).unwrap();
    }
    // Others write until the next segment begins, and each of their batches is flushed.
    let until_there_are_two_segments = || loop {
        let flushed = log.flush().unwrap();
        let names = disk.storage().list().unwrap();
        if names.iter().filter(|name| name.ends_with(".log")).count() == 2 {
            return flushed;
        }
        append(&log, &batch(&entries)).unwrap();
    };
    let end = until_there_are_two_segments();
    log.delete_records(end - 1).unwrap();
    log.maintain(NOW).unwrap();
    // The batches of the producer are gone: what is known of them stands in a file alone.
    until_there_are_two_segments();
    log.maintain(NOW).unwrap();

    // What was removed is gone, and what was not flushed was not written.
    let mut is_names = true;
    let mut choose = |bound| {
        if std::mem::take(&mut is_names) {
            bound - 1
        } else {
            0
        }
    };
    let log = open(&disk.power_failure(&mut choose), &small());
    for sequence in 0..3 {
        let again = append(&log, &batch_of(sequence)).unwrap();
        assert!(again.duplicate, "{sequence}");
    }
}

/// What must be in a log.
#[derive(Default)]
struct Model {
    records: Vec<Seen>,
    batches: Vec<(i32, i64, i64)>,
    end: i64,
    flushed: i64,
    start: i64,
}

#[derive(Debug, Clone)]
enum Step {
    Append {
        count: usize,
        key: u8,
        idempotent: bool,
    },
    Flush,
    DeleteRecords(prop::sample::Index),
    Maintain,
    Restart,
    Kill,
    PowerFailure(u64),
    /// The next operation fails after so many changes to the disk, and then the power does.
    FailDuring(usize, Box<Step>, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let append = || {
        (1..4usize, 0..6u8, any::<bool>()).prop_map(|(count, key, idempotent)| Step::Append {
            count,
            key,
            idempotent,
        })
    };
    let crash = || {
        prop_oneof![
            append(),
            Just(Step::Flush),
            Just(Step::Maintain),
            Just(Step::Restart)
        ]
    };
    prop_oneof![
        12 => append(),
        3 => Just(Step::Flush),
        1 => any::<prop::sample::Index>().prop_map(Step::DeleteRecords),
        2 => Just(Step::Maintain),
        1 => Just(Step::Restart),
        1 => Just(Step::Kill),
        1 => any::<u64>().prop_map(Step::PowerFailure),
        2 => (0..25usize, crash(), any::<u64>()).prop_map(|(n, step, seed)| Step::FailDuring(n, Box::new(step), seed)),
    ]
}

struct Run {
    disk: SimDisk,
    log: Log,
    config: LogConfig,
    model: Model,
    now: i64,
}

const PRODUCER: i64 = 77;

impl Run {
    fn new(config: LogConfig) -> Run {
        let disk = SimDisk::new();
        Run {
            log: open(&disk, &config),
            disk,
            config,
            model: Model::default(),
            now: NOW,
        }
    }

    fn next_sequence(&self) -> i32 {
        self.model
            .batches
            .last()
            .map_or(0, |&(sequence, base, end)| sequence + (end - base) as i32)
    }

    fn step(&mut self, step: &Step) -> Result<(), LogError> {
        self.now += 1000;
        match step {
            Step::Append {
                count,
                key,
                idempotent,
            } => {
                let key = format!("key {key}");
                let value = format!("value {}", self.model.end);
                // Each seventh is a tombstone.
                let value = (self.model.end % 7 != 6).then_some(value.as_str());
                let entries = vec![(Some(key.as_str()), value, self.now); *count];
                let sequence = self.next_sequence();
                let producer = if *idempotent {
                    (PRODUCER, 0, sequence)
                } else {
                    (-1, -1, -1)
                };
                let bytes = batch_with(Compression::None, producer, &entries);
                let appended = self
                    .log
                    .append(&bytes, kohort_log::Origin::Client, 3, self.now)?;
                assert!(!appended.duplicate);
                assert_eq!(appended.base_offset, self.model.end);
                for _ in 0..*count {
                    self.model.records.push(Seen {
                        offset: self.model.end,
                        timestamp: self.now,
                        key: Some(key.clone()),
                        value: value.map(str::to_owned),
                    });
                    self.model.end += 1;
                }
                if *idempotent {
                    self.model
                        .batches
                        .push((sequence, appended.base_offset, self.model.end));
                }
            }
            Step::Flush => {
                assert_eq!(self.log.flush()?, self.model.end);
                self.model.flushed = self.model.end;
            }
            Step::DeleteRecords(index) => {
                let before = index.index(self.model.end as usize + 1) as i64;
                self.log.delete_records(before)?;
                self.model.start = self.model.start.max(before);
                self.model.flushed = self.model.flushed.max(self.model.start);
            }
            Step::Maintain => {
                self.log.maintain(self.now)?;
                self.model.start = self.log.start_offset();
                self.model.flushed = self.log.flushed_offset();
            }
            Step::Restart => {
                self.log.close()?;
                self.model.flushed = self.model.end;
                self.log = Log::with_storage(self.disk.storage(), self.config.clone())?;
                assert!(self.log.recovery().clean);
                self.model.flushed = self.model.end;
                assert_eq!(self.log.end_offset(), self.model.end);
            }
            Step::Kill => {
                self.reopen(self.disk.kill());
                assert_eq!(self.log.end_offset(), self.model.end);
            }
            Step::PowerFailure(seed) => self.power_failure(*seed),
            Step::FailDuring(operations, step, seed) => {
                self.disk.fail_after(*operations, io::ErrorKind::Other);
                let before = (self.model.records.len(), self.model.end);
                if self.step(step).is_err() {
                    // Nothing of an append that failed counts.
                    self.model.records.truncate(before.0);
                    self.model.end = before.1;
                    // What was deleted before it failed is gone.
                    self.model.start = self.model.start.max(self.log.start_offset());
                }
                self.disk.heal();
                self.power_failure(*seed);
            }
        }
        Ok(())
    }

    fn reopen(&mut self, disk: SimDisk) {
        self.log = open(&disk, &self.config);
        self.disk = disk;
        self.model.flushed = self.log.end_offset();
    }

    fn power_failure(&mut self, seed: u64) {
        let mut random = seed;
        let mut choose = |bound: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % bound
        };
        let flushed = self.model.flushed;
        self.reopen(self.disk.power_failure(&mut choose));
        let end = self.log.end_offset();
        assert!(end >= flushed, "flushed up to {flushed}, {end} left");
        assert!(end <= self.model.end);
        self.model.end = end;
        self.model.records.retain(|record| record.offset < end);
        self.model.batches.retain(|batch| batch.2 <= end);
    }

    fn check(&mut self) {
        assert!(self.log.start_offset() >= self.model.start);
        self.model.start = self.log.start_offset();
        assert_eq!(self.log.end_offset(), self.model.end);
        let start = self.model.start;
        let read = records_from(&self.log, start);
        let mut expected = self
            .model
            .records
            .iter()
            .filter(|record| record.offset >= start);
        if !self.config.cleanup_policy.compacts() {
            assert!(expected.eq(&read));
        } else {
            for record in &read {
                assert!(expected.any(|known| known == record), "{record:?}");
            }
            let mut latest = HashMap::new();
            for record in self
                .model
                .records
                .iter()
                .filter(|record| record.offset >= start)
            {
                latest.insert(&record.key, record);
            }
            for record in latest.into_values().filter(|record| record.value.is_some()) {
                assert!(read.contains(record), "{record:?}");
            }
        }
        // The newest batches of the producer are known again, as many as may be in flight, and only
        // the next one may follow. Of a compacted log only the newest is left.
        let kept = if self.config.cleanup_policy.compacts() {
            1
        } else {
            5
        };
        for &(sequence, base, end) in self.model.batches.iter().rev().take(kept) {
            let entries = vec![(Some("key 0"), None, self.now); (end - base) as usize];
            let again = batch_with(Compression::None, (PRODUCER, 0, sequence), &entries);
            let appended = append(&self.log, &again).unwrap();
            assert_eq!((appended.base_offset, appended.duplicate), (base, true));
        }
        if let Some(&(_, base, end)) = self.model.batches.last() {
            let entries = vec![(Some("key 0"), None, self.now); (end - base) as usize];
            let wrong = batch_with(
                Compression::None,
                (PRODUCER, 0, self.next_sequence() + 1),
                &entries,
            );
            let error = append(&self.log, &wrong).unwrap_err();
            assert_eq!(error.error_code(), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        }
        let batches = batches_from(&self.log, start, ALL).unwrap();
        assert!(batches.is_sorted_by(|a, b| a.header().last_offset() < b.header().base_offset));
    }
}

fn run(config: LogConfig, steps: &[Step]) {
    let mut run = Run::new(LogConfig {
        timestamp_after_max_ms: i64::MAX,
        ..config
    });
    for step in steps {
        let failed = run.step(step);
        assert!(failed.is_ok() || run.log.has_failed(), "{failed:?}");
        run.check();
    }
}

/// Few by default; `PROPTEST_CASES` asks for more.
fn cases() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: asked.and_then(|cases| cases.parse().ok()).unwrap_or(50),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_log_is_after_any_crashes_what_was_flushed_and_a_part_of_the_rest(
        steps in proptest::collection::vec(step(), 1..60),
        cache_bytes in prop_oneof![Just(0usize), Just(400), Just(1 << 20)],
    ) {
        run(LogConfig { cache_bytes, ..small() }, &steps);
    }

    #[test]
    fn so_is_one_with_retention(steps in proptest::collection::vec(step(), 1..60)) {
        run(LogConfig { retention_bytes: 1500, retention_ms: 30_000, ..small() }, &steps);
    }

    #[test]
    fn so_is_one_that_is_compacted(steps in proptest::collection::vec(step(), 1..60)) {
        let config = LogConfig {
            cleanup_policy: CleanupPolicy::Compact,
            delete_retention_ms: 10_000,
            min_cleanable_dirty_ratio: 0.1,
            ..small()
        };
        run(config, &steps);
    }
}

#[test]
fn a_crash_at_any_operation_of_a_compaction_loses_nothing() {
    let config = LogConfig {
        cleanup_policy: CleanupPolicy::Compact,
        min_cleanable_dirty_ratio: 0.0,
        ..small()
    };
    let fill = |log: &Log| {
        for i in 0..60 {
            let (key, value) = ((i % 5).to_string(), i.to_string());
            append(log, &batch(&[(Some(&key), Some(&value), NOW)])).unwrap();
        }
        log.flush().unwrap();
    };
    let mut operations = 0;
    loop {
        let mut done = false;
        for seed in 0..8usize {
            let disk = SimDisk::new();
            let log = open(&disk, &config);
            fill(&log);
            disk.fail_after(operations, io::ErrorKind::Other);
            done = log.maintain(NOW).is_ok();
            disk.heal();
            let mut random = seed * 7919;
            let crashed = disk.power_failure(&mut |bound| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(17);
                (random >> 33) % bound
            });
            for disk in [disk, crashed] {
                let log = open(&disk, &config);
                let read = records_from(&log, 0);
                assert!(read.is_sorted_by(|a, b| a.offset < b.offset));
                for i in 55..60 {
                    assert!(
                        read.iter().any(|r| r.value == Some(i.to_string())),
                        "{operations}"
                    );
                }
                log.maintain(NOW).unwrap();
                assert_eq!(
                    append(&log, &batch(&[(Some("0"), None, NOW)]))
                        .unwrap()
                        .base_offset,
                    60
                );
            }
        }
        if done {
            break;
        }
        operations += 1;
    }
    assert!(operations > 10);
}

#[test]
fn a_storage_can_be_shared_by_reference() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    let storage: Arc<dyn Storage> = SimDisk::new().storage();
    is_shared(&storage);
    is_shared(&Log::in_memory(LogConfig::default()));
}
