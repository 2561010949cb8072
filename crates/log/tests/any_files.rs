//! A log is opened on files that chance has damaged: nothing panics, nothing that stands in front of
//! the damage is lost, a log that is refused stays as it is, and one that is opened can be used.
//!
//! `KOHORT_FUZZ_SECONDS` says for how long, `KOHORT_TEST_SEED` with which seed it begins.

mod common;

use std::{
    collections::BTreeMap,
    env,
    time::{Duration, Instant},
};

use common::{NOW, Seen, append, batch_with, records_from, sim_disk::SimDisk, small};
use fastrand::Rng;
use kohort_log::{CleanupPolicy, Log, LogConfig, LogError, ReadLimit};
use kohort_wire::records::{BatchHeader, Compression, HEADER_LENGTH};

const SECONDS: u64 = 2;

#[test]
fn whatever_has_happened_to_its_files_a_log_keeps_what_is_whole() {
    let from = |name: &str, default| {
        env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let first = from("KOHORT_TEST_SEED", 1);
    let end = Instant::now() + Duration::from_secs(from("KOHORT_FUZZ_SECONDS", SECONDS));
    let (mut seed, mut opened) = (first, 0);
    while Instant::now() < end {
        // The last line before a panic says which.
        println!("KOHORT_TEST_SEED={seed}");
        opened += u64::from(run(seed));
        seed += 1;
    }
    println!("{} logs, {opened} of them opened", seed - first);
}

/// Whether the log was opened.
fn run(seed: u64) -> bool {
    let mut rng = Rng::with_seed(seed);
    let config = LogConfig {
        cleanup_policy: match rng.u8(..4) {
            0 => CleanupPolicy::Compact,
            _ => CleanupPolicy::Delete,
        },
        ..small()
    };
    let (disk, records, before_start) = a_log(&mut rng, &config);
    let before = disk.image();
    let mut damage = Damage {
        before: &before,
        touched: BTreeMap::new(),
    };
    for _ in 0..rng.usize(1..4) {
        damage.happen(&mut rng, &disk);
    }
    let Damage { touched, .. } = damage;
    let damaged = disk.image();
    let log = match Log::with_storage(disk.storage(), config.clone()) {
        Ok(log) => log,
        Err(error) => {
            let is_named = error.to_string().contains("sim/");
            let is_told = matches!(error, LogError::Corrupt { .. } | LogError::Io { .. });
            assert!(is_told && is_named, "{error}");
            let now = disk.image();
            let mut logs = damaged
                .keys()
                .filter(|name| name.ends_with(".log"))
                .peekable();
            while let Some(name) = logs.next() {
                // What stands in front of the log's start may go.
                let is_gone = logs
                    .peek()
                    .is_some_and(|next| base_of(next) <= before_start);
                let is_same = now.get(name) == damaged.get(name);
                assert!(is_same || is_gone, "{name} is not as it was: {error}");
            }
            return false;
        }
    };
    let (start, end) = (log.start_offset(), log.end_offset());
    assert!(start <= end);
    let intact = intact_up_to(&before, &touched);
    // If it is forgotten where the log starts, more of it is there.
    let from = start.max(before_start);
    let is_whole = |seen: &&Seen| seen.offset >= from && seen.offset < intact;
    let expected: Vec<_> = records.iter().filter(is_whole).cloned().collect();
    if let Some(last) = expected.last() {
        assert!(end > last.offset, "ends at {end}, whole up to {intact}");
        // A compacted log may have nothing between its last record and the damage.
        let found = records_before(&log, from, last.offset + 1);
        assert!(
            found == expected,
            "whole up to {intact}, touched {touched:?}"
        );
    }
    // The rest is read, or found to be damaged.
    for offset in intact.max(start)..end {
        let _ = log.read(offset, common::ALL);
    }
    let _ = log.offset_for_timestamp(NOW + 10);
    let _ = log.offset_of_max_timestamp();

    // It goes on, and is opened again.
    let entry = (Some("next"), Some("next"), NOW);
    let appended = common::produce(&log, &[entry]);
    let next = appended.base_offset;
    assert!(next >= end);
    let _ = log.maintain(NOW + 1_000_000);
    log.flush().expect("the disk is well");
    drop(log);
    match Log::with_storage(disk.kill().storage(), config) {
        Ok(log) => {
            assert!(log.end_offset() > next, "what was flushed is gone");
            let last = log.read(next, common::ALL).expect("what was flushed last");
            assert!(!last.is_empty());
        }
        // Compaction, or the start after a kill, has met the damage.
        Err(error) => assert!(matches!(error, LogError::Corrupt { .. }), "{error}"),
    }
    true
}

/// The offset in the name of a segment.
fn base_of(name: &str) -> i64 {
    name[..20].parse().expect("an offset")
}

/// A log of some segments, closed or killed, its records, and where it starts.
fn a_log(rng: &mut Rng, config: &LogConfig) -> (SimDisk, Vec<Seen>, i64) {
    let disk = SimDisk::new();
    let log = Log::with_storage(disk.storage(), config.clone()).expect("a new log");
    let mut sequence = 0;
    for number in 0..rng.usize(1..60) {
        let (key, value) = ((number % 7).to_string(), format!("value {number}"));
        let count = rng.usize(1..4);
        let entry = (
            Some(key.as_str()),
            Some(value.as_str()),
            NOW + number as i64,
        );
        let producer = if rng.bool() {
            (4, 0, sequence)
        } else {
            (-1, -1, -1)
        };
        if producer.0 >= 0 {
            sequence += count as i32;
        }
        let compression = Compression::ALL[rng.usize(..5)];
        append(
            &log,
            &batch_with(compression, producer, &vec![entry; count]),
        )
        .expect("the disk is well");
        match rng.u8(..20) {
            0 => drop(log.maintain(NOW + number as i64).expect("the disk is well")),
            1 => log
                .delete_records(rng.i64(log.start_offset()..=log.end_offset()))
                .map(drop)
                .expect("the disk is well"),
            2 => drop(log.flush().expect("the disk is well")),
            _ => {}
        }
    }
    let start = log.start_offset();
    let records = records_from(&log, start);
    if rng.bool() {
        log.close().expect("the disk is well")
    } else {
        log.flush().expect("the disk is well");
    }
    drop(log);
    (disk.kill(), records, start)
}

/// What was done to the files.
struct Damage<'a> {
    before: &'a BTreeMap<String, Vec<u8>>,
    /// From which byte on a file is not what it was.
    touched: BTreeMap<String, usize>,
}

