//! The log: append, fetch at the tail, fetch from files, look-up by time.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use kohort_log::{Log, LogConfig, Origin, ReadLimit};
use kohort_wire::records::{BatchBuilder, Compression};

const NOW: i64 = 1_700_000_000_000;

fn batch(compression: Compression, count: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new(compression, None);
    for i in 0..count {
        let value = format!("{{\"number\": {i:08}, \"text\": \"{:060}\"}}", i * i);
        builder
            .append(NOW + i as i64, Some(b"key"), Some(value.as_bytes()), [])
            .expect("it fits");
    }
    builder.finish().to_vec()
}

fn append(log: &Log, batch: &[u8]) -> i64 {
    log.append(batch, Origin::Client, 0, NOW)
        .expect("there is room")
        .last_offset
}

fn open(folder: &tempfile::TempDir, config: LogConfig) -> Log {
    Log::open(&folder.path().join("topic-0"), config).expect("it is a new folder")
}

fn appending(c: &mut Criterion) {
    for (name, compression, count) in [
        ("append/1 record", Compression::None, 1),
        ("append/160 records", Compression::None, 160),
        ("append/160 records lz4", Compression::Lz4, 160),
    ] {
        let bytes = batch(compression, count);
        let mut group = c.benchmark_group("log");
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        let folder = tempfile::tempdir().expect("there is a place for it");
        // Small segments, and of those few: the bench should not fill the disk.
        let config = LogConfig {
            segment_bytes: 64 << 20,
            retention_bytes: 128 << 20,
            ..LogConfig::default()
        };
        let log = open(&folder, config);
        let mut appended = 0u64;
        group.bench_function(name, |b| {
            b.iter(|| {
                appended += 1;
                if appended.is_multiple_of(8192) {
                    log.maintain(NOW).expect("there is room");
                }
                append(&log, &bytes)
            });
        });
        group.finish();
    }
}

fn reading(c: &mut Criterion) {
    let bytes = batch(Compression::None, 160);
    let folder = tempfile::tempdir().expect("there is a place for it");
    let log = open(&folder, LogConfig::default());
    let mut end = 0;
    while log.size() < 64 << 20 {
        end = append(&log, &bytes) + 1;
    }
    let limit = ReadLimit {
        max_bytes: 1 << 20,
        at_least_one: true,
        until: None,
    };
    let mut group = c.benchmark_group("log");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("fetch/last batch", |b| {
        b.iter(|| log.read(black_box(end - 160), limit).expect("it is there"));
    });
    group.throughput(Throughput::Bytes(512 << 10));
    let from = end - (512 << 10) / bytes.len() as i64 * 160;
    group.bench_function("fetch/last 512 KB", |b| {
        b.iter(|| log.read(black_box(from), limit).expect("it is there"));
    });
    group.throughput(Throughput::Bytes(1 << 20));
    let mut next = 0;
    group.bench_function("fetch/1 MB from the file", |b| {
        b.iter_batched(
            || {
                next = (next + 104_729) % (end / 2);
                next
            },
            |from| log.read(from, limit).expect("it is there"),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("offset for time", |b| {
        b.iter(|| {
            log.offset_for_timestamp(black_box(NOW + 80))
                .expect("it is there")
        });
    });
    group.finish();
}

criterion_group!(benches, appending, reading);
criterion_main!(benches);
