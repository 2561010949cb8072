//! Record batches against the crate kafka-protocol, in both directions, and hostile bytes.

use bytes::{Bytes, BytesMut};
use kafka_protocol::{
    indexmap::IndexMap,
    protocol::StrBytes,
    records::{self as peer, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions},
};
use kohort_wire::{
    ErrorCode,
    records::{
        Batch, BatchBuilder, BatchHeader, BatchMut, BuildError, Compression, ControlRecord,
        EndTransactionMarker, HEADER_LENGTH, Header, RecordIter, RecordsError, TimestampType,
        increment_sequence, produced, split,
    },
};
use proptest::{collection::vec, option, prelude::*};

const LIMIT: usize = 1 << 20;

#[derive(Debug, Clone)]
struct Sample {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Sample {
    fn headers(&self) -> Vec<Header<'_>> {
        self.headers
            .iter()
            .map(|(key, value)| Header {
                key: key.as_bytes(),
                value: value.as_deref(),
            })
            .collect()
    }
}

fn sample() -> impl Strategy<Value = Sample> {
    let bytes = || option::of(vec(any::<u8>(), 0..200));
    (
        1_600_000_000_000..1_900_000_000_000i64,
        bytes(),
        bytes(),
        vec(("[a-c]{0,3}", bytes()), 0..4),
    )
        .prop_map(|(timestamp, key, value, headers)| Sample {
            timestamp,
            key,
            value,
            headers,
        })
}

fn compression() -> impl Strategy<Value = Compression> {
    (0u8..5).prop_map(|id| Compression::from_id(id).unwrap())
}

fn build(builder: &mut BatchBuilder, samples: &[Sample]) -> Bytes {
    for sample in samples {
        let size = builder.size();
        let (key, value) = (sample.key.as_deref(), sample.value.as_deref());
        builder
            .append(sample.timestamp, key, value, sample.headers())
            .unwrap();
        let most = BatchBuilder::record_size_max(key, value, sample.headers());
        assert!(builder.size() - size <= most);
    }
    builder.finish()
}

fn check(batch: &Batch, samples: &[Sample], base_offset: i64, base_sequence: i32) {
    batch.check_crc().unwrap();
    assert_eq!(batch.header().count as usize, samples.len());
    let records = batch.records(LIMIT).unwrap();
    let mut read = 0;
    for (record, index) in records.iter().zip(0..) {
        let (record, sample) = (record.unwrap(), &samples[index as usize]);
        assert_eq!(record.offset, base_offset + i64::from(index));
        assert_eq!(
            record.sequence,
            match base_sequence {
                -1 => -1,
                base => increment_sequence(base, index),
            }
        );
        assert_eq!(record.timestamp, sample.timestamp);
        assert_eq!(record.key, sample.key.as_deref());
        assert_eq!(record.value, sample.value.as_deref());
        assert_eq!(record.headers.len(), sample.headers.len());
        assert!(record.headers.eq(sample.headers()));
        read += 1;
    }
    assert_eq!(read, samples.len());
    let max = samples.iter().map(|s| s.timestamp).max().unwrap_or(-1);
    assert_eq!(batch.header().max_timestamp, max);
}

