//! Producer against a broker.

mod common;

use std::time::Duration;

use common::{servers, unique, with_topic};
use kohort::{
    Admin, Consumer, ConsumerConfig, ErrorCode, OffsetSpec, Producer, ProducerConfig,
    ProducerRecord, TopicPartition,
    admin::{ConfigOperation, ConfigResource},
    consumer::{OwnedRecord, Seek, TimestampType},
    producer::{Acks, Compression},
};

async fn end(admin: &Admin, topic: &str, partition: i32) -> i64 {
    let partition = TopicPartition::new(topic, partition);
    let answers = admin
        .list_offsets(&[(partition, OffsetSpec::Latest)], Default::default())
        .await;
    answers[0].1.as_ref().unwrap().offset.unwrap()
}

#[tokio::test]
async fn a_record_is_written_and_its_offset_told() {
    let servers = servers().await;
    let (admin, topic) = with_topic(&servers, 2).await;
    let producer = Producer::connect(ProducerConfig::new(&servers))
        .await
        .unwrap();
    for offset in 0..3 {
        let record = ProducerRecord::new(&topic).partition(1).key("k").value("v");
        let written = producer.send(record).await.unwrap().await.unwrap();
        assert_eq!((written.partition, written.offset), (1, Some(offset)));
    }
    assert_eq!(end(&admin, &topic, 1).await, 3);
    producer.close().await;
}

#[tokio::test]
async fn every_compression_and_every_kind_of_acks_writes_all_records() {
    let servers = servers().await;
    let (admin, topic) = with_topic(&servers, 1).await;
    let mut total = 0;
    for compression in Compression::ALL {
        for acks in [Acks::None, Acks::Leader, Acks::All] {
            let config = ProducerConfig {
                compression,
                acks,
                idempotence: acks == Acks::All,
                batch_bytes: 2000,
                ..ProducerConfig::new(&servers)
            };
            let producer = Producer::connect(config).await.unwrap();
            let mut deliveries = Vec::new();
            for number in 0..500 {
                let value = format!("value {number}");
                let record = ProducerRecord::new(&topic).value(&value);
                deliveries.push(producer.send(record).await.unwrap());
            }
            producer.flush().await;
            for (delivery, offset) in deliveries.into_iter().zip(total..) {
                let known = (acks != Acks::None).then_some(offset);
                assert_eq!(delivery.await.unwrap().offset, known);
            }
            total += 500;
            producer.close().await;
            while end(&admin, &topic, 0).await < total {}
        }
    }
}

#[tokio::test]
async fn memory_is_bounded_and_sending_waits_for_it() {
    let servers = servers().await;
    let (admin, topic) = with_topic(&servers, 3).await;
    let config = ProducerConfig {
        buffer_bytes_max: 20_000,
        batch_bytes: 4_000,
        ..ProducerConfig::new(&servers)
    };
    let producer = Producer::connect(config).await.unwrap();
    let value = [b'x'; 1000];
    let mut refused = 0;
    for _ in 0..200 {
        let record = ProducerRecord::new(&topic).value(&value);
        if producer.try_send(&record).unwrap().is_none() {
            refused += 1;
            drop(producer.send(record).await.unwrap());
        }
    }
    assert!(refused > 0);
    producer.flush().await;
    let mut total = 0;
    for partition in 0..3 {
        total += end(&admin, &topic, partition).await;
    }
    assert_eq!(total, 200);
}

#[tokio::test]
async fn what_was_sent_is_written_although_the_producer_is_dropped() {
    let servers = servers().await;
    let (admin, topic) = with_topic(&servers, 1).await;
    let producer = Producer::connect(ProducerConfig::new(&servers))
        .await
        .unwrap();
    let delivery = producer
        .send(ProducerRecord::new(&topic).value("v"))
        .await
        .unwrap();
    drop(producer);
    delivery.await.unwrap();
    assert_eq!(end(&admin, &topic, 0).await, 1);
}

