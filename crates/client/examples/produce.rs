//! Writes the lines of the standard input as records.
//!
//! `cargo run --example produce -- localhost:9092 TOPIC`

use kohort::{Producer, ProducerRecord, producer::Compression};

#[tokio::main(flavor = "current_thread")]
async fn main() -> kohort::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(servers), Some(topic)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: produce SERVERS TOPIC");
        std::process::exit(2);
    };
    let producer = Producer::builder()
        .bootstrap_servers(servers)
        .compression(Compression::Lz4)
        .build()
        .await?;
    let mut deliveries = Vec::new();
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let record = ProducerRecord::new(&topic).value(&line);
        deliveries.push(producer.send(record).await?);
    }
    producer.flush().await;
    for delivery in deliveries {
        let written = delivery.await?;
        println!(
            "{}-{} at {:?}",
            written.topic, written.partition, written.offset
        );
    }
    producer.close().await;
    Ok(())
}