impl Damage<'_> {
    fn happen(&mut self, rng: &mut Rng, disk: &SimDisk) {
        let names = disk.names();
        let Some(name) = rng.choice(&names).cloned() else {
            return;
        };
        let other = rng.choice(&names).map(|it| disk.contents(it));
        let other = other.unwrap_or_default();
        match rng.u8(..10) {
            // A segment that is gone is not damage that a log can know of.
            0 if !name.ends_with(".log") => disk.delete(&name),
            1 => disk.tamper(&name, |bytes| {
                let at = rng.usize(..=bytes.len());
                bytes.truncate(at);
            }),
            2 => disk.tamper(&name, |bytes| {
                let random = (0..rng.usize(1..200)).map(|_| rng.u8(..));
                bytes.extend(random);
            }),
            3 => disk.tamper(&name, |bytes| {
                bytes.extend(std::iter::repeat_n(0, rng.usize(1..5000)));
            }),
            4 => disk.tamper(&name, |bytes| {
                let at = rng.usize(..=bytes.len());
                let end = bytes.len().min(at + rng.usize(..600));
                bytes[at..end].fill(0);
            }),
            // A part of another file, in its place or between.
            5 => disk.tamper(&name, |bytes| {
                let at = rng.usize(..=bytes.len());
                let part = rng.usize(..=other.len());
                let end = if rng.bool() {
                    at
                } else {
                    bytes.len().min(at + other.len() - part)
                };
                bytes.splice(at..end, other[part..].iter().copied());
            }),
            6 => disk.tamper(&name, |bytes| *bytes = other),
            _ => disk.tamper(&name, |bytes| {
                for _ in 0..rng.usize(1..4) {
                    if !bytes.is_empty() {
                        let place = rng.usize(..bytes.len());
                        bytes[place] ^= 1 << rng.u8(..8);
                    }
                }
            }),
        }
        let changed = match (self.before.get(&name), disk.image().get(&name)) {
            (Some(before), Some(after)) => {
                let same = before.iter().zip(after).take_while(|it| it.0 == it.1);
                same.count()
            }
            _ => 0,
        };
        let touched = self.touched.entry(name).or_insert(usize::MAX);
        *touched = (*touched).min(changed);
    }
}

/// The offset up to which every batch stands as it was written.
fn intact_up_to(before: &BTreeMap<String, Vec<u8>>, touched: &BTreeMap<String, usize>) -> i64 {
    let mut next = 0;
    for (name, bytes) in before.iter().filter(|it| it.0.ends_with(".log")) {
        let limit = touched.get(name).copied().unwrap_or(usize::MAX);
        let mut position = 0;
        while bytes.len() - position >= HEADER_LENGTH {
            let header = BatchHeader::parse(&bytes[position..]).expect("what was written");
            position += header.length as usize + 12;
            if position > limit {
                return next;
            }
            next = header.next_offset();
        }
        if limit < usize::MAX {
            return next;
        }
    }
    next
}

fn records_before(log: &Log, start: i64, end: i64) -> Vec<Seen> {
    let limit = ReadLimit {
        until: Some(end),
        ..common::ALL
    };
    let mut seen = Vec::new();
    let batches = common::batches_from(log, start, limit).expect("what is whole can be read");
    for batch in batches {
        seen.extend(common::seen(&batch, start));
    }
    seen
}