#[tokio::test]
async fn records_that_cannot_be_written_are_errors_that_say_why() {
    let servers = servers().await;
    let (_, topic) = with_topic(&servers, 1).await;
    let mut config = ProducerConfig::new(&servers);
    config.client.allow_auto_create_topics = Some(false);
    config.block_max = Duration::from_secs(1);
    let producer = Producer::connect(config).await.unwrap();
    let absent = unique("absent");
    let error = producer
        .send(ProducerRecord::new(&absent))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    assert!(error.to_string().contains(&absent), "{error}");
    let error = producer
        .send(ProducerRecord::new(&topic).partition(1))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
    let large = vec![0; 2 << 20];
    let error = producer
        .send(ProducerRecord::new(&topic).value(&large))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("max.request.size"), "{error}");
    // The producer goes on.
    producer
        .send(ProducerRecord::new(&topic))
        .await
        .unwrap()
        .await
        .unwrap();
}

#[tokio::test]
async fn values_are_written_and_read_as_json() {
    let servers = servers().await;
    let (_, topic) = with_topic(&servers, 1).await;
    let producer = Producer::connect(ProducerConfig::new(&servers))
        .await
        .unwrap();
    let order = ("pears".to_owned(), 3);
    let record = ProducerRecord::new(&topic).key("k");
    let sent = producer.send_json(record, &order).await.unwrap();
    sent.await.unwrap();
    let mut consumer = Consumer::connect(ConsumerConfig::new(&servers))
        .await
        .unwrap();
    let partition = TopicPartition::new(topic.as_str(), 0);
    consumer.assign([(partition, Seek::Earliest)]).unwrap();
    let records = consumer.poll().await.unwrap();
    let read = records.iter().next().unwrap().json::<(String, i32)>();
    assert_eq!(read.unwrap(), Some(order));
}

/// A topic that takes no batches longer than 2000 bytes.
async fn with_short_batches(servers: &str) -> (Admin, String) {
    let (admin, topic) = with_topic(servers, 1).await;
    let resource = ConfigResource::topic(&*topic);
    let short = (
        "max.message.bytes".into(),
        ConfigOperation::Set("2000".into()),
    );
    admin
        .alter_configs(&resource, &[short], false)
        .await
        .unwrap();
    (admin, topic)
}

#[tokio::test]
async fn batches_that_are_too_large_are_split_and_written_in_their_order() {
    let servers = servers().await;
    for (acks, compression) in [
        (Acks::All, Compression::None),
        (Acks::All, Compression::Zstd),
        (Acks::Leader, Compression::None),
    ] {
        let (_, topic) = with_short_batches(&servers).await;
        let config = ProducerConfig {
            acks,
            compression,
            idempotence: acks == Acks::All,
            linger: Duration::from_millis(50),
            ..ProducerConfig::new(&servers)
        };
        let producer = Producer::connect(config).await.unwrap();
        let mut deliveries = Vec::new();
        // Batches follow each other closely: several are under way when the first is refused.
        for number in 0..1000_u32 {
            let value: Vec<u8> = (0..120).map(|at| (number * at * at % 251) as u8).collect();
            let record = ProducerRecord::new(&topic).value(&value);
            deliveries.push(producer.send(record).await.unwrap());
        }
        for (delivery, offset) in deliveries.into_iter().zip(0..) {
            assert_eq!(delivery.await.unwrap().offset, Some(offset));
        }
        producer.close().await;
    }
}

#[tokio::test]
async fn a_record_that_is_too_large_fails_alone_and_says_so() {
    let servers = servers().await;
    let (admin, topic) = with_short_batches(&servers).await;
    let config = ProducerConfig {
        linger: Duration::from_millis(50),
        ..ProducerConfig::new(&servers)
    };
    let producer = Producer::connect(config).await.unwrap();
    let mut deliveries = Vec::new();
    for length in [100, 5000, 100] {
        let value = vec![b'x'; length];
        let record = ProducerRecord::new(&topic).value(&value);
        deliveries.push(producer.send(record).await.unwrap());
    }
    let [first, large, last] = <[_; 3]>::try_from(deliveries).unwrap();
    first.await.unwrap();
    let error = large.await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::MESSAGE_TOO_LARGE));
    assert!(error.to_string().contains("max.message.bytes"), "{error}");
    last.await.unwrap();
    assert_eq!(end(&admin, &topic, 0).await, 2);
}

