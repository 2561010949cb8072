//! Writes records at a given rate.

use std::time::Duration;

use clap::Args;
use kohort::{Producer, ProducerConfig, ProducerRecord};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::At;
use crate::event::emit;

/// How long a value is, in bytes.
const VALUE_BYTES: usize = 100;

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    at: At,
    #[arg(long, default_value = "none")]
    compression: String,
    #[arg(long)]
    start: u64,
    #[arg(long)]
    count: u64,
    /// Records a second; 0 is as fast as it goes.
    #[arg(long, default_value_t = 0)]
    rate: u64,
}

pub(crate) async fn produce(options: &Options) -> kohort::Result<()> {
    let properties = options.at.properties();
    let properties = properties.with("compression.type", &options.compression);
    let producer = Producer::connect(ProducerConfig::from_properties(&properties)?).await?;
    let began = Instant::now();
    let mut deliveries = Vec::new();
    for sent in 0..options.count {
        if let Some(due_us) = (sent * 1_000_000).checked_div(options.rate) {
            sleep_until(began + Duration::from_micros(due_us)).await;
        }
        let number = options.start + sent;
        let (key, value) = (format!("k{number}"), format!("{number:<VALUE_BYTES$}"));
        let record = ProducerRecord::new(&options.at.topic)
            .key(&key)
            .value(&value);
        deliveries.push(producer.send(record).await?);
    }
    for delivery in deliveries {
        delivery.await?;
    }
    producer.close().await;
    emit(&json!({"event": "produced", "count": options.count}));
    Ok(())
}
