//! A reader with a cluster of one topic, driven by hand.

use kohort_wire::{
    messages::*,
    records::{BatchBuilder, Compression},
};

use super::*;
use crate::{BufferPool, Millis};

/// A cluster in which broker `n` leads the partitions that end with that digit, as far as they exist.
struct Cluster {
    partitions: i32,
}

impl Metadata for Cluster {
    fn topic_id(&self, _: &str) -> Option<Uuid> {
        Some(Uuid(7))
    }

    fn partition(&self, partition: &TopicPartition) -> Option<Leader> {
        let leader = Some(partition.partition % 10);
        let exists = partition.partition < self.partitions;
        exists.then_some(Leader { leader, epoch: -1 })
    }

    fn has_broker(&self, _: i32) -> bool {
        true
    }
}

const CLUSTER: Cluster = Cluster { partitions: 100 };

fn reader(prefetch_bytes_max: usize) -> Reader {
    Reader::new(ReaderConfig {
        has_group: true,
        committed_only: false,
        offset_reset: OffsetReset::Latest,
        rack: ByteString::new(),
        fetch_bytes_min: 1,
        fetch_wait_max: Duration::from_millis(500),
        fetch_bytes_max: 50 << 20,
        partition_fetch_bytes_max: 1 << 20,
        prefetch_bytes_max,
        metadata_max_age: Duration::from_secs(300),
        backoff: Box::new(|_| Duration::from_millis(100)),
    })
}

fn batch(base_offset: i64, count: usize, control: bool) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Compression::None, None);
    builder.set_base_offset(base_offset);
    builder.set_control(control);
    for _ in 0..count {
        // The marker that a transaction was committed.
        let key = [0, 0, 0, 1];
        builder.append(0, Some(&key), Some(&[0; 6]), []).unwrap();
    }
    builder.build().to_vec()
}

fn fetched(partitions: &[i32], records: &[u8]) -> FetchResponse {
    let partitions = partitions.iter();
    FetchResponse {
        responses: vec![FetchableTopicResponse {
            topic_id: Uuid(7),
            partitions: partitions
                .map(|partition| FetchPartitionData {
                    partition_index: *partition,
                    high_watermark: 100,
                    records: Some(records.to_vec().into()),
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// The brokers that are asked for records.
fn asked(reader: &mut Reader, now: Millis) -> Vec<i32> {
    let plan = reader.plan(&CLUSTER, now);
    let fetches = plan.requests.iter().filter_map(|request| match request {
        ReaderRequest::Fetch { broker, .. } => Some(*broker),
        _ => None,
    });
    fetches.collect()
}

fn take(reader: &mut Reader, handle: HandleId) -> Chunks {
    let decoding = Decoding {
        check_crcs: true,
        decompressed_bytes_max: 1 << 20,
        buffers: BufferPool::new(1, 1000),
    };
    let mut chunks = Chunks::default();
    while let Some(mut delivery) = reader.begin_delivery() {
        delivery.decode(&mut chunks, 10, &decoding);
        reader.end_delivery(delivery, &mut chunks, handle);
    }
    chunks
}

#[test]
fn batches_without_records_are_skipped_along_with_the_last_record() {
    let mut reader = reader(1 << 20);
    let handle = reader.add_handle();
    let name = TopicPartition::new("t", 0);
    reader.assign(name.clone(), Seek::Offset(0));
    assert_eq!(asked(&mut reader, 0), [0]);
    let bytes = [batch(0, 2, false), batch(2, 1, true)].concat();
    reader.fetched(0, Some(fetched(&[0], &bytes)), &CLUSTER, 10);
    let chunks = take(&mut reader, handle);
    assert_eq!(chunks.count, 2);
    assert_eq!(chunks.chunks.last().unwrap().1.next, 3);
    assert_eq!(reader.fetched_bytes, 0);
    // They are finished together, too.
    assert!(reader.finish(handle));
    assert_eq!(reader.to_commit(None)[0].1.offset, 3);
}

#[test]
fn a_broker_with_much_undelivered_data_leaves_room_for_the_others() {
    for (much, nothing) in [(1, 2), (2, 1), (7, 3), (3, 7)] {
        let waiting = batch(0, 9, false);
        let mut reader = reader(waiting.len() * 16 / 5);
        for partition in [much, much + 10] {
            reader.assign(TopicPartition::new("t", partition), Seek::Offset(0));
        }
        assert_eq!(asked(&mut reader, 0), [much]);
        let response = fetched(&[much, much + 10], &waiting);
        reader.fetched(much, Some(response), &CLUSTER, 10);
        reader.assign(TopicPartition::new("t", nothing), Seek::Offset(0));
        assert_eq!(asked(&mut reader, 20), [nothing]);
    }
}

#[test]
fn a_member_looks_up_where_to_begin_once_the_partition_exists() {
    let mut reader = reader(1 << 20);
    reader.set_member(Some(Identity {
        member_id: "m".into(),
        instance_id: None,
        epoch: 1,
        consumer_protocol: false,
    }));
    reader.assign(TopicPartition::new("t", 0), Seek::Committed);
    let looks_up = |reader: &mut Reader, partitions| {
        let plan = reader.plan(&Cluster { partitions }, 0);
        let mut requests = plan.requests.into_iter();
        requests.any(|request| matches!(request, ReaderRequest::FindCommitted(_)))
    };
    assert!(!looks_up(&mut reader, 0));
    assert!(looks_up(&mut reader, 1));
    // Without a group that assigns, the application is told that there is no such partition.
    reader.set_member(None);
    reader.assign(TopicPartition::new("t", 0), Seek::Committed);
    assert!(looks_up(&mut reader, 0));
}
