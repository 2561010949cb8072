//! Tests an application against a broker in the same process: no container, no fixed port, ready in
//! milliseconds. Needs the feature `test-broker`.
//!
//! `cargo run --example application_test --features test-broker`

use kohort::{
    Consumer, Producer, ProducerConfig, ProducerRecord, consumer::OffsetReset, testing::TestBroker,
};

/// The application: copies orders of at least `limit` to another topic, and ends after `count` orders.
async fn large_orders(servers: &str, limit: u64, count: usize) -> kohort::Result<()> {
    let mut consumer = Consumer::builder()
        .bootstrap_servers(servers)
        .group_id("large-orders")
        .offset_reset(OffsetReset::Earliest)
        .build()
        .await?;
    consumer.subscribe(["orders"])?;
    let producer = Producer::builder()
        .bootstrap_servers(servers)
        .build()
        .await?;
    for _ in 0..count {
        let order = consumer.recv().await?;
        let text = String::from_utf8_lossy(order.value.as_deref().unwrap_or_default());
        if text.parse::<u64>().is_ok_and(|amount| amount >= limit) {
            let copy = ProducerRecord::from(&order).topic("large-orders");
            // Written before the consumer is asked for the next order, which finishes this one.
            producer.send(copy).await?.await?;
        }
    }
    consumer.finish();
    consumer.close().await
}

/// In a real project this is a `#[tokio::test]`.
pub(crate) async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let broker = TestBroker::start().await?;
    broker.create_topic("orders", 1).await?;
    broker.create_topic("large-orders", 1).await?;
    let producer = Producer::connect(ProducerConfig::new(broker.servers())).await?;
    for amount in ["20", "700", "nonsense", "500"] {
        producer
            .send(ProducerRecord::new("orders").value(amount))
            .await?
            .await?;
    }

    large_orders(broker.servers(), 500, 4).await?;

    let mut copies = Consumer::builder()
        .bootstrap_servers(broker.servers())
        .build()
        .await?;
    let first = (
        kohort::TopicPartition::new("large-orders", 0),
        kohort::consumer::Seek::Earliest,
    );
    copies.assign([first])?;
    for expected in ["700", "500"] {
        let copy = copies.recv().await?;
        assert_eq!(copy.value.as_deref(), Some(expected.as_bytes()));
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    run().await?;
    println!("passed");
    Ok(())
}
