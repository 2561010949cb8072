//! The form of a Produce request.

use bytes::Bytes;
use kohort_wire::{
    Uuid,
    codec::{Message, Versions},
    messages::*,
};

use super::{ProducerConfig, batch::Batch};
use crate::rpc::Metadata;

/// Which versions can say what is to be said: since 13 topics are named by id.
pub(super) fn versions(by_id: bool) -> Versions {
    if by_id {
        ProduceRequest::VERSIONS
    } else {
        Versions::new(3, 12)
    }
}

pub(super) fn produce_request(
    config: &ProducerConfig,
    metadata: &Metadata,
    batches: &[(Batch, Bytes)],
) -> ProduceRequest {
    let mut topics: Vec<TopicProduceData> = Vec::new();
    for (batch, bytes) in batches {
        let partition = &batch.outcome.partition;
        let data = PartitionProduceData {
            index: partition.partition,
            records: Some(bytes.clone()),
        };
        match topics
            .iter_mut()
            .find(|topic| topic.name == partition.topic)
        {
            Some(topic) => topic.partition_data.push(data),
            None => topics.push(TopicProduceData {
                name: partition.topic.clone(),
                topic_id: metadata
                    .topic(&partition.topic)
                    .map_or(Uuid(0), |topic| topic.id),
                partition_data: vec![data],
            }),
        }
    }
    ProduceRequest {
        transactional_id: None,
        acks: config.acks.number(),
        timeout_ms: i32::try_from(config.client.request_timeout.as_millis()).unwrap_or(i32::MAX),
        topic_data: topics,
    }
}
