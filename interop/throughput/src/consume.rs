//! Reading.

use std::{hint::black_box, time::Duration};

use kohort::{Consumer, ConsumerConfig, TopicPartition, consumer::Seek};
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
};

use crate::{
    Arguments,
    usage::{Began, Usage},
};

/// How long connecting and asking may take.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn kohort(arguments: &Arguments) -> Usage {
    let config = ConsumerConfig::new(&arguments.bootstrap_servers);
    let consumer = Consumer::connect(config).await.expect("a cluster");
    let topic = consumer
        .cluster()
        .topic(&arguments.topic.as_str().into())
        .await;
    let count = topic.expect("the topic").partitions.len();
    let began = Began::now();
    let partitions = (0..count as i32).map(|partition| {
        (
            TopicPartition::new(arguments.topic.as_str(), partition),
            Seek::Earliest,
        )
    });
    consumer.assign(partitions).expect("assigned");
    let (mut records, mut bytes) = (0, 0);
    while records < arguments.records {
        for record in &consumer.poll().await.expect("records") {
            records += 1;
            bytes += record.value.map_or(0, <[u8]>::len) as u64 + record.offset as u64;
        }
    }
    black_box(bytes);
    began.until_now()
}

pub(crate) fn rdkafka(arguments: &Arguments) -> Usage {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", &arguments.bootstrap_servers)
        .set("group.id", "none")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("check.crcs", "true")
        .create()
        .expect("a consumer");
    let topic = &arguments.topic;
    let metadata = consumer
        .fetch_metadata(Some(topic), PATIENCE)
        .expect("a cluster");
    let count = metadata.topics()[0].partitions().len();
    let began = Began::now();
    let mut partitions = TopicPartitionList::new();
    for partition in 0..count as i32 {
        let added = partitions.add_partition_offset(topic, partition, Offset::Beginning);
        added.expect("added");
    }
    consumer.assign(&partitions).expect("assigned");
    let (mut records, mut bytes) = (0, 0);
    while records < arguments.records {
        if let Some(record) = consumer.poll(PATIENCE) {
            let record = record.expect("a record");
            records += 1;
            bytes += record.payload().map_or(0, <[u8]>::len) as u64 + record.offset() as u64;
        }
    }
    black_box(bytes);
    began.until_now()
}
