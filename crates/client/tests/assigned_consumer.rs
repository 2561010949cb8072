//! A consumer whose partitions are assigned by hand, against a broker.

mod common;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use common::{produce, servers, unique, with_topic};
use futures_util::StreamExt;
use kohort::{
    ApiKey, CommittedOffset, Consumer, ConsumerConfig, TopicPartition,
    consumer::{OffsetReset, OwnedRecord, Seek},
    rpc::messages::*,
    testing::{Fate, TestBroker},
};
use kohort_wire::{
    codec::Decoder,
    frame::{RequestHeader, decode_request},
};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    Unit,
};
use parking_lot::Mutex;
use tokio::sync::mpsc;

async fn read(consumer: &mut Consumer, count: usize) -> Vec<OwnedRecord> {
    let mut records = Vec::new();
    while records.len() < count {
        let polled = consumer.poll().await.unwrap();
        assert!(polled.len() <= consumer.config().poll_records_max);
        assert_eq!(polled.iter().count(), polled.len());
        records.extend(polled.iter().map(|record| record.to_owned()));
    }
    records
}

fn offsets(records: &[OwnedRecord]) -> Vec<i64> {
    records.iter().map(|record| record.offset).collect()
}

#[tokio::test]
async fn records_are_read_from_where_it_is_said_in_order_and_whole() {
    let servers = servers().await;
    let (_, topic) = with_topic(&servers, 2).await;
    produce(&servers, &topic, Some(0), 0..2000).await;
    let config = ConsumerConfig {
        poll_records_max: 77,
        ..ConsumerConfig::new(&servers)
    };
    let mut consumer = Consumer::connect(config).await.unwrap();
    let partition = TopicPartition::new(topic.as_str(), 0);
    consumer
        .assign([(partition.clone(), Seek::Earliest)])
        .unwrap();
    let records = read(&mut consumer, 2000).await;
    assert_eq!(offsets(&records), (0..2000).collect::<Vec<_>>());
    let record = &records[1234];
    assert_eq!(record.key.as_deref(), Some(&b"key"[..]));
    assert_eq!(record.value.as_deref(), Some(&b"1234"[..]));
    assert_eq!(record.headers[0].1.as_deref(), Some(&b"1234"[..]));
    assert_eq!(record.timestamp, 1_001_234);
    assert_eq!(consumer.position(&partition).unwrap(), Some(2000));
    assert_eq!(consumer.lag(&partition).unwrap(), Some(0));

    consumer.seek(&partition, 1990).unwrap();
    assert_eq!(
        offsets(&read(&mut consumer, 10).await),
        (1990..2000).collect::<Vec<_>>()
    );
    consumer
        .seek(&partition, Seek::Timestamp(1_001_995))
        .unwrap();
    assert_eq!(
        offsets(&read(&mut consumer, 5).await),
        (1995..2000).collect::<Vec<_>>()
    );
    consumer.seek(&partition, Seek::Latest).unwrap();
    assert!(
        consumer
            .poll_for(Duration::from_millis(300))
            .await
            .unwrap()
            .is_empty()
    );
    produce(&servers, &topic, Some(0), 2000..2001).await;
    assert_eq!(offsets(&read(&mut consumer, 1).await), [2000]);
}

#[tokio::test]
async fn an_offset_out_of_range_is_reset_or_is_an_error() {
    let servers = servers().await;
    let (_, topic) = with_topic(&servers, 1).await;
    produce(&servers, &topic, Some(0), 0..5).await;
    let partition = TopicPartition::new(topic.as_str(), 0);
    for offset_reset in [OffsetReset::Earliest, OffsetReset::None] {
        let config = ConsumerConfig {
            offset_reset,
            ..ConsumerConfig::new(&servers)
        };
        let mut consumer = Consumer::connect(config).await.unwrap();
        consumer
            .assign([(partition.clone(), Seek::Offset(99))])
            .unwrap();
        if offset_reset == OffsetReset::Earliest {
            assert_eq!(offsets(&read(&mut consumer, 5).await), [0, 1, 2, 3, 4]);
        } else {
            let error = consumer.poll().await.unwrap_err();
            assert!(error.to_string().contains("OFFSET_OUT_OF_RANGE"), "{error}");
            // The application says where to go on.
            consumer.seek(&partition, 3).unwrap();
            assert_eq!(offsets(&read(&mut consumer, 2).await), [3, 4]);
        }
    }
}

