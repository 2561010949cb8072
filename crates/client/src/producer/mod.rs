//! Writing records.
//!
//! ```no_run
//! use kohort::{Producer, ProducerRecord};
//!
//! # async fn example() -> kohort::Result<()> {
//! let producer = Producer::builder().bootstrap_servers("localhost:9092").build().await?;
//!
//! // `send` waits only while there is no memory; what becomes of the record is told later.
//! let record = ProducerRecord::new("orders").key("customer-7").value("three pears");
//! let delivery = producer.send(record).await?;
//! let written = delivery.await?;
//! println!("{}-{} at {:?}", written.topic, written.partition, written.offset);
//!
//! // Many at once: keep the deliveries, or only wait for all of them.
//! let mut deliveries = Vec::new();
//! for number in 0..1000 {
//!     let value = number.to_string();
//!     deliveries.push(producer.send(ProducerRecord::new("orders").value(&value)).await?);
//! }
//! producer.flush().await;
//! for delivery in deliveries {
//!     delivery.await?;
//! }
//! producer.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Records go together in batches, one after the other in each partition; with idempotence (the
//! default) none is written twice or out of order, however often it had to be sent. An error of a
//! delivery is final: everything that trying again could help was tried, for as long as
//! [`ProducerConfig::delivery_timeout`].

mod accumulator;
mod answer;
mod batch;
mod config;
mod delivery;
mod headers;
mod identity;
mod partitioner;
mod queue;
mod record;
mod request;
mod sender;
mod settle;

use std::{sync::Arc, time::Duration};

pub use config::{Acks, ProducerConfig};
pub use delivery::Delivery;
pub use headers::RecordHeaders;
pub use kohort_wire::records::Compression;
pub use partitioner::{
    Crc32Partitioner, DefaultPartitioner, Partitioner, StickyPartitioner, murmur2,
};
pub use record::{ProducerRecord, RecordMetadata};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use self::{
    accumulator::{Accumulator, Appended},
    sender::Sender,
};
use crate::{
    ByteString, Error, Result, panics::unpanicked, rpc::Cluster, runtime::on_runtime_end,
    time::now_ms,
};

/// Writes records. Cloning it gives another handle of the same producer.
///
/// When the last handle is dropped, what was sent is still written, by a task in the background;
/// [`close`](Producer::close) waits for that.
#[derive(Debug, Clone)]
pub struct Producer {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    cluster: Cluster,
    accumulator: Arc<Accumulator>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.accumulator.close();
    }
}

impl Producer {
    /// A producer for the cluster at [`ProducerConfig::client`], which is reached first.
    pub async fn connect(config: ProducerConfig) -> Result<Producer> {
        config.validate()?;
        let cluster = Cluster::connect(config.cluster_config()).await?;
        Producer::start(config, cluster)
    }

    /// A producer that reaches the cluster when it needs to. It has to be made on a tokio runtime.
    pub fn new(config: ProducerConfig) -> Result<Producer> {
        config.validate()?;
        let cluster = Cluster::new(config.cluster_config())?;
        Producer::start(config, cluster)
    }

    fn start(config: ProducerConfig, cluster: Cluster) -> Result<Producer> {
        let accumulator = Arc::new(Accumulator::new(config));
        let client_id = &cluster.config().client_id;
        let span = tracing::info_span!(parent: None, "producer", client_id);
        let sender = Sender::new(cluster.clone(), accumulator.clone());
        // Whatever ends the sender, nothing may wait for it in vain.
        let stopped = accumulator.clone();
        let task = async move {
            if let Err(problem) = unpanicked(sender.run()).await {
                let problem = format!("the producer has stopped: {problem}");
                stopped.stop(&Error::State(problem));
            }
        };
        let stopped = accumulator.clone();
        let task = on_runtime_end(task, move || stopped.stop(&Error::RuntimeEnded));
        tokio::spawn(task.instrument(span));
        Ok(Producer {
            handle: Arc::new(Handle {
                cluster,
                accumulator,
            }),
        })
    }

    /// How the producer works.
    pub fn config(&self) -> &ProducerConfig {
        &self.handle.accumulator.config
    }

