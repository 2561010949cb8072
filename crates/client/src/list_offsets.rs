//! Offsets by time (ListOffsets).

use std::time::Duration;

use futures_util::future::BoxFuture;
use kohort_wire::{ApiKey, codec::Versions, messages::*};

use crate::{
    Each, Result, Subject, TopicPartition,
    by_leader::{by_leader, by_topic},
    error::check,
    rpc::{Cluster, Destination, Lane},
};

/// Which offset of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffsetSpec {
    /// Of the first record.
    Earliest,
    /// After the last record.
    Latest,
    /// Of the first record at or after this time, in milliseconds since 1970; none if there is no
    /// such record.
    Timestamp(i64),
    /// Of the record with the greatest timestamp (KIP-734); none if there are no records.
    MaxTimestamp,
    /// Of the first record that is not (only) in tiered storage (KIP-405).
    EarliestLocal,
    /// Of the last record in tiered storage (KIP-1005).
    LatestTiered,
}

impl OffsetSpec {
    const fn timestamp(self) -> i64 {
        match self {
            // Negative numbers stand for the others.
            OffsetSpec::Timestamp(timestamp @ 0..) => timestamp,
            OffsetSpec::Timestamp(_) => 0,
            OffsetSpec::Latest => -1,
            OffsetSpec::Earliest => -2,
            OffsetSpec::MaxTimestamp => -3,
            OffsetSpec::EarliestLocal => -4,
            OffsetSpec::LatestTiered => -5,
        }
    }

    /// The first version of ListOffsets that knows it.
    const fn since(self) -> i16 {
        match self {
            OffsetSpec::MaxTimestamp => 7,
            OffsetSpec::EarliestLocal => 8,
            OffsetSpec::LatestTiered => 9,
            _ => 1,
        }
    }
}

/// `isolation.level`: whether records of transactions that are open or were aborted count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IsolationLevel {
    /// All records count.
    #[default]
    ReadUncommitted,
    /// Only those of committed transactions, and those outside of any, up to the first open
    /// transaction.
    ReadCommitted,
}

impl IsolationLevel {
    pub(crate) const fn number(self) -> i8 {
        match self {
            IsolationLevel::ReadUncommitted => 0,
            IsolationLevel::ReadCommitted => 1,
        }
    }
}

/// An offset that was asked for by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedOffset {
    /// The offset; `None` if no record is as asked.
    pub offset: Option<i64>,
    /// The record's timestamp in ms, if the broker told it.
    pub timestamp: Option<i64>,
    /// The epoch of the leader that wrote the record, if the broker told it.
    pub leader_epoch: Option<i32>,
}

pub(crate) async fn list_offsets(
    cluster: &Cluster,
    partitions: Vec<(TopicPartition, OffsetSpec)>,
    isolation_level: IsolationLevel,
    timeout: Duration,
) -> Each<TopicPartition, ListedOffset> {
    let call = |broker, items| -> BoxFuture<'static, _> {
        let cluster = cluster.clone();
        Box::pin(async move { ask(&cluster, broker, items, isolation_level).await })
    };
    by_leader(cluster, ApiKey::ListOffsets, partitions, timeout, call).await
}

async fn ask(
    cluster: &Cluster,
    broker: i32,
    items: Vec<(TopicPartition, OffsetSpec)>,
    isolation_level: IsolationLevel,
) -> Result<Each<TopicPartition, ListedOffset>> {
    let since = items.iter().map(|(_, spec)| spec.since()).max();
    let versions = Versions::new(since.unwrap_or(1), i16::MAX);
    let to = Destination::Broker(broker);
    let connection = cluster.connection(&to, Lane::Main).await?;
    let version = connection.version_of::<ListOffsetsRequest>(versions)?;
    let timeout = cluster.config().request_timeout;
    let request = request(items, isolation_level, timeout);
    let response = connection.call(&request, version, timeout).await?;
    Ok(results(response))
}

fn request(
    items: Vec<(TopicPartition, OffsetSpec)>,
    isolation_level: IsolationLevel,
    timeout: Duration,
) -> ListOffsetsRequest {
    let topics = by_topic(items).into_iter().map(|(name, partitions)| {
        let partitions =
            partitions
                .into_iter()
                .map(|(partition_index, spec)| ListOffsetsPartition {
                    partition_index,
                    timestamp: spec.timestamp(),
                    ..Default::default()
                });
        ListOffsetsTopic {
            name,
            partitions: partitions.collect(),
        }
    });
    ListOffsetsRequest {
        replica_id: -1,
        isolation_level: isolation_level.number(),
        topics: topics.collect(),
        timeout_ms: timeout.as_millis() as i32,
    }
}

fn results(response: ListOffsetsResponse) -> Each<TopicPartition, ListedOffset> {
    let mut results = Vec::new();
    for topic in response.topics {
        for partition in topic.partitions {
            let name = TopicPartition::new(&*topic.name, partition.partition_index);
            let subject = || Subject::Partition(name.clone());
            let result: Result<()> =
                check(ApiKey::ListOffsets, partition.error_code, None, subject);
            let known = |value: i64| (value >= 0).then_some(value);
            let result = result.map(|()| ListedOffset {
                offset: known(partition.offset),
                timestamp: known(partition.timestamp),
                leader_epoch: (partition.leader_epoch >= 0).then_some(partition.leader_epoch),
            });
            results.push((name, result));
        }
    }
    results
}