proptest! {
    #[test]
    fn a_built_batch_reads_back(
        samples in vec(sample(), 0..20),
        compression in compression(),
        base_offset in 0..1_000_000_000i64,
        producer in option::of((0..i64::MAX, 0..i16::MAX, 0..i32::MAX)),
    ) {
        let mut builder = BatchBuilder::new(compression, None);
        builder.set_base_offset(base_offset);
        if let Some((id, epoch, sequence)) = producer {
            builder.set_producer(id, epoch, sequence);
        }
        // Twice: the second time in used buffers.
        for _ in 0..2 {
            let bytes = build(&mut builder, &samples);
            let batch = Batch::parse(bytes.clone()).unwrap();
            check(&batch, &samples, base_offset, producer.map_or(-1, |p| p.2));
            prop_assert_eq!(batch.header().check_produced().is_ok(), !samples.is_empty());
            prop_assert_eq!(produced(bytes).unwrap(), batch);
        }
    }

    #[test]
    fn kafka_protocol_reads_what_is_built(
        samples in vec(sample(), 1..20),
        compression in compression(),
        producer in option::of((0..i64::MAX, 0..i16::MAX, 0..i32::MAX / 2)),
        transactional: bool,
    ) {
        let mut builder = BatchBuilder::new(compression, None);
        builder.set_base_offset(7);
        builder.set_partition_leader_epoch(3);
        builder.set_transactional(transactional);
        if let Some((id, epoch, sequence)) = producer {
            builder.set_producer(id, epoch, sequence);
        }
        let mut bytes = build(&mut builder, &samples);
        let set = RecordBatchDecoder::decode(&mut bytes).unwrap();
        prop_assert_eq!(set.records.len(), samples.len());
        prop_assert_eq!(set.compression as u8, compression.id());
        for ((record, sample), index) in set.records.iter().zip(&samples).zip(0..) {
            prop_assert_eq!(record.offset, 7 + index);
            prop_assert_eq!(record.timestamp, sample.timestamp);
            prop_assert_eq!(record.key.as_deref(), sample.key.as_deref());
            prop_assert_eq!(record.value.as_deref(), sample.value.as_deref());
            prop_assert_eq!(record.partition_leader_epoch, 3);
            prop_assert_eq!(record.transactional, transactional);
            let (id, epoch, _) = producer.unwrap_or((-1, -1, -1));
            prop_assert_eq!((record.producer_id, record.producer_epoch), (id, epoch));
            // It keeps one header of each key, the last.
            for (key, value) in &record.headers {
                let last = sample.headers.iter().rfind(|h| h.0 == key.as_str()).unwrap();
                prop_assert_eq!(last.1.as_deref(), value.as_deref());
            }
        }
    }

    #[test]
    fn what_kafka_protocol_writes_is_read(
        samples in vec(sample(), 1..20),
        compression in 0usize..5,
        producer in option::of((0..i64::MAX, 0..i16::MAX, 0..i32::MAX / 2)),
    ) {
        use peer::Compression::{Gzip, Lz4, None, Snappy, Zstd};
        let mut samples = samples;
        for sample in &mut samples {
            let mut seen = Vec::new();
            sample.headers.retain(|header| {
                let new = !seen.contains(&header.0);
                seen.push(header.0.clone());
                new
            });
        }
        let (producer_id, producer_epoch, sequence) = producer.unwrap_or((-1, -1, -1));
        let records: Vec<_> = samples.iter().zip(0..).map(|(sample, index)| peer::Record {
            transactional: false,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: -1,
            producer_id,
            producer_epoch,
            timestamp_type: peer::TimestampType::Creation,
            offset: 40 + i64::from(index),
            sequence: if sequence < 0 { -1 } else { sequence + index },
            timestamp: sample.timestamp,
            key: sample.key.clone().map(Bytes::from),
            value: sample.value.clone().map(Bytes::from),
            headers: sample.headers.iter().map(|(key, value)| {
                (StrBytes::from_string(key.clone()), value.clone().map(Bytes::from))
            }).collect::<IndexMap<_, _>>(),
        }).collect();
        let mut bytes = BytesMut::new();
        let options = RecordEncodeOptions {
            version: 2,
            compression: [None, Gzip, Snappy, Lz4, Zstd][compression],
        };
        RecordBatchEncoder::encode(&mut bytes, &records, &options).unwrap();
        let mut read = Vec::new();
        for batch in split(bytes.freeze()) {
            let batch = batch.unwrap();
            batch.check_crc().unwrap();
            prop_assert_eq!(batch.header().compression().unwrap().id() as usize, compression);
            let records = batch.records(LIMIT).unwrap();
            for record in &records {
                let record = record.unwrap();
                let index = read.len();
                prop_assert_eq!(record.offset, 40 + index as i64);
                prop_assert_eq!(record.sequence, if sequence < 0 { -1 } else { sequence + index as i32 });
                prop_assert_eq!(record.timestamp, samples[index].timestamp);
                prop_assert_eq!(record.key, samples[index].key.as_deref());
                prop_assert!(record.headers.eq(samples[index].headers()));
                read.push(record.value.map(<[u8]>::to_vec));
            }
        }
        prop_assert_eq!(read, samples.into_iter().map(|s| s.value).collect::<Vec<_>>());
    }

    #[test]
    fn what_a_broker_sets_is_read_back_and_the_checksum_holds(
        samples in vec(sample(), 1..5),
        compression in compression(),
        base_offset in 0..i64::MAX / 2,
        epoch in 0..i32::MAX,
        append_time in option::of(0..i64::MAX),
    ) {
        let mut bytes = build(&mut BatchBuilder::new(compression, None), &samples).to_vec();
        let before = BatchHeader::parse(&bytes).unwrap();
        let mut batch = BatchMut::new(&mut bytes);
        batch.set_base_offset(base_offset);
        batch.set_partition_leader_epoch(epoch);
        if let Some(time) = append_time {
            batch.set_max_timestamp(TimestampType::LogAppendTime, time);
        }
        let batch = Batch::parse(bytes.into()).unwrap();
        batch.check_crc().unwrap();
        let header = batch.header();
        prop_assert_eq!((header.base_offset, header.partition_leader_epoch), (base_offset, epoch));
        prop_assert_eq!(header.crc == before.crc, append_time.is_none());
        for record in &batch.records(LIMIT).unwrap() {
            let record = record.unwrap();
            if let Some(time) = append_time {
                prop_assert_eq!(record.timestamp, time);
            }
        }
    }

    #[test]
    fn several_batches_are_split_and_a_torn_one_at_the_end_is_left(
        groups in vec(vec(sample(), 1..4), 1..5),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = BytesMut::new();
        let mut ends = Vec::new();
        for samples in &groups {
            bytes.extend_from_slice(&build(&mut BatchBuilder::new(Compression::None, None), samples));
            ends.push(bytes.len());
        }
        let cut = cut.index(bytes.len() + 1);
        bytes.truncate(cut);
        let mut batches = split(bytes.freeze());
        let whole = ends.iter().take_while(|&&end| end <= cut).count();
        for samples in &groups[..whole] {
            check(&batches.next().unwrap().unwrap(), samples, 0, -1);
        }
        prop_assert!(batches.next().is_none());
        let last = whole.checked_sub(1).map_or(0, |last| ends[last]);
        prop_assert_eq!(batches.rest().len(), cut - last);
    }

    #[test]
    fn damaged_batches_never_panic_and_yield_no_more_records_than_fit(
        samples in vec(sample(), 1..6),
        compression in compression(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = build(&mut BatchBuilder::new(compression, None), &samples).to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len() * 3));
        let bytes = Bytes::from(bytes);
        let _ = produced(bytes.clone());
        for batch in split(bytes).flatten() {
            let _ = batch.check_crc();
            let _ = batch.header().check_produced();
            if let Ok(records) = batch.records(LIMIT) {
                let mut count = 0;
                for record in records.iter().flatten() {
                    count += 1;
                    prop_assert!(record.headers.count() <= records.bytes().len());
                    let _ = ControlRecord::parse(&record);
                }
                prop_assert!(count <= records.bytes().len());
            }
        }
    }

    #[test]
    fn noise_never_panics(mut bytes in vec(any::<u8>(), 0..200), count: i32, records: Vec<u8>) {
        if bytes.len() > 16 {
            bytes[16] = 2;
        }
        let bytes = Bytes::from(bytes);
        let _ = produced(bytes.clone());
        let _ = split(bytes).count();
        let built = BatchBuilder::new(Compression::None, None).finish();
        let mut header = BatchHeader::parse(&built).unwrap();
        header.count = count;
        prop_assert!(RecordIter::new(&header, &records).count() <= records.len() + 1);
    }
}

