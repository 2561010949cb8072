//! OffsetCommit (8), OffsetFetch (9) and OffsetDelete (47). The coordinator knows topics by their
//! names; newer clients send ids (KIP-848), which are replaced here. A commit that asks for a rewind
//! is answered once that has happened.

use std::{collections::BTreeMap, sync::Arc};

use kohort_coordinator::{Reply, Request};
use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::{
    Call,
    rewinds::{self, Commit},
};
use crate::{groups::Patience, topics::Snapshot};

/// The first version of OffsetCommit and OffsetFetch that has topic ids.
const BY_ID: i16 = 10;

/// The offset of a partition for which nothing was committed.
const NO_OFFSET: i64 = -1;

pub(super) async fn commit(call: Call, mut request: OffsetCommitRequest) -> OffsetCommitResponse {
    let by_id = call.version() >= BY_ID;
    let snapshot = call.node.snapshot();
    let mut refused = Vec::new();
    let topics = std::mem::take(&mut request.topics);
    for mut topic in topics {
        let (known, code) = if by_id {
            let known = snapshot.topic_by_id(topic.topic_id);
            (known, ErrorCode::UNKNOWN_TOPIC_ID)
        } else {
            let known = snapshot.topic(&topic.name);
            (known, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        };
        let Some(known) = known else {
            refused.push(refused_commit(&topic, code));
            continue;
        };
        topic.name = (&*known.name).into();
        topic.topic_id = known.id;
        // As in Kafka, every client is told what does not exist.
        let mut missing = topic.clone();
        missing
            .partitions
            .retain(|partition| known.partition(partition.partition_index).is_err());
        topic
            .partitions
            .retain(|partition| known.partition(partition.partition_index).is_ok());
        if !missing.partitions.is_empty() {
            let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            refused.push(refused_commit(&missing, code));
        }
        if !topic.partitions.is_empty() {
            request.topics.push(topic);
        }
    }
    let mut response = if request.topics.is_empty() {
        OffsetCommitResponse::default()
    } else {
        commit_known(&call, snapshot, request, refused.is_empty()).await
    };
    for topic in refused {
        let same = response
            .topics
            .iter_mut()
            .find(|other| other.name == topic.name && other.topic_id == topic.topic_id);
        match same {
            Some(same) => same.partitions.extend(topic.partitions),
            None => response.topics.push(topic),
        }
    }
    response
}

/// Commits for topics and partitions that exist; `is_all`: there were no others.
async fn commit_known(
    call: &Call,
    snapshot: Arc<Snapshot>,
    request: OffsetCommitRequest,
    is_all: bool,
) -> OffsetCommitResponse {
    let group_id = request.group_id.clone();
    let asked_for = request.topics.clone();
    let (request, patience) = match examine(snapshot, request).await {
        Commit::Plain(request) => (request, Patience::Prompt),
        Commit::Rewind(_) if !is_all => {
            return OffsetCommitResponse {
                topics: not_attempted(&asked_for),
                ..OffsetCommitResponse::default()
            };
        }
        // It takes as long as the owners of the partitions take to let go.
        Commit::Rewind(request) => (request, Patience::Parked),
        Commit::Refused(topics) => {
            return OffsetCommitResponse {
                topics,
                ..OffsetCommitResponse::default()
            };
        }
    };
    let version = call.version();
    let request = Request::OffsetCommit { version, request };
    let groups = &call.node.groups;
    let caller = call.caller();
    let reply = groups
        .ask(&call.node, &group_id, caller, request, patience)
        .await;
    let mut response = match reply {
        Ok(Reply::OffsetCommit(response)) => response,
        other => {
            let code = other.err().unwrap_or(ErrorCode::UNKNOWN_SERVER_ERROR);
            OffsetCommitResponse {
                topics: asked_for
                    .iter()
                    .map(|topic| refused_commit(topic, code))
                    .collect(),
                ..OffsetCommitResponse::default()
            }
        }
    };
    let ids: BTreeMap<&str, _> = asked_for
        .iter()
        .map(|topic| (&*topic.name, topic.topic_id))
        .collect();
    for topic in &mut response.topics {
        topic.topic_id = ids.get(&*topic.name).copied().unwrap_or_default();
    }
    response
}

/// What the commit is. Those of members, and of consumers without a group, are told at once.
async fn examine(snapshot: Arc<Snapshot>, request: OffsetCommitRequest) -> Commit {
    if !rewinds::may_be_rewind(&snapshot, &request) {
        return Commit::Plain(request);
    }
    // The log of a partition may have to be opened.
    let examined = tokio::task::spawn_blocking(move || rewinds::examine(&snapshot, request));
    match examined.await {
        Ok(commit) => commit,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

fn not_attempted(topics: &[OffsetCommitRequestTopic]) -> Vec<OffsetCommitResponseTopic> {
    let code = ErrorCode::OPERATION_NOT_ATTEMPTED;
    topics
        .iter()
        .map(|topic| refused_commit(topic, code))
        .collect()
}

fn refused_commit(
    topic: &OffsetCommitRequestTopic,
    error_code: ErrorCode,
) -> OffsetCommitResponseTopic {
    let partitions = topic
        .partitions
        .iter()
        .map(|partition| OffsetCommitResponsePartition {
            partition_index: partition.partition_index,
            error_code,
        });
    OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: partitions.collect(),
    }
}

pub(super) async fn fetch(call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse {
    let version = call.version();
    let require_stable = request.require_stable;
    if version >= 8 {
        let mut groups = Vec::with_capacity(request.groups.len());
        for group in request.groups {
            groups.push(fetch_group(&call, group, require_stable).await);
        }
        return OffsetFetchResponse {
            groups,
            ..OffsetFetchResponse::default()
        };
    }
    let topics = request.topics.map(|topics| {
        let topics = topics.into_iter().map(|topic| OffsetFetchRequestTopics {
            name: topic.name,
            topic_id: Default::default(),
            partition_indexes: topic.partition_indexes,
        });
        topics.collect::<Vec<_>>()
    });
    let group = OffsetFetchRequestGroup {
        group_id: request.group_id,
        topics: topics.clone(),
        ..OffsetFetchRequestGroup::default()
    };
    let mut fetched = fetch_group(&call, group, require_stable).await;
    let code = fetched.error_code;
    if version < 2 && code.is_error() {
        // KAFKA-19246: this version has no place for an error of the group but its partitions.
        let topics = topics.unwrap_or_default();
        fetched.topics = topics
            .iter()
            .map(|topic| refused_fetch(topic, code))
            .collect();
    }
    let topics = fetched.topics.into_iter().map(|topic| {
        let partitions =
            topic
                .partitions
                .into_iter()
                .map(|partition| OffsetFetchResponsePartition {
                    partition_index: partition.partition_index,
                    committed_offset: partition.committed_offset,
                    committed_leader_epoch: partition.committed_leader_epoch,
                    metadata: partition.metadata,
                    error_code: partition.error_code,
                });
        OffsetFetchResponseTopic {
            name: topic.name,
            partitions: partitions.collect(),
        }
    });
    OffsetFetchResponse {
        topics: topics.collect(),
        error_code: code,
        ..OffsetFetchResponse::default()
    }
}

async fn fetch_group(
    call: &Call,
    mut group: OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup {
    let by_id = call.version() >= BY_ID;
    let snapshot = call.node.snapshot();
    let mut unknown = Vec::new();
    if by_id && let Some(topics) = group.topics.take() {
        let mut known = Vec::with_capacity(topics.len());
        for mut topic in topics {
            match snapshot.topic_by_id(topic.topic_id) {
                Some(found) => {
                    topic.name = (&*found.name).into();
                    known.push(topic);
                }
                None => unknown.push(refused_fetch(&topic, ErrorCode::UNKNOWN_TOPIC_ID)),
            }
        }
        group.topics = Some(known);
    }
    let group_id = group.group_id.clone();
    let request = Request::OffsetFetch {
        request: group,
        require_stable,
    };
    let groups = &call.node.groups;
    let reply = groups
        .ask(
            &call.node,
            &group_id,
            call.caller(),
            request,
            Patience::Prompt,
        )
        .await;
    let mut response = match reply {
        Ok(Reply::OffsetFetch(response)) => response,
        other => OffsetFetchResponseGroup {
            group_id: group_id.clone(),
            error_code: other.err().unwrap_or(ErrorCode::UNKNOWN_SERVER_ERROR),
            ..OffsetFetchResponseGroup::default()
        },
    };
    response.group_id = group_id;
    if by_id {
        add_ids(&mut response.topics, &snapshot);
        if !response.error_code.is_error() {
            response.topics.extend(unknown);
        }
    }
    response
}

/// Puts the ids to the names. What was committed for a topic that is gone cannot be told.
fn add_ids(topics: &mut Vec<OffsetFetchResponseTopics>, snapshot: &Snapshot) {
    topics.retain_mut(|topic| match snapshot.topic(&topic.name) {
        Some(known) => {
            topic.topic_id = known.id;
            true
        }
        None => false,
    });
}

fn refused_fetch(
    topic: &OffsetFetchRequestTopics,
    error_code: ErrorCode,
) -> OffsetFetchResponseTopics {
    let partitions =
        topic
            .partition_indexes
            .iter()
            .map(|&partition_index| OffsetFetchResponsePartitions {
                partition_index,
                committed_offset: NO_OFFSET,
                committed_leader_epoch: -1,
                metadata: Some(ByteString::new()),
                error_code,
            });
    OffsetFetchResponseTopics {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: partitions.collect(),
    }
}

pub(super) async fn delete(call: Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse {
    let snapshot = call.node.snapshot();
    let mut known = request.clone();
    known.topics.clear();
    let mut unknown = Vec::new();
    for mut topic in request.topics {
        let exists = |partition: &OffsetDeleteRequestPartition| {
            let topic = snapshot.topic(&topic.name);
            topic.is_some_and(|topic| topic.partition(partition.partition_index).is_ok())
        };
        let (existing, missing): (Vec<_>, Vec<_>) =
            topic.partitions.iter().cloned().partition(exists);
        if !missing.is_empty() {
            let partitions = missing
                .iter()
                .map(|partition| OffsetDeleteResponsePartition {
                    partition_index: partition.partition_index,
                    error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                });
            unknown.push(OffsetDeleteResponseTopic {
                name: topic.name.clone(),
                partitions: partitions.collect(),
            });
        }
        if !existing.is_empty() {
            topic.partitions = existing;
            known.topics.push(topic);
        }
    }
    let group_id = known.group_id.clone();
    let groups = &call.node.groups;
    let request = Request::OffsetDelete { request: known };
    let reply = groups
        .ask(
            &call.node,
            &group_id,
            call.caller(),
            request,
            Patience::Prompt,
        )
        .await;
    let mut response = match reply {
        Ok(Reply::OffsetDelete(response)) => response,
        other => OffsetDeleteResponse {
            error_code: other.err().unwrap_or(ErrorCode::UNKNOWN_SERVER_ERROR),
            ..OffsetDeleteResponse::default()
        },
    };
    if response.error_code.is_error() {
        return response;
    }
    for topic in unknown {
        let mut answered = response.topics.iter_mut();
        match answered.find(|other| other.name == topic.name) {
            Some(same) => same.partitions.extend(topic.partitions),
            None => response.topics.push(topic),
        }
    }
    response
}
