//! The producer.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;
use kohort::consumer::Seek;
use kohort::producer::{Compression, Partitioner, murmur2};
use kohort::{ErrorCode, Producer, ProducerConfig, ProducerRecord, consumer::OwnedRecord};

use crate::report::Report;
use crate::world::{Checked, LIMIT, World, within};
use crate::{ensure, ensure_eq};

const PARTITIONS: i32 = 3;

pub(crate) fn check<'a>(world: &'a World, report: &mut Report<'a>) {
    for compression in Compression::ALL {
        let name = format!("producer: records come whole, {}", compression.name());
        report.check(name, whole(world, compression));
    }
    for acks in ["0", "1", "all"] {
        let name = format!("producer: acks={acks}");
        report.check(name, with_acks(world, acks));
    }
    report.check("producer: many records, in order, once", many(world));
    report.check("producer: little memory makes it wait", little(world));
    report.check("producer: flush", flush(world));
    report.check("producer: a partitioner of one's own", partitioner(world));
    report.check("producer: what cannot be written", errors(world));
}

/// Everything in a topic, by partition and offset.
async fn read(world: &World, topic: &str, count: usize) -> Checked<Vec<OwnedRecord>> {
    let mut consumer = world.consumer(&[]).await?;
    let partitions = world.partitions(topic).await?.into_iter();
    consumer.assign(partitions.map(|partition| (partition, Seek::Earliest)))?;
    let mut records = Vec::new();
    let reading = async {
        while records.len() < count {
            let polled = consumer.poll().await?;
            records.extend(polled.iter().map(|record| record.to_owned()));
        }
        Checked::Ok(())
    };
    within("reading what was written", LIMIT, reading).await??;
    ensure_eq!(records.len(), count, "records");
    records.sort_by_key(|record| (record.partition, record.offset));
    Ok(records)
}

/// Keys, values, headers and timestamps; the partition by the key as Kafka's own client has it.
async fn whole(world: &World, compression: Compression) -> Checked {
    const COUNT: usize = 300;
    let topic = world.topic("whole", PARTITIONS).await?;
    let settings = [
        ("compression.type", compression.name()),
        ("batch.size", "4000"),
    ];
    let producer = world.producer(&settings).await?;
    ensure_eq!(
        producer.partitions(&topic).await?,
        PARTITIONS as usize,
        "partitions"
    );
    let value_of = |number: usize| match number % 10 {
        0 => None,
        1 => Some(String::new()),
        2 => Some("long ".repeat(1000)),
        _ => Some(format!("value {number}")),
    };
    let mut deliveries = BTreeMap::new();
    for number in 0..COUNT {
        let (key, value) = (format!("key {}", number % 50), value_of(number));
        let headers = [
            ("number", Some(key.as_bytes())),
            ("twice", None),
            ("twice", Some(&b"\0\xff"[..])),
        ];
        let record = ProducerRecord {
            key: Some(key.as_bytes()),
            value: value.as_deref().map(str::as_bytes),
            headers: (&headers).into(),
            timestamp: Some(1_700_000_000_000 + number as i64),
            ..ProducerRecord::new(&topic)
        };
        deliveries.insert(number, producer.send(record).await?);
    }
    let mut places = BTreeMap::new();
    for (number, delivery) in deliveries {
        let written = delivery.await?;
        let place = (written.partition, written.offset.unwrap_or(-1));
        ensure!(places.insert(place, number).is_none(), "two at {place:?}");
    }
    producer.close().await;
    let records = read(world, &topic, COUNT).await?;
    for record in records {
        let place = (record.partition, record.offset);
        let number = places.remove(&place);
        let number = number.ok_or_else(|| format!("nothing was written to {place:?}"))?;
        let key = format!("key {}", number % 50);
        ensure_eq!(record.key.as_deref(), Some(key.as_bytes()), "the key");
        let wanted = (murmur2(key.as_bytes()) & 0x7fff_ffff) as i32 % PARTITIONS;
        ensure_eq!(record.partition, wanted, "the partition of {key}");
        let value = value_of(number);
        ensure_eq!(
            record.value.as_deref(),
            value.as_deref().map(str::as_bytes),
            "the value"
        );
        let at = 1_700_000_000_000 + number as i64;
        ensure_eq!(record.timestamp, at, "the timestamp");
        let headers: Vec<_> = record
            .headers
            .iter()
            .map(|(name, value)| (&name[..], value.as_deref()))
            .collect();
        let wanted = [
            (&b"number"[..], Some(key.as_bytes())),
            (b"twice", None),
            (b"twice", Some(b"\0\xff")),
        ];
        ensure_eq!(headers, wanted, "the headers");
    }
    Ok(())
}

async fn with_acks(world: &World, acks: &str) -> Checked {
    let topic = world.topic("acks", PARTITIONS).await?;
    let producer = world.producer(&[("acks", acks)]).await?;
    ensure_eq!(producer.config().idempotence, acks == "all", "idempotence");
    let mut deliveries = Vec::new();
    for number in 0..200 {
        let value = format!("{number}");
        let record = ProducerRecord::new(&topic).value(&value);
        deliveries.push(producer.send(record).await?);
    }
    for delivery in deliveries {
        let written = delivery.await?;
        ensure_eq!(written.offset.is_some(), acks != "0", "an offset is told");
    }
    producer.close().await;
    read(world, &topic, 200).await.map(|_| ())
}