#[tokio::test]
async fn a_topic_that_does_not_exist_is_created_where_the_broker_does_so() {
    let broker = kohort_broker::Broker::builder().start().await.unwrap();
    let config = ProducerConfig::new(&broker.address().to_string());
    let producer = Producer::connect(config).await.unwrap();
    let delivery = producer.send(ProducerRecord::new("new")).await.unwrap();
    assert_eq!(delivery.await.unwrap().offset, Some(0));
}

#[tokio::test]
async fn records_that_may_go_anywhere_go_everywhere_however_few_there_are_at_a_time() {
    let servers = servers().await;
    let (_admin, topic) = with_topic(&servers, 3).await;
    let config = ProducerConfig {
        linger: Duration::ZERO,
        batch_bytes: 1000,
        ..ProducerConfig::new(&servers)
    };
    let producer = Producer::connect(config).await.unwrap();
    let mut counts = [0; 3];
    while counts.contains(&0) {
        let record = ProducerRecord::new(&topic).value(&[1; 500]);
        let written = producer.send(record).await.unwrap().await.unwrap();
        counts[written.partition as usize] += 1;
        // Each partition gets two or three, then another one does.
        assert!(counts.iter().sum::<i32>() < 1000, "{counts:?}");
    }
}

#[tokio::test]
async fn a_consumed_record_is_forwarded_with_its_headers_unchanged() {
    let servers = servers().await;
    let (_, from) = with_topic(&servers, 1).await;
    let (_, to) = with_topic(&servers, 1).await;
    let producer = Producer::connect(ProducerConfig::new(&servers))
        .await
        .unwrap();
    let headers: [(&[u8], Option<&[u8]>); 4] = [
        (b"h", Some(b"first")),
        (b"\xff not text", Some(b"\0")),
        (b"", None),
        (b"h", Some(b"last")),
    ];
    let record = ProducerRecord::new(&from)
        .key("k")
        .value("v")
        .headers(&headers)
        .timestamp(7);
    producer.send(record).await.unwrap().await.unwrap();
    let read = async |topic: &str| {
        let mut consumer = Consumer::connect(ConsumerConfig::new(&servers))
            .await
            .unwrap();
        let partition = TopicPartition::new(topic, 0);
        consumer.assign([(partition, Seek::Earliest)]).unwrap();
        loop {
            let records = consumer.poll().await.unwrap();
            if let Some(record) = records.iter().next() {
                let again = ProducerRecord::from(record).topic(&to);
                assert_eq!(again.headers.iter().count(), 4);
                return record.to_owned();
            }
        }
    };
    let first = read(&from).await;
    assert_eq!(first.header("h"), Some(&b"last"[..]));
    assert_eq!(first.header(""), None);
    assert_eq!(first.timestamp_type, TimestampType::CreateTime);
    let copy = ProducerRecord::from(&first).topic(&to);
    producer.send(copy).await.unwrap().await.unwrap();
    let second = read(&to).await;
    assert_eq!(second.headers, first.headers);
    let parts = |record: &OwnedRecord| (record.key.clone(), record.value.clone(), record.timestamp);
    assert_eq!(parts(&second), parts(&first));
    producer.close().await;
}

#[tokio::test]
async fn flushing_and_closing_take_no_longer_than_they_may() {
    let broker = kohort::testing::TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    let config = ProducerConfig::new(broker.servers());
    let producer = Producer::connect(config).await.unwrap();
    let wait = Duration::from_millis(50);
    producer.flush_within(wait).await.unwrap();
    broker.on_request(|request| match request.api {
        Some(kohort::ApiKey::Produce) => kohort::testing::Fate::Delay(Duration::from_secs(60)),
        _ => kohort::testing::Fate::Pass,
    });
    let record = ProducerRecord::new("t").value("v");
    drop(producer.send(record).await.unwrap());
    let error = producer.flush_within(wait).await.unwrap_err();
    assert_eq!(error.to_string(), "could not flush within 50ms");
    let error = producer.close_within(wait).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "could not close the producer within 50ms"
    );
}
