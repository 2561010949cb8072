//! Offsets of partitions by time, and the deletion of records.

use kohort_wire::{ApiKey, messages::*};

use super::Admin;
use crate::{
    Each, IsolationLevel, ListedOffset, OffsetSpec, Subject, TopicPartition,
    by_leader::{by_leader, by_topic},
    error::check,
    list_offsets::list_offsets,
    rpc::{Destination, Lane},
};

impl Admin {
    /// Offsets by time, the first or the last.
    pub async fn list_offsets(
        &self,
        partitions: &[(TopicPartition, OffsetSpec)],
        isolation_level: IsolationLevel,
    ) -> Each<TopicPartition, ListedOffset> {
        let timeout = self.cluster.config().api_timeout;
        list_offsets(&self.cluster, partitions.to_vec(), isolation_level, timeout).await
    }

    /// Deletes the records of each partition before an offset; −1 stands for its end. Answers
    /// with the offset of the first record that is left.
    pub async fn delete_records(
        &self,
        partitions: &[(TopicPartition, i64)],
    ) -> Each<TopicPartition, i64> {
        const API: ApiKey = ApiKey::DeleteRecords;
        let timeout = self.cluster.config().api_timeout;
        let items = partitions.to_vec();
        by_leader(&self.cluster, API, items, timeout, async |broker, items| {
            let to = Destination::Broker(broker);
            let connection = self.cluster.connection(&to, Lane::Main).await?;
            let version = connection.version::<DeleteRecordsRequest>()?;
            let topics = by_topic(items).into_iter().map(|(name, partitions)| {
                let partitions = partitions.into_iter();
                DeleteRecordsTopic {
                    name,
                    partitions: partitions
                        .map(|(partition_index, offset)| DeleteRecordsPartition {
                            partition_index,
                            offset,
                        })
                        .collect(),
                }
            });
            let request = DeleteRecordsRequest {
                topics: topics.collect(),
                timeout_ms: self.timeout_ms(),
            };
            let timeout = self.cluster.config().request_timeout;
            let response = connection.call(&request, version, timeout).await?;
            let mut results = Vec::new();
            for topic in response.topics {
                for partition in topic.partitions {
                    let name = TopicPartition::new(&*topic.name, partition.partition_index);
                    let subject = || Subject::Partition(name.clone());
                    let result = check(API, partition.error_code, None, subject);
                    results.push((name, result.map(|()| partition.low_watermark)));
                }
            }
            Ok(results)
        })
        .await
    }
}
