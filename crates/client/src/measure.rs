//! What is counted, through the facade of the crate `metrics`: it costs next to nothing while no
//! recorder is installed. Counted are batches of things, never single records.
//!
//! What has labels of its own is looked up once, when the topic or partition is met: a recorder has
//! to be installed before.

use std::{fmt, time::Duration};

use metrics::{Counter, Gauge, counter, gauge, histogram};

use crate::{ByteString, Result, TopicPartition};

pub(crate) fn connected(result: &Result<impl Sized>) {
    match result {
        Ok(_) => counter!("kohort_connections_total").increment(1),
        Err(_) => counter!("kohort_connection_failures_total").increment(1),
    }
}

/// A broker asks for a pause.
pub(crate) fn throttled(pause: Duration) {
    histogram!("kohort_throttle_seconds").record(pause);
}

pub(crate) fn fetch_failed() {
    counter!("kohort_consumer_fetch_failures_total").increment(1);
}

pub(crate) fn committed(result: &Result<()>) {
    match result {
        Ok(()) => counter!("kohort_consumer_commits_total").increment(1),
        Err(_) => counter!("kohort_consumer_commit_failures_total").increment(1),
    }
}

/// `change` is `assigned`, `revoked` or `lost`.
pub(crate) fn rebalanced(change: &'static str, partitions: &[TopicPartition]) {
    let count = partitions.len() as u64;
    counter!("kohort_consumer_partitions_total", "change" => change).increment(count);
}

/// Of a partition that a consumer has.
pub(crate) struct Consumed {
    records: Counter,
    bytes: Counter,
    lag: Gauge,
}

impl Consumed {
    pub(crate) fn new(group_id: &ByteString, partition: &TopicPartition) -> Consumed {
        let topic = || partition.topic.to_string();
        let group = || group_id.to_string();
        let number = partition.partition.to_string();
        Consumed {
            records: counter!("kohort_consumer_records_total",
                "group" => group(), "topic" => topic()),
            bytes: counter!("kohort_consumer_fetched_bytes_total",
                "group" => group(), "topic" => topic()),
            lag: gauge!("kohort_consumer_lag_records",
                "group" => group(), "topic" => topic(), "partition" => number),
        }
    }

    pub(crate) fn fetched(&self, bytes: usize) {
        self.bytes.increment(bytes as u64);
    }

    pub(crate) fn polled(&self, records: usize) {
        self.records.increment(records as u64);
    }

    pub(crate) fn lag(&self, records: Option<i64>) {
        if let Some(records) = records {
            self.lag.set(records as f64);
        }
    }
}

impl fmt::Debug for Consumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Consumed")
    }
}

impl Drop for Consumed {
    /// The next owner of the partition reports its lag.
    fn drop(&mut self) {
        self.lag.set(0.0);
    }
}

/// Of a topic to which a producer writes.
pub(crate) struct Produced {
    records: Counter,
    bytes: Counter,
    failures: Counter,
}

impl Produced {
    pub(crate) fn new(topic: &ByteString) -> Produced {
        let topic = || topic.to_string();
        Produced {
            records: counter!("kohort_producer_records_total", "topic" => topic()),
            bytes: counter!("kohort_producer_bytes_total", "topic" => topic()),
            failures: counter!("kohort_producer_record_failures_total", "topic" => topic()),
        }
    }

    /// A batch is done with.
    pub(crate) fn batch(
        &self,
        records: i32,
        bytes: usize,
        written: bool,
        since: tokio::time::Instant,
    ) {
        let records = u64::from(records.unsigned_abs());
        if written {
            self.records.increment(records);
            self.bytes.increment(bytes as u64);
            histogram!("kohort_producer_batch_seconds").record(since.elapsed());
        } else {
            self.failures.increment(records);
        }
    }
}

impl fmt::Debug for Produced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Produced")
    }
}