    /// The cluster, for requests that are not offered here.
    pub fn cluster(&self) -> &Cluster {
        &self.handle.cluster
    }

    /// Takes a record, which is copied, and returns when it has its place in a batch: at once,
    /// unless [`ProducerConfig::buffer_bytes_max`] is reached or nothing is known yet of the topic.
    ///
    /// Dropping the future before it has returned takes the record back.
    pub async fn send(&self, record: ProducerRecord<'_>) -> Result<Delivery> {
        let timestamp = record.timestamp.unwrap_or_else(now_ms);
        let accumulator = &self.handle.accumulator;
        match accumulator.append(&record, timestamp, None)? {
            Appended::Done(delivery) => Ok(delivery),
            _ => self.send_later(record, timestamp).await,
        }
    }

    async fn send_later(&self, record: ProducerRecord<'_>, timestamp: i64) -> Result<Delivery> {
        let accumulator = &self.handle.accumulator;
        let block_max = accumulator.config.block_max;
        let deadline = Instant::now() + block_max;
        let timed_out = |what: String| Error::Timeout {
            what,
            after: block_max,
            last: None,
        };
        let mut reserved = None;
        loop {
            match accumulator.append(&record, timestamp, reserved.take())? {
                Appended::Done(delivery) => return Ok(delivery),
                Appended::Full => {
                    let memory = timeout_at(deadline, accumulator.reserve(&record)).await;
                    reserved =
                        memory.map_err(|_| timed_out("get room in buffer.memory".to_owned()))?;
                }
                Appended::UnknownTopic => {
                    let name = ByteString::from(record.topic);
                    let left = deadline.saturating_duration_since(Instant::now());
                    let topic = self.handle.cluster.topic_within(&name, left).await?;
                    accumulator.learn(&topic);
                }
            }
        }
    }

    /// [`send`](Producer::send) with `value`, as JSON, for the record's value.
    #[cfg(feature = "json")]
    pub async fn send_json<T: serde::Serialize + ?Sized>(
        &self,
        record: ProducerRecord<'_>,
        value: &T,
    ) -> Result<Delivery> {
        let value = serde_json::to_vec(value).map_err(|error| {
            Error::State(format!("the value cannot be written as JSON: {error}"))
        })?;
        self.send(record.value(&value)).await
    }

    /// Takes a record if it can be taken at once; `None` if there is no memory or nothing is known
    /// yet of the topic.
    pub fn try_send(&self, record: &ProducerRecord<'_>) -> Result<Option<Delivery>> {
        let timestamp = record.timestamp.unwrap_or_else(now_ms);
        Ok(
            match self.handle.accumulator.append(record, timestamp, None)? {
                Appended::Done(delivery) => Some(delivery),
                Appended::Full | Appended::UnknownTopic => None,
            },
        )
    }

    /// Sends what waits for more records, and returns when everything sent before is written, or
    /// cannot be.
    pub async fn flush(&self) {
        self.handle.accumulator.flushed().await;
    }

    /// [`flush`](Producer::flush), for no longer than `wait`. After that it is an error, and the
    /// records are still on their way.
    pub async fn flush_within(&self, wait: Duration) -> Result<()> {
        self.within("flush", wait).await
    }

    async fn within(&self, what: &str, wait: Duration) -> Result<()> {
        let flushed = tokio::time::timeout(wait, self.flush()).await;
        flushed.map_err(|_| Error::Timeout {
            what: what.to_owned(),
            after: wait,
            last: None,
        })
    }

    /// How many partitions a topic has.
    pub async fn partitions(&self, topic: &str) -> Result<usize> {
        Ok(self
            .handle
            .cluster
            .topic(&topic.into())
            .await?
            .partitions
            .len())
    }

    /// Takes no more records, and returns when everything sent before is written, or cannot be.
    pub async fn close(self) {
        self.handle.accumulator.close();
        self.flush().await;
    }

    /// [`close`](Producer::close), for no longer than `wait`. After that it is an error, and records
    /// that have not been written by then may be lost.
    pub async fn close_within(self, wait: Duration) -> Result<()> {
        self.handle.accumulator.close();
        self.within("close the producer", wait).await
    }
}
