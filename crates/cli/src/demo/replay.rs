//! Writes the earthquakes to the topic, as far apart as they were, only faster.

use std::{sync::Arc, time::Duration};

use kohort::{Producer, ProducerConfig, ProducerRecord};
use tokio::time::sleep_until;

use super::{TOPIC, data::Quake, ledger::Ledger};
use crate::failure::Failure;

/// Writes all of them within `duration`, keyed by region, so that the order within each region is
/// kept.
pub(super) async fn replay(
    address: String,
    quakes: Vec<Quake>,
    ledger: Arc<Ledger>,
    duration: Duration,
) -> Result<(), Failure> {
    let producer = Producer::connect(ProducerConfig::new(&address)).await?;
    let (Some(first), Some(last)) = (quakes.first(), quakes.last()) else {
        return Ok(());
    };
    let span_ms = (last.timestamp_ms - first.timestamp_ms).max(1) as f64;
    let began = tokio::time::Instant::now();
    for quake in &quakes {
        let share = (quake.timestamp_ms - first.timestamp_ms) as f64 / span_ms;
        sleep_until(began + duration.mul_f64(share)).await;
        let value = quake.to_json();
        let record = ProducerRecord::new(TOPIC)
            .key(quake.region)
            .value(&value)
            .timestamp(quake.timestamp_ms);
        let delivery = producer.send(record).await?;
        let ledger = ledger.clone();
        tokio::spawn(async move {
            match delivery.await {
                Ok(record) => ledger.produced(record.partition),
                Err(error) => ledger.fail(format!("a record was not written: {error}")),
            }
        });
    }
    producer.flush().await;
    ledger.event("the week is over");
    Ok(())
}
