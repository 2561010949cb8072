//! Writing.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kohort::{
    Producer, ProducerConfig, ProducerRecord,
    producer::{Compression, Delivery},
};
use rdkafka::{
    ClientConfig, ClientContext,
    producer::{BaseRecord, DeliveryResult, ProducerContext, ThreadedProducer},
    types::RDKafkaErrorCode,
};

use crate::{
    Arguments, Work,
    usage::{Began, Usage},
    values::Values,
};

/// Records whose outcome kohort's user has not looked at yet, and bytes that may wait.
const OUTSTANDING: usize = 100_000;
const BUFFER_BYTES: usize = 64 << 20;

pub(crate) async fn kohort(arguments: &Arguments, work: &Work) -> Usage {
    let Work::Produce {
        size,
        compression,
        batch_bytes,
        linger_ms,
    } = work
    else {
        unreachable!("only producing comes here")
    };
    let config = ProducerConfig {
        compression: Compression::from_name(compression).expect("a compression.type"),
        batch_bytes: *batch_bytes,
        linger: Duration::from_millis(*linger_ms),
        buffer_bytes_max: BUFFER_BYTES,
        ..ProducerConfig::new(&arguments.bootstrap_servers)
    };
    let producer = Producer::connect(config).await.expect("a cluster");
    let topic = arguments.topic.as_str();
    let values = Values::new(*size);
    let first = ProducerRecord::new(topic).value(values.get(0));
    producer
        .send(first)
        .await
        .expect("sent")
        .await
        .expect("written");
    let began = Began::now();
    let mut outstanding = VecDeque::<Delivery>::with_capacity(OUTSTANDING);
    for number in 1..arguments.records {
        if outstanding.len() == OUTSTANDING {
            let oldest = outstanding.pop_front().expect("there are some");
            oldest.await.expect("written");
        }
        let record = ProducerRecord::new(topic).value(values.get(number));
        outstanding.push_back(producer.send(record).await.expect("sent"));
    }
    for delivery in outstanding {
        delivery.await.expect("written");
    }
    began.until_now()
}

/// Counts the records that are written.
#[derive(Clone, Default)]
struct Counting {
    written: Arc<AtomicU64>,
}

impl ClientContext for Counting {}

impl ProducerContext for Counting {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        result.as_ref().expect("written");
        self.written.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn rdkafka(arguments: &Arguments, work: &Work) -> Usage {
    let Work::Produce {
        size,
        compression,
        batch_bytes,
        linger_ms,
    } = work
    else {
        unreachable!("only producing comes here")
    };
    let counting = Counting::default();
    let producer: ThreadedProducer<Counting> = ClientConfig::new()
        .set("bootstrap.servers", &arguments.bootstrap_servers)
        .set("enable.idempotence", "true")
        .set("compression.type", compression)
        .set("batch.size", batch_bytes.to_string())
        .set("batch.num.messages", "100000")
        .set("linger.ms", linger_ms.to_string())
        .set(
            "queue.buffering.max.kbytes",
            (BUFFER_BYTES >> 10).to_string(),
        )
        .set("queue.buffering.max.messages", "1000000")
        .create_with_context(counting.clone())
        .expect("a producer");
    let values = Values::new(*size);
    let send = |number: u64| {
        let mut record = BaseRecord::<(), [u8]>::to(&arguments.topic).payload(values.get(number));
        while let Err((error, same)) = producer.send(record) {
            let full = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull);
            assert!(full, "{error}");
            std::thread::sleep(Duration::from_millis(1));
            record = same;
        }
    };
    let wait_for = |count: u64| {
        while counting.written.load(Ordering::Relaxed) < count {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    send(0);
    wait_for(1);
    let began = Began::now();
    (1..arguments.records).for_each(send);
    wait_for(arguments.records);
    began.until_now()
}
