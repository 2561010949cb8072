//! `kohort::blocking`, from a thread without a runtime.

use kohort::admin::NewTopic;
use kohort::blocking::{Admin, Consumer, Producer};
use kohort::consumer::Seek;
use kohort::{
    ClientConfig, CommittedOffset, ConsumerConfig, IsolationLevel, OffsetSpec, ProducerConfig,
    ProducerRecord, Properties, TopicPartition,
};
use std::time::{Duration, Instant};

use crate::report::Report;
use crate::world::{Checked, LIMIT, World, number, one, unique, with};
use crate::{ensure, ensure_eq};

pub(crate) fn check<'a>(world: &'a World, report: &mut Report<'a>) {
    for protocol in crate::subscribing::PROTOCOLS {
        let (properties, nodes) = (world.properties(), world.nodes);
        let name = format!("blocking ({protocol}): admin, producer and consumer");
        let on_a_thread = async move {
            let thread = move || blocking(&properties, nodes, protocol);
            tokio::task::spawn_blocking(thread).await?
        };
        report.check(name, on_a_thread);
    }
}

fn blocking(properties: &Properties, nodes: usize, protocol: &str) -> Checked {
    let admin = Admin::connect(ClientConfig::from_properties(properties)?)?;
    ensure_eq!(admin.describe_cluster()?.brokers.len(), nodes, "brokers");
    let topic = unique("blocking");
    admin.create_topic(&NewTopic::new(topic.as_str(), 2))?;

    let producer = Producer::connect(ProducerConfig::from_properties(properties)?)?;
    ensure_eq!(producer.partitions(&topic)?, 2, "partitions");
    let mut deliveries = Vec::new();
    for number in 0..100 {
        let text = number.to_string();
        let record = ProducerRecord::new(&topic).key(&text).value(&text);
        deliveries.push(producer.send(record)?);
    }
    producer.flush();
    for delivery in deliveries {
        ensure!(delivery.wait()?.offset.is_some(), "an offset");
    }
    producer.close();

    let partitions = [
        TopicPartition::new(topic.as_str(), 0),
        TopicPartition::new(topic.as_str(), 1),
    ];
    let asked = partitions
        .clone()
        .map(|partition| (partition, OffsetSpec::Latest));
    let mut total = 0;
    for (_, listed) in admin.list_offsets(&asked, IsolationLevel::ReadUncommitted) {
        total += listed?.offset.unwrap_or(0);
    }
    ensure_eq!(total, 100, "records");

    let group = unique("blocking");
    let settings = [
        ("group.id", group.as_str()),
        ("group.protocol", protocol),
        ("auto.offset.reset", "earliest"),
    ];
    let settings = with(properties.clone(), &settings);
    let config = ConsumerConfig::from_properties(&settings)?;
    let mut consumer = Consumer::connect(config.clone())?;
    consumer.subscribe([topic.as_str()])?;
    let mut values = Vec::new();
    let deadline = Instant::now() + LIMIT;
    while values.len() < 60 {
        ensure!(Instant::now() < deadline, "{} records came", values.len());
        for record in &consumer.poll_for(Duration::from_millis(100))? {
            values.push(number(record.value)?);
        }
    }
    for record in consumer.records().take(100 - values.len()) {
        values.push(number(record?.value.as_deref())?);
    }
    values.sort_unstable();
    ensure_eq!(values, Vec::from_iter(0..100), "values");
    consumer.commit()?;
    let mut committed = 0;
    for (_, offset) in consumer.committed(&partitions)? {
        committed += offset?.map_or(0, |offset| offset.offset);
    }
    ensure_eq!(committed, 100, "committed");
    consumer.seek(&partitions[0], Seek::Earliest)?;
    ensure!(!consumer.poll()?.is_empty(), "after seeking");
    consumer.commit_offsets(&[(partitions[0].clone(), CommittedOffset::new(1))])?;
    consumer.close()?;

    let described = admin.describe_group(&group)?;
    ensure!(described.members.is_empty(), "the consumer has not left");
    let offsets = admin.list_group_offsets(&group, Some(&partitions[..1]))?;
    ensure!(one(offsets)?.1?.is_some(), "offsets");
    admin.delete_group(&group)?;
    admin.delete_topic(&topic)?;
    Ok(())
}