async fn many(world: &World) -> Checked {
    const COUNT: u64 = 30_000;
    let topic = world.topic("many", PARTITIONS).await?;
    let producer = world
        .producer(&[("linger.ms", "0"), ("batch.size", "2000")])
        .await?;
    let mut last = None;
    for number in 0..COUNT {
        let value = format!("{number:<50}");
        let record = ProducerRecord::new(&topic).value(&value);
        let record = record.partition((number % PARTITIONS as u64) as i32);
        last = Some(producer.send(record).await?);
    }
    last.ok_or("nothing was sent")?.await?;
    producer.close().await;
    let found = world.read_all(&topic).await?;
    let wanted = (0..COUNT).map(|number| {
        let partitions = PARTITIONS as u64;
        let place = ((number % partitions) as i32, (number / partitions) as i64);
        (place.0, place.1, number)
    });
    let mut wanted: Vec<_> = wanted.collect();
    wanted.sort_unstable();
    ensure!(found == wanted, "the log is not what was sent, in order");
    Ok(())
}

async fn little(world: &World) -> Checked {
    let topic = world.topic("little", 1).await?;
    let settings = [("buffer.memory", "20000"), ("batch.size", "4000")];
    let producer = world.producer(&settings).await?;
    let value = "x".repeat(1000);
    let mut refused = 0;
    for _ in 0..500 {
        let record = ProducerRecord::new(&topic).value(&value);
        match producer.try_send(&record)? {
            Some(delivery) => drop(delivery),
            None => {
                refused += 1;
                drop(producer.send(record).await?);
            }
        }
    }
    producer.flush().await;
    ensure!(refused > 5, "only {refused} of 500 records had to wait");
    ensure_eq!(world.ends(&topic).await?.get(&0), Some(&500), "records");
    Ok(())
}

async fn flush(world: &World) -> Checked {
    let topic = world.topic("flush", PARTITIONS).await?;
    let producer = world.producer(&[("linger.ms", "30000"), ("delivery.timeout.ms", "90000")]);
    let producer = producer.await?;
    let mut deliveries = Vec::new();
    for number in 0..20 {
        let value = format!("{number}");
        let record = ProducerRecord::new(&topic).key(&value).value(&value);
        deliveries.push(producer.send(record).await?);
    }
    ensure!(
        (&mut deliveries[0]).now_or_never().is_none(),
        "a batch has not lingered"
    );
    within("flushing", LIMIT / 4, producer.flush()).await?;
    for delivery in deliveries {
        let now = delivery.now_or_never();
        now.ok_or("a record is not written after flushing")??;
    }
    Ok(())
}

#[derive(Debug)]
struct ByLength;

impl Partitioner for ByLength {
    fn partition(
        &self,
        _: &str,
        _: Option<&[u8]>,
        value: Option<&[u8]>,
        partitions: i32,
    ) -> Option<i32> {
        value.map(|value| value.len() as i32 % partitions)
    }
}

async fn partitioner(world: &World) -> Checked {
    let topic = world.topic("partitioner", PARTITIONS).await?;
    let mut config = ProducerConfig::from_properties(&world.properties())?;
    config.partitioner = Arc::new(ByLength);
    let producer = Producer::connect(config).await?;
    for length in 0..7 {
        let value = "x".repeat(length);
        let sent = producer.send(ProducerRecord::new(&topic).value(&value));
        let written = sent.await?.await?;
        ensure_eq!(written.partition, length as i32 % PARTITIONS, "partition");
    }
    Ok(())
}

async fn errors(world: &World) -> Checked {
    let topic = world.topic("errors", 1).await?;
    let settings = [
        ("max.request.size", "50000"),
        ("allow.auto.create.topics", "false"),
        ("max.block.ms", "15000"),
    ];
    let producer = world.producer(&settings).await?;
    let long = "x".repeat(60_000);
    let sent = producer.send(ProducerRecord::new(&topic).value(&long));
    let error = match sent.await {
        Err(error) => error,
        Ok(delivery) => delivery.await.err().ok_or("it is too long")?,
    };
    ensure!(!error.is_retriable(), "too long: {error}");
    let sent = producer.send(ProducerRecord::new(&topic).partition(5).value("x"));
    ensure!(sent.await.is_err(), "there is a partition 5");
    let sent = producer.send(ProducerRecord::new("no-such-topic").value("x"));
    let code = sent.await.err().and_then(|error| error.code());
    let wanted = Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    ensure_eq!(code, wanted, "a topic that does not exist");

    // What the broker refuses is told too.
    let change = [(
        "max.message.bytes".into(),
        kohort::admin::ConfigOperation::Set("1000".into()),
    )];
    let resource = kohort::admin::ConfigResource::topic(topic.as_str());
    world.admin.alter_configs(&resource, &change, false).await?;
    let value = "x".repeat(5000);
    let mut tries = 0;
    let error = loop {
        let sent = producer.send(ProducerRecord::new(&topic).value(&value));
        match sent.await?.await {
            Err(error) => break error,
            // The setting needs a moment.
            Ok(_) => tries += 1,
        }
        ensure!(tries < 200, "records longer than max.message.bytes");
    };
    let wanted = Some(ErrorCode::MESSAGE_TOO_LARGE);
    ensure_eq!(error.code(), wanted, "longer than max.message.bytes");
    // And the producer goes on.
    let sent = producer.send(ProducerRecord::new(&topic).value("short"));
    let written = sent.await?.await?;
    let end = world.ends(&topic).await?;
    let next = written.offset.map(|offset| offset + 1);
    ensure_eq!(end.get(&0).copied(), next, "the end after an error");
    Ok(())
}
