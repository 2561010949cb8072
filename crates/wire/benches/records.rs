//! Record batches: building, iterating, compressing.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kohort_wire::records::{Batch, BatchBuilder, BatchMut, Compression, Header, TimestampType};

const COUNT: u64 = 1000;
const LIMIT: usize = 1 << 30;

fn fill(builder: &mut BatchBuilder, value_size: usize, headers: &[Header<'_>]) {
    let value: Vec<u8> = (0..value_size)
        .map(|i| b"{\"name\":\"value\", 0123456789}"[i * 7 % 28])
        .collect();
    for i in 0..COUNT {
        let key = i.to_be_bytes();
        builder
            .append(
                1_700_000_000_000 + i as i64,
                Some(&key),
                Some(&value),
                headers.iter().copied(),
            )
            .expect("it fits");
    }
}

fn batch(compression: Compression, value_size: usize, headers: &[Header<'_>]) -> Batch {
    let mut builder = BatchBuilder::new(compression, None);
    fill(&mut builder, value_size, headers);
    Batch::parse(builder.finish()).expect("it was built so")
}

fn records(c: &mut Criterion) {
    let headers = [Header {
        key: b"trace",
        value: Some(b"0123456789abcdef"),
    }; 2];
    let mut group = c.benchmark_group("records");
    group.throughput(Throughput::Elements(COUNT));
    for (name, size, headers) in [
        ("iterate/100B", 100, &headers[..0]),
        ("iterate/100B+2 headers", 100, &headers[..]),
        ("iterate/1KB", 1000, &headers[..0]),
    ] {
        let batch = batch(Compression::None, size, headers);
        group.bench_function(name, |b| {
            b.iter(|| {
                let records = batch.records(LIMIT).expect("it is not compressed");
                for record in &records {
                    black_box(record.expect("it was built so"));
                }
            });
        });
    }
    for (name, size) in [("build/100B", 100), ("build/1KB", 1000)] {
        let mut builder = BatchBuilder::new(Compression::None, None);
        group.bench_function(name, |b| {
            b.iter(|| {
                builder.clear();
                fill(&mut builder, size, &[]);
                black_box(builder.build().len())
            });
        });
    }
    group.finish();

    let mut group = c.benchmark_group("batch");
    let plain = batch(Compression::None, 100, &[]);
    group.throughput(Throughput::Bytes(plain.bytes().len() as u64));
    group.bench_function("check_crc", |b| b.iter(|| plain.check_crc()));
    let mut bytes = plain.bytes().to_vec();
    group.bench_function("set_offset", |b| {
        b.iter(|| {
            let mut batch = BatchMut::new(&mut bytes);
            batch.set_base_offset(black_box(17));
            batch.set_partition_leader_epoch(black_box(3));
        });
    });
    let mut time = 0;
    group.bench_function("set_append_time", |b| {
        b.iter(|| {
            time += 1;
            BatchMut::new(&mut bytes).set_max_timestamp(TimestampType::LogAppendTime, time);
        });
    });
    for compression in &Compression::ALL[1..] {
        let mut builder = BatchBuilder::new(*compression, None);
        fill(&mut builder, 100, &[]);
        group.bench_function(format!("compress/{compression}"), |b| {
            b.iter(|| black_box(builder.build().len()));
        });
        let packed = Batch::parse(builder.finish()).expect("it was built so");
        let mut scratch = Vec::new();
        group.bench_function(format!("decompress/{compression}"), |b| {
            b.iter(|| {
                let records = packed
                    .records_in(&mut scratch, LIMIT)
                    .expect("it was built so");
                black_box(records);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, records);
criterion_main!(benches);