#[test]
fn null_and_empty_are_two_things_and_duplicate_headers_stay_in_order() {
    let mut builder = BatchBuilder::new(Compression::None, None);
    let header = |value| Header { key: b"k", value };
    let headers = [
        header(Some(&b"1"[..])),
        header(None),
        header(Some(&b""[..])),
    ];
    builder.append(5, None, Some(b""), headers).unwrap();
    builder.append(6, Some(b""), None, []).unwrap();
    let batch = Batch::parse(builder.finish()).unwrap();
    let records = batch.records(LIMIT).unwrap();
    let read: Vec<_> = records.iter().map(Result::unwrap).collect();
    assert_eq!((read[0].key, read[0].value), (None, Some(&b""[..])));
    assert_eq!((read[1].key, read[1].value), (Some(&b""[..]), None));
    assert!(read[0].headers.eq(headers));
    assert_eq!(read[0].headers.last_with_key(b"k"), Some(headers[2]));
    assert_eq!(records.slice_ref(read[0].value.unwrap()), Bytes::new());
}

#[test]
fn old_formats_and_formats_that_never_were_are_told_apart() {
    let mut bytes = vec![0; 100];
    bytes[11] = 88;
    for (magic, code) in [
        (0, ErrorCode::INVALID_RECORD),
        (1, ErrorCode::INVALID_RECORD),
        (3, ErrorCode::CORRUPT_MESSAGE),
        (255, ErrorCode::CORRUPT_MESSAGE),
    ] {
        bytes[16] = magic;
        let error = produced(bytes.clone().into()).unwrap_err();
        assert_eq!(error.error_code(), code, "{error}");
    }
}

#[test]
fn a_produce_request_holds_exactly_one_whole_batch() {
    let mut builder = BatchBuilder::new(Compression::None, None);
    builder.append(5, None, Some(b"v"), []).unwrap();
    let one = builder.build().to_vec();
    assert!(produced(one.clone().into()).is_ok());
    for bytes in [
        Vec::new(),
        [&one[..], &one].concat(),
        [&one[..], b"x"].concat(),
    ] {
        assert_eq!(produced(bytes.into()), Err(RecordsError::NotOneBatch));
    }
    for cut in 1..one.len() {
        let error = produced(Bytes::copy_from_slice(&one[..cut])).unwrap_err();
        assert_eq!(error.error_code(), ErrorCode::CORRUPT_MESSAGE, "{cut}");
    }
}

