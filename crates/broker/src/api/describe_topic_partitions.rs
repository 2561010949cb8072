//! DescribeTopicPartitions (75): topics and their partitions, a page at a time (KIP-966).

use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use kohort_wire::{ByteString, ErrorCode, Uuid, messages::*};

use super::{Call, authorized};
use crate::topics::{Topic, check_name, is_internal};

/// Kafka's `max.request.partition.size.limit`.
const PARTITIONS_MAX: i32 = 2000;

pub(super) async fn handle(
    call: Call,
    request: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let snapshot = call.node.snapshot();
    let (first_name, first_partition) = match &request.cursor {
        Some(cursor) => (&*cursor.topic_name, cursor.partition_index.max(0)),
        None => ("", 0),
    };
    let names: BTreeSet<Arc<str>> = if request.topics.is_empty() {
        let from = (Bound::Included(first_name), Bound::Unbounded);
        snapshot
            .topics
            .range::<str, _>(from)
            .map(|(name, _)| Arc::clone(name))
            .collect()
    } else {
        let names = request.topics.iter().map(|topic| Arc::from(&*topic.name));
        names
            .filter(|name: &Arc<str>| &**name >= first_name)
            .collect()
    };
    let mut room = request.response_partition_limit.clamp(1, PARTITIONS_MAX) as usize;
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names {
        let Some(topic) = snapshot.topic(&name) else {
            response.topics.push(missing(&name));
            continue;
        };
        let first = if *name == *first_name {
            first_partition as usize
        } else {
            0
        };
        let first = first.min(topic.partitions.len());
        if room == 0 {
            response.next_cursor = Some(cursor(&name, first));
            break;
        }
        let last = (first + room).min(topic.partitions.len());
        room -= last - first;
        response
            .topics
            .push(describe(topic, first..last, call.node.fixed.node_id));
        if last < topic.partitions.len() {
            response.next_cursor = Some(cursor(&name, last));
            break;
        }
    }
    response
}

fn cursor(name: &str, partition: usize) -> DescribeTopicPartitionsCursor {
    DescribeTopicPartitionsCursor {
        topic_name: name.into(),
        partition_index: partition as i32,
    }
}

fn missing(name: &str) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code: match check_name(name) {
            Ok(()) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
        },
        name: Some(name.into()),
        topic_id: Uuid::ZERO,
        is_internal: is_internal(name),
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}

fn describe(
    topic: &Topic,
    range: std::ops::Range<usize>,
    node_id: i32,
) -> DescribeTopicPartitionsResponseTopic {
    let partitions =
        topic.partitions[range]
            .iter()
            .map(|partition| DescribeTopicPartitionsResponsePartition {
                error_code: ErrorCode::NONE,
                partition_index: partition.index,
                leader_id: node_id,
                leader_epoch: crate::LEADER_EPOCH,
                replica_nodes: vec![node_id],
                isr_nodes: vec![node_id],
                // Not null: the Java client reads them without asking.
                eligible_leader_replicas: Some(Vec::new()),
                last_known_elr: Some(Vec::new()),
                offline_replicas: Vec::new(),
            });
    DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::NONE,
        name: Some(ByteString::from(&*topic.name)),
        topic_id: topic.id,
        is_internal: topic.is_internal,
        partitions: partitions.collect(),
        topic_authorized_operations: authorized::TOPIC,
    }
}