#[tokio::test]
async fn a_paused_partition_gives_nothing_until_it_is_resumed() {
    let servers = servers().await;
    let (_, topic) = with_topic(&servers, 2).await;
    produce(&servers, &topic, Some(0), 0..10).await;
    produce(&servers, &topic, Some(1), 0..10).await;
    let mut consumer = Consumer::connect(ConsumerConfig::new(&servers))
        .await
        .unwrap();
    let [zero, one] = [0, 1].map(|partition| TopicPartition::new(topic.as_str(), partition));
    let both = [zero.clone(), one.clone()].map(|partition| (partition, Seek::Earliest));
    consumer.assign(both).unwrap();
    consumer.pause(std::slice::from_ref(&one)).unwrap();
    assert!(
        read(&mut consumer, 10)
            .await
            .iter()
            .all(|record| record.partition == 0)
    );
    assert!(
        consumer
            .poll_for(Duration::from_millis(300))
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(consumer.paused(), std::slice::from_ref(&one));
    consumer.resume(&[one]).unwrap();
    assert!(
        read(&mut consumer, 10)
            .await
            .iter()
            .all(|record| record.partition == 1)
    );
}

#[tokio::test]
async fn what_was_committed_is_where_the_next_one_begins() {
    let servers = servers().await;
    let (_, topic) = with_topic(&servers, 1).await;
    produce(&servers, &topic, Some(0), 0..10).await;
    let group = unique("group");
    let partition = TopicPartition::new(topic.as_str(), 0);
    let config = ConsumerConfig {
        offset_reset: OffsetReset::Earliest,
        poll_records_max: 4,
        ..ConsumerConfig::new(&servers).group(group.as_str())
    };
    let start = async || {
        let consumer = Consumer::connect(config.clone()).await.unwrap();
        consumer
            .assign([(partition.clone(), Seek::Committed)])
            .unwrap();
        consumer
    };
    let mut consumer = start().await;
    assert_eq!(offsets(&read(&mut consumer, 4).await), [0, 1, 2, 3]);
    consumer.commit().await.unwrap();
    drop(consumer);

    let mut consumer = start().await;
    assert_eq!(offsets(&read(&mut consumer, 4).await), [4, 5, 6, 7]);
    // Records that the application did not go through are not committed.
    let in_hand = consumer.poll().await.unwrap();
    assert_eq!(in_hand.len(), 2);
    consumer.close().await.unwrap();

    let mut consumer = start().await;
    assert_eq!(offsets(&read(&mut consumer, 2).await), [8, 9]);
    let mut offset = CommittedOffset::new(3);
    offset.metadata = "again".into();
    consumer
        .commit_offsets(&[(partition.clone(), offset.clone())])
        .await
        .unwrap();
    let committed = consumer.committed(&[partition]).await.unwrap();
    assert_eq!(committed[0].1.as_ref().unwrap().as_ref(), Some(&offset));
}

#[tokio::test]
async fn a_stream_gives_each_record_once_and_leaves_the_rest_when_dropped() {
    let servers = servers().await;
    let (_, topic) = with_topic(&servers, 1).await;
    produce(&servers, &topic, Some(0), 0..1000).await;
    let partition = TopicPartition::new(topic.as_str(), 0);
    let mut consumer = Consumer::connect(ConsumerConfig::new(&servers))
        .await
        .unwrap();
    consumer
        .assign([(partition.clone(), Seek::Earliest)])
        .unwrap();
    {
        let mut records = consumer.stream();
        for offset in 0..700 {
            assert_eq!(records.next().await.unwrap().unwrap().offset, offset);
            let position = records.consumer().position(&partition).unwrap();
            assert_eq!(position, Some(offset + 1));
        }
    }
    assert_eq!(
        offsets(&read(&mut consumer, 300).await),
        (700..1000).collect::<Vec<_>>()
    );
}

/// Numbers by name and labels.
#[derive(Debug, Clone, Default)]
struct Numbers(Arc<Mutex<BTreeMap<String, f64>>>);

struct Number(Numbers, String);

impl Number {
    fn change(&self, change: impl FnOnce(&mut f64)) {
        change(self.0.0.lock().entry(self.1.clone()).or_default());
    }
}

impl CounterFn for Number {
    fn increment(&self, value: u64) {
        self.change(|number| *number += value as f64);
    }

    fn absolute(&self, value: u64) {
        self.change(|number| *number = value as f64);
    }
}

impl GaugeFn for Number {
    fn increment(&self, value: f64) {
        self.change(|number| *number += value);
    }

    fn decrement(&self, value: f64) {
        self.change(|number| *number -= value);
    }

    fn set(&self, value: f64) {
        self.change(|number| *number = value);
    }
}

impl Numbers {
    fn number(&self, key: &Key) -> Arc<Number> {
        let labels: Vec<_> = key.labels().map(|label| label.value()).collect();
        let name = format!("{}({})", key.name(), labels.join(","));
        Arc::new(Number(self.clone(), name))
    }

    fn get(&self, name: &str) -> f64 {
        self.0.lock().get(name).copied().unwrap_or(f64::NAN)
    }
}

impl Recorder for Numbers {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.number(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.number(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test]
async fn what_is_written_and_read_and_how_much_is_left_is_measured_by_topic() {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    let numbers = Numbers::default();
    let _recording = metrics::set_default_local_recorder(&numbers);
    produce(broker.servers(), "t", Some(0), 0..10).await;
    assert_eq!(numbers.get("kohort_producer_records_total(t)"), 10.0);
    let builder = Consumer::builder().bootstrap_servers(broker.servers());
    let builder = builder.group_id("g").poll_records_max(4);
    let mut consumer = builder.build().await.unwrap();
    let partition = TopicPartition::new("t", 0);
    consumer.assign([(partition, Seek::Earliest)]).unwrap();
    assert_eq!(consumer.poll().await.unwrap().len(), 4);
    assert_eq!(numbers.get("kohort_consumer_records_total(g,t)"), 4.0);
    assert_eq!(numbers.get("kohort_consumer_lag_records(g,t,0)"), 6.0);
    consumer.assign([]).unwrap();
    assert_eq!(numbers.get("kohort_consumer_lag_records(g,t,0)"), 0.0);
}

/// A consumer that has fetched ten records and read `count`, and a leader of a new epoch whose log
/// ends at offset 5 for the epoch before. Returns the offsets at which it fetches after it has asked.
async fn truncated(
    broker: &TestBroker,
    offset_reset: OffsetReset,
    count: usize,
) -> (Consumer, mpsc::UnboundedReceiver<i64>) {
    broker.create_topic("t", 1).await.unwrap();
    produce(broker.servers(), "t", Some(0), 0..10).await;
    let config = ConsumerConfig {
        offset_reset,
        poll_records_max: count,
        ..ConsumerConfig::new(broker.servers())
    };
    let mut consumer = Consumer::connect(config).await.unwrap();
    let partition = TopicPartition::new("t", 0);
    consumer
        .assign([(partition.clone(), Seek::Earliest)])
        .unwrap();
    let mut read = 0;
    while read < count {
        read += consumer.poll().await.unwrap().len();
    }
    let (asked, fetched) = mpsc::unbounded_channel();
    let validated = AtomicBool::new(false);
    broker.on_request(move |request| {
        let frame = Bytes::copy_from_slice(request.frame);
        let mut input = Decoder::new(frame);
        match request.api {
            Some(ApiKey::OffsetForLeaderEpoch) => {
                validated.store(true, Ordering::Relaxed);
                let partition = LeaderEpochEndOffset {
                    leader_epoch: 0,
                    end_offset: 5,
                    ..Default::default()
                };
                let topic = OffsetForLeaderTopicResult {
                    topic: "t".into(),
                    partitions: vec![partition],
                };
                let response = OffsetForLeaderEpochResponse {
                    topics: vec![topic],
                    ..Default::default()
                };
                request.answer(&response).unwrap()
            }
            Some(ApiKey::Fetch) if validated.load(Ordering::Relaxed) => {
                RequestHeader::decode(&mut input).unwrap();
                let fetch: FetchRequest = decode_request(input, request.version).unwrap();
                let partitions = fetch.topics.iter().flat_map(|topic| &topic.partitions);
                for partition in partitions {
                    let _ = asked.send(partition.fetch_offset);
                }
                Fate::Pass
            }
            _ => Fate::Pass,
        }
    });
    let metadata = consumer.cluster().metadata();
    let leader = metadata.leader(&partition).unwrap();
    consumer.cluster().note_leader(&partition, leader, 1);
    (consumer, fetched)
}

#[tokio::test]
async fn when_the_log_was_truncated_reading_goes_on_where_the_leaders_agree() {
    let broker = TestBroker::start().await.unwrap();
    let (consumer, mut fetched) = truncated(&broker, OffsetReset::Earliest, 10).await;
    assert_eq!(fetched.recv().await, Some(5));
    let partition = TopicPartition::new("t", 0);
    assert_eq!(consumer.position(&partition).unwrap(), Some(5));
}

#[tokio::test]
async fn what_was_fetched_of_a_log_that_was_truncated_is_fetched_again() {
    let broker = TestBroker::start().await.unwrap();
    let (mut consumer, mut fetched) = truncated(&broker, OffsetReset::Earliest, 3).await;
    assert_eq!(fetched.recv().await, Some(3));
    // The broker does not know that epoch, and gives it nothing new.
    let records = consumer.poll_for(Duration::from_millis(100)).await.unwrap();
    assert!(records.is_empty());
}

#[tokio::test]
async fn when_the_log_was_truncated_the_application_decides_if_it_wants_to() {
    let broker = TestBroker::start().await.unwrap();
    let (mut consumer, _fetched) = truncated(&broker, OffsetReset::None, 10).await;
    let error = consumer.poll().await.unwrap_err();
    let expected = "the log was truncated from offset 10 to 5";
    assert!(error.to_string().contains(expected), "{error}");
}