#[test]
fn a_flipped_bit_behind_the_leader_epoch_breaks_the_checksum() {
    let mut builder = BatchBuilder::new(Compression::None, None);
    builder.append(5, Some(b"key"), Some(b"value"), []).unwrap();
    let bytes = builder.finish();
    for at in 17..bytes.len() {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 4;
        let batch = Batch::parse(damaged.into()).unwrap();
        assert!(
            matches!(batch.check_crc(), Err(RecordsError::Checksum { .. })),
            "{at}"
        );
    }
}

#[test]
fn a_batch_that_replaces_another_keeps_its_offsets_and_its_producer() {
    let mut builder = BatchBuilder::new(Compression::Lz4, None);
    builder.set_base_offset(100);
    builder.set_producer(9, 2, 50);
    for timestamp in [30, 10, 20] {
        builder
            .append(timestamp, Some(b"k"), Some(b"v"), [])
            .unwrap();
    }
    let before = Batch::parse(builder.finish()).unwrap();

    let mut cleaned = BatchBuilder::new(Compression::Lz4, None);
    cleaned.start_like(before.header(), Some(1000));
    cleaned.append_at(101, 10, Some(b"k"), None, []).unwrap();
    let after = Batch::parse(cleaned.finish()).unwrap();
    let header = after.header();
    assert_eq!(
        (header.base_offset, header.last_offset(), header.count),
        (100, 102, 1)
    );
    assert_eq!(
        (
            header.producer_id,
            header.producer_epoch,
            header.base_sequence
        ),
        (9, 2, 50)
    );
    assert_eq!(header.delete_horizon_ms(), Some(1000));
    assert_eq!(header.max_timestamp, 10);
    let records = after.records(LIMIT).unwrap();
    let record = records.iter().next().unwrap().unwrap();
    assert_eq!(
        (record.offset, record.timestamp, record.sequence),
        (101, 10, 51)
    );

    cleaned.start_like(before.header(), None);
    let empty = Batch::parse(cleaned.finish()).unwrap();
    assert_eq!(
        (empty.header().count, empty.bytes().len()),
        (0, HEADER_LENGTH)
    );
    assert_eq!(empty.header().next_offset(), 103);
    assert_eq!(empty.header().max_timestamp, 30);
    assert_eq!(empty.records(LIMIT).unwrap().iter().count(), 0);
}

#[test]
fn offsets_in_a_batch_may_have_gaps_but_never_go_back() {
    let mut builder = BatchBuilder::new(Compression::None, None);
    builder.set_base_offset(10);
    builder.append_at(12, 0, None, None, []).unwrap();
    for offset in [9, 11, 12] {
        let appended = builder.append_at(offset, 0, None, None, []);
        assert_eq!(appended, Err(BuildError::Offset(offset)));
    }
    builder.append(0, None, None, []).unwrap();
    let batch = Batch::parse(builder.finish()).unwrap();
    let offsets: Vec<_> = batch
        .records(LIMIT)
        .unwrap()
        .iter()
        .map(|r| r.unwrap().offset)
        .collect();
    assert_eq!(offsets, [12, 13]);
}

#[test]
fn the_end_of_a_transaction_reads_back() {
    for committed in [false, true] {
        let marker = EndTransactionMarker {
            committed,
            coordinator_epoch: 77,
        };
        let mut builder = BatchBuilder::new(Compression::None, None);
        builder.set_control(true);
        builder
            .append(1, Some(&marker.key()), Some(&marker.value()), [])
            .unwrap();
        let batch = Batch::parse(builder.finish()).unwrap();
        assert!(batch.header().is_control());
        let records = batch.records(LIMIT).unwrap();
        let record = records.iter().next().unwrap().unwrap();
        assert_eq!(
            ControlRecord::parse(&record),
            Ok(ControlRecord::EndTransaction(marker))
        );
    }
}

#[test]
fn a_batch_finished_in_given_memory_is_the_same_and_leaves_the_builder_empty() {
    for compression in Compression::ALL {
        let mut builder = BatchBuilder::new(compression, None);
        let mut memory = b"left over".to_vec();
        for round in 0..3 {
            let value = [round; 500];
            builder.append(7, Some(b"key"), Some(&value), []).unwrap();
            let built = builder.build().to_vec();
            memory = builder.finish_in(memory);
            assert_eq!(memory, built, "{compression}");
            assert!(builder.is_empty());
        }
    }
}

#[test]
fn sequence_numbers_go_on_at_zero() {
    assert_eq!(increment_sequence(i32::MAX, 1), 0);
    assert_eq!(increment_sequence(i32::MAX - 1, 3), 1);
    assert_eq!(increment_sequence(4, 3), 7);
}
