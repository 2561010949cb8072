//! Metadata (3): topics, their partitions, and where their leaders are.

use std::sync::Arc;

use kohort_wire::{ByteString, ErrorCode, Uuid, messages::*};

use super::{Call, Outcome, authorized};
use crate::{
    node::Node,
    settings::Values,
    topics::{
        ChangeError, EVENTS_TOPIC, NEW_PARTITIONS_MAX, NewTopic, OFFSETS_TOPIC, Topic, check_name,
        is_internal,
    },
};

/// How many topics one request may create by asking for them.
const AUTO_CREATED_MAX: usize = 1000;

pub(super) async fn handle(call: Call, request: MetadataRequest) -> Outcome<MetadataResponse> {
    let node = &call.node;
    // Version 0 cannot say "all" in another way than by naming none.
    let wanted = request
        .topics
        .filter(|topics| call.version() > 0 || !topics.is_empty());
    let mut topics = match wanted {
        None => {
            let snapshot = node.snapshot();
            snapshot
                .topics
                .values()
                .map(|topic| describe(node, topic))
                .collect()
        }
        Some(wanted) => {
            if call.version() < 12
                && wanted
                    .iter()
                    .any(|topic| topic.name.is_none() || !topic.topic_id.is_zero())
            {
                return Outcome::Close("topic ids need version 12 of Metadata".to_owned());
            }
            some(node, &wanted, request.allow_auto_topic_creation).await
        }
    };
    if request.include_topic_authorized_operations {
        for topic in &mut topics {
            topic.topic_authorized_operations = authorized::TOPIC;
        }
    }
    let (host, port) = node.endpoint(call.peer);
    MetadataResponse {
        brokers: vec![MetadataResponseBroker {
            node_id: node.fixed.node_id,
            host,
            port,
            rack: node.fixed.rack.as_deref().map(ByteString::from),
        }],
        cluster_id: Some(node.catalog.cluster_id.as_str().into()),
        controller_id: node.fixed.node_id,
        topics,
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            authorized::CLUSTER
        } else {
            authorized::NOT_ASKED
        },
        ..MetadataResponse::default()
    }
    .into()
}

/// The topics of a list. If some are given by id, only those count, as in Kafka.
async fn some(
    node: &Arc<Node>,
    wanted: &[MetadataRequestTopic],
    may_create: bool,
) -> Vec<MetadataResponseTopic> {
    let snapshot = node.snapshot();
    if wanted.iter().any(|topic| !topic.topic_id.is_zero()) {
        let mut ids: Vec<Uuid> = wanted.iter().map(|topic| topic.topic_id).collect();
        ids.sort_unstable();
        ids.dedup();
        return ids
            .into_iter()
            .filter(|id| !id.is_zero())
            .map(|id| match snapshot.topic_by_id(id) {
                Some(topic) => describe(node, topic),
                None => missing(None, id, ErrorCode::UNKNOWN_TOPIC_ID),
            })
            .collect();
    }
    let mut names: Vec<&ByteString> = wanted
        .iter()
        .filter_map(|topic| topic.name.as_ref())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut topics = Vec::with_capacity(names.len());
    let mut absent = Vec::new();
    for name in names {
        match snapshot.topic(name) {
            Some(topic) => topics.push(describe(node, topic)),
            None => absent.push(name),
        }
    }
    if may_create && node.fixed.auto_create_topics && !absent.is_empty() {
        topics.extend(create(node, &absent).await);
    } else {
        topics.extend(absent.into_iter().map(|name| {
            let error = match check_name(name) {
                Ok(()) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
            };
            missing(Some(name), Uuid::ZERO, error)
        }));
    }
    topics
}

/// Creates topics that a client has asked for. Kafka answers UNKNOWN_TOPIC_OR_PARTITION
/// while it creates one, and clients ask again; here it is there already.
async fn create(node: &Arc<Node>, names: &[&ByteString]) -> Vec<MetadataResponseTopic> {
    let mut topics = Vec::with_capacity(names.len());
    let mut wanted = Vec::new();
    for name in names {
        if &***name == OFFSETS_TOPIC {
            let fixed = &node.fixed;
            let created = node
                .catalog
                .offsets_topic(fixed.offsets_partitions, fixed.offsets_segment_bytes)
                .await;
            topics.push(outcome(node, name, created));
        } else if &***name == EVENTS_TOPIC {
            let retention_ms = node.fixed.events_retention_ms;
            let created = node.catalog.events_topic(retention_ms).await;
            topics.push(outcome(node, name, created));
        } else {
            wanted.push(*name);
        }
    }
    // Clients ask again for the others.
    let partitions = usize::try_from(node.fixed.num_partitions).unwrap_or(1);
    let now = AUTO_CREATED_MAX.min(NEW_PARTITIONS_MAX / partitions.max(1));
    let later = wanted.split_off(wanted.len().min(now.max(1)));
    topics.extend(later.into_iter().map(|name| {
        let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        missing(Some(name), Uuid::ZERO, code)
    }));
    let new = wanted.iter().map(|name| NewTopic {
        name: name.to_string(),
        partitions: node.fixed.num_partitions,
        configs: Values::new(),
    });
    let created = node
        .catalog
        .create_topics(new.collect(), node.fixed.partitions_max, false)
        .await;
    let outcomes = wanted.iter().zip(created);
    topics.extend(outcomes.map(|(name, created)| outcome(node, name, created)));
    topics
}

fn outcome(
    node: &Node,
    name: &ByteString,
    created: Result<Arc<Topic>, ChangeError>,
) -> MetadataResponseTopic {
    match created {
        Ok(topic) => describe(node, &topic),
        // Another request was faster.
        Err(error) if error.code == ErrorCode::TOPIC_ALREADY_EXISTS => {
            match node.snapshot().topic(name) {
                Some(topic) => describe(node, topic),
                None => missing(
                    Some(name),
                    Uuid::ZERO,
                    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                ),
            }
        }
        Err(error) => {
            let code = match error.code {
                ErrorCode::INVALID_TOPIC_EXCEPTION => error.code,
                // Clients know no other error here, and ask again.
                _ => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            };
            missing(Some(name), Uuid::ZERO, code)
        }
    }
}

fn describe(node: &Node, topic: &Topic) -> MetadataResponseTopic {
    let node_id = node.fixed.node_id;
    let partitions = topic
        .partitions
        .iter()
        .map(|partition| MetadataResponsePartition {
            error_code: ErrorCode::NONE,
            partition_index: partition.index,
            leader_id: node_id,
            leader_epoch: crate::LEADER_EPOCH,
            replica_nodes: vec![node_id],
            isr_nodes: vec![node_id],
            offline_replicas: Vec::new(),
        });
    MetadataResponseTopic {
        error_code: ErrorCode::NONE,
        name: Some((&*topic.name).into()),
        topic_id: topic.id,
        is_internal: topic.is_internal,
        partitions: partitions.collect(),
        topic_authorized_operations: authorized::NOT_ASKED,
    }
}

fn missing(
    name: Option<&ByteString>,
    topic_id: Uuid,
    error_code: ErrorCode,
) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code,
        name: name.cloned(),
        topic_id,
        is_internal: name.is_some_and(|name| is_internal(name)),
        ..MetadataResponseTopic::default()
    }
}
