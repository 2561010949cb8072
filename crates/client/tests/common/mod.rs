//! A broker for tests, and what tests do with it.
#![allow(dead_code)]

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use kohort::{
    Admin, ClientConfig, Producer, ProducerConfig, ProducerRecord, admin::NewTopic,
    producer::Compression,
};

/// A broker.
pub(crate) struct Servers {
    address: String,
    _broker: Option<kohort_broker::Broker>,
}

impl std::ops::Deref for Servers {
    type Target = str;

    fn deref(&self) -> &str {
        &self.address
    }
}

/// A broker of the test's own, or the one at `KOHORT_TEST_SERVERS`.
pub(crate) async fn servers() -> Servers {
    if let Ok(address) = std::env::var("KOHORT_TEST_SERVERS") {
        let _broker = None;
        return Servers { address, _broker };
    }
    let builder = kohort_broker::Broker::builder()
        .listen("127.0.0.1:0")
        .set("group.initial.rebalance.delay.ms", "0")
        // The records say that they are old, and a busy machine may give a test half a minute.
        .set("log.retention.ms", "-1")
        .set("auto.create.topics.enable", "false");
    let broker = builder.start().await.unwrap();
    Servers {
        address: broker.address().to_string(),
        _broker: Some(broker),
    }
}

/// A name that no other test uses, in this run or another.
pub(crate) fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = now.unwrap().as_millis() % 1_000_000_000;
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{millis}-{}-{next}", std::process::id())
}

/// An admin and a new topic.
pub(crate) async fn with_topic(servers: &str, partitions: i32) -> (Admin, String) {
    let admin = Admin::connect(ClientConfig::new(servers)).await.unwrap();
    let topic = unique("topic");
    let new = NewTopic::new(topic.as_str(), partitions);
    admin.create_topic(&new).await.unwrap();
    // Brokers learn of it a little later.
    admin.cluster().topic(&topic.as_str().into()).await.unwrap();
    (admin, topic)
}

/// Writes `values` as records, one after the other.
pub(crate) async fn produce(
    servers: &str,
    topic: &str,
    partition: Option<i32>,
    values: std::ops::Range<i64>,
) {
    let config = ProducerConfig {
        batch_bytes: 3000,
        compression: Compression::Zstd,
        ..ProducerConfig::new(servers)
    };
    let producer = Producer::connect(config).await.unwrap();
    for value in values {
        let text = value.to_string();
        let headers = [("h", Some(text.as_bytes()))];
        let mut record = ProducerRecord::new(topic)
            .value(&text)
            .headers(&headers)
            .timestamp(1_000_000 + value);
        record.partition = partition;
        record.key = Some(match partition {
            Some(_) => b"key",
            None => text.as_bytes(),
        });
        drop(producer.send(record).await.unwrap());
    }
    producer.close().await;
}

/// For what must happen, however busy the machine is.
pub(crate) const LONG: Duration = Duration::from_secs(40);

/// Waits until something is so.
pub(crate) async fn until(mut condition: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, waiting)
        .await
        .expect("it should have happened");
}
