//! What is counted, through the facade of the crate `metrics`: it costs next to nothing while no
//! recorder is installed. Counted are batches of things, never single records.

use metrics::{counter, histogram};

use crate::{Result, TopicPartition};

pub(crate) fn connected(result: &Result<impl Sized>) {
    match result {
        Ok(_) => counter!("kohort_connections_total").increment(1),
        Err(_) => counter!("kohort_connection_failures_total").increment(1),
    }
}

pub(crate) fn polled(records: usize) {
    counter!("kohort_consumer_records_total").increment(records as u64);
}

pub(crate) fn fetched(bytes: usize) {
    counter!("kohort_consumer_fetched_bytes_total").increment(bytes as u64);
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

pub(crate) fn produced(records: i32, bytes: usize, written: bool, since: tokio::time::Instant) {
    let records = u64::from(records.unsigned_abs());
    if written {
        counter!("kohort_producer_records_total").increment(records);
        counter!("kohort_producer_bytes_total").increment(bytes as u64);
        histogram!("kohort_producer_batch_seconds").record(since.elapsed());
    } else {
        counter!("kohort_producer_record_failures_total").increment(records);
    }
}
