//! Offsets of partitions by time, and the deletion of records.

use futures_util::future::BoxFuture;
use kohort_wire::{ApiKey, messages::*};

use super::Admin;
use crate::{
    Each, IsolationLevel, ListedOffset, OffsetSpec, Result, Subject, TopicPartition,
    by_leader::{by_leader, by_topic},
    error::check,
    list_offsets::list_offsets,
    rpc::Destination,
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
    ///
    /// A second attempt, after one whose answer was lost, deletes nothing more; but with −1 it takes
    /// what was written in between as well.
    pub async fn delete_records(
        &self,
        partitions: &[(TopicPartition, i64)],
    ) -> Each<TopicPartition, i64> {
        let timeout = self.cluster.config().api_timeout;
        let call = |broker, items| -> BoxFuture<'static, _> {
            let admin = self.clone();
            Box::pin(async move { admin.delete_records_at(broker, items).await })
        };
        let items = partitions.to_vec();
        by_leader(&self.cluster, ApiKey::DeleteRecords, items, timeout, call).await
    }

    async fn delete_records_at(
        &self,
        broker: i32,
        items: Vec<(TopicPartition, i64)>,
    ) -> Result<Each<TopicPartition, i64>> {
        let topics = by_topic(items).into_iter().map(|(name, partitions)| {
            let partitions = partitions.into_iter();
            let partitions = partitions.map(|(partition_index, offset)| DeleteRecordsPartition {
                partition_index,
                offset,
            });
            DeleteRecordsTopic {
                name,
                partitions: partitions.collect(),
            }
        });
        let request = DeleteRecordsRequest {
            topics: topics.collect(),
            timeout_ms: self.timeout_ms(),
        };
        let response = self
            .cluster
            .call(&Destination::Broker(broker), &request)
            .await?;
        let mut results = Vec::new();
        for topic in response.topics {
            for partition in topic.partitions {
                let name = TopicPartition::new(&*topic.name, partition.partition_index);
                let subject = || Subject::Partition(name.clone());
                let result = check(ApiKey::DeleteRecords, partition.error_code, None, subject);
                results.push((name, result.map(|()| partition.low_watermark)));
            }
        }
        Ok(results)
    }
}
