//! Appenders, readers, flushers and maintenance at the same time.

mod common;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use common::{ALL, NOW, append, batch_with, small};
use kohort_log::{CleanupPolicy, Log, LogConfig};
use kohort_wire::records::{Compression, split};

const WRITERS: i64 = 4;
const BATCHES: i32 = 200;

fn run(log: &Log, compacted: bool) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|id| {
                scope.spawn(move || {
                    for sequence in 0..BATCHES {
                        let (key, value) = (format!("{id}"), format!("{id} {sequence}"));
                        let bytes = batch_with(
                            Compression::None,
                            (id, 0, sequence),
                            &[(Some(&key), Some(&value), NOW)],
                        );
                        let appended = append(log, &bytes).unwrap();
                        assert!(!appended.duplicate);
                        if sequence % 10 == 0 {
                            assert!(log.flush().unwrap() > appended.last_offset);
                        }
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                let mut next = 0;
                let mut stop = false;
                while !stop || next < log.end_offset() {
                    stop = done.load(Ordering::Acquire);
                    next = next.max(log.start_offset());
                    let Ok(read) = log.read(next, ALL) else {
                        continue;
                    };
                    for batch in split(read.into_bytes()) {
                        let batch = batch.unwrap();
                        batch.check_crc().unwrap();
                        assert!(compacted || batch.header().base_offset == next);
                        assert!(batch.header().last_offset() >= next);
                        next = batch.header().next_offset();
                    }
                }
                assert_eq!(next, WRITERS * i64::from(BATCHES));
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                log.maintain(NOW).unwrap();
                assert!(log.offset_for_timestamp(NOW + 1).unwrap().is_none());
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Release);
    });
    for (_, producer) in log.producers() {
        assert_eq!(producer.last_sequence(), BATCHES - 1);
    }
}

#[test]
fn readers_see_every_batch_once_and_in_order_while_others_append_flush_and_clean() {
    for cache_bytes in [0, 2000] {
        let folder = tempfile::tempdir().unwrap();
        let config = LogConfig {
            cache_bytes,
            segment_bytes: 5000,
            ..small()
        };
        run(&Log::open(folder.path(), config.clone()).unwrap(), false);
        let log = Log::open(folder.path(), config).unwrap();
        assert_eq!(log.end_offset(), WRITERS * i64::from(BATCHES));
    }
}

#[test]
fn readers_of_a_compacted_log_always_get_on() {
    let folder = tempfile::tempdir().unwrap();
    let config = LogConfig {
        cleanup_policy: CleanupPolicy::Compact,
        min_cleanable_dirty_ratio: 0.0,
        ..small()
    };
    run(&Log::open(folder.path(), config).unwrap(), true);
}
