//! CreateTopics (19).

use std::collections::{BTreeMap, BTreeSet};

use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::Call;
use crate::{
    settings::{TOPIC, Values, topic_settings},
    topics::{ChangeError, NewTopic, Snapshot},
};

pub(super) async fn handle(call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse {
    let node = &call.node;
    let mut seen = BTreeMap::new();
    for topic in &request.topics {
        *seen.entry(topic.name.clone()).or_insert(0) += 1;
    }
    let mut results = Vec::with_capacity(request.topics.len());
    let mut checked = Vec::new();
    for topic in &request.topics {
        match check(topic, node.fixed.node_id, node.fixed.num_partitions) {
            _ if seen[&topic.name] > 1 => {}
            _ if &*topic.name == "__cluster_metadata" => results.push(failure(
                topic.name.clone(),
                ErrorCode::INVALID_REQUEST,
                "__cluster_metadata is no topic that clients may have.",
            )),
            Ok(new) => checked.push(new),
            Err(error) => results.push(failure(topic.name.clone(), error.code, &error.message)),
        }
    }
    let duplicates = seen.into_iter().filter(|(_, count)| *count > 1);
    results.extend(duplicates.map(|(name, _)| {
        failure(
            name,
            ErrorCode::INVALID_REQUEST,
            "This topic stands twice in the request.",
        )
    }));
    let created = node
        .catalog
        .create_topics(
            checked.clone(),
            node.fixed.partitions_max,
            request.validate_only,
        )
        .await;
    let snapshot = node.snapshot();
    for (new, created) in checked.into_iter().zip(created) {
        results.push(match created {
            Ok(topic) => success(&new, topic.id, &snapshot),
            Err(error) => failure(new.name.into(), error.code, &error.message),
        });
    }
    CreateTopicsResponse {
        topics: results,
        ..CreateTopicsResponse::default()
    }
}

/// What a topic is to be, as far as it can be told without knowing the others.
fn check(
    topic: &CreatableTopic,
    node_id: i32,
    partitions_default: i32,
) -> Result<NewTopic, ChangeError> {
    let fail = |code, message: &str| Err(ChangeError::new(code, message));
    let partitions = if topic.assignments.is_empty() {
        match topic.replication_factor {
            -1 | 1 => {}
            ..=0 => {
                return fail(
                    ErrorCode::INVALID_REPLICATION_FACTOR,
                    "There has to be at least one replica (-1: as many as the broker is set to).",
                );
            }
            factor => {
                return Err(ChangeError::new(
                    ErrorCode::INVALID_REPLICATION_FACTOR,
                    format!("{factor} replicas are too many: this broker is the only one"),
                ));
            }
        }
        match topic.num_partitions {
            -1 => partitions_default,
            1.. => topic.num_partitions,
            _ => {
                return fail(
                    ErrorCode::INVALID_PARTITIONS,
                    "There has to be at least one partition (-1: as many as the broker is set to).",
                );
            }
        }
    } else {
        if topic.replication_factor != -1 || topic.num_partitions != -1 {
            return fail(
                ErrorCode::INVALID_REQUEST,
                "Who assigns replicas by hand says by that how many partitions and replicas there are: leave the numbers at -1.",
            );
        }
        check_assignments(&topic.assignments, node_id)?
    };
    let mut configs = Values::new();
    for config in &topic.configs {
        // Null means the default.
        if let Some(value) = &config.value {
            let value = match TOPIC.get(&config.name) {
                Some(definition) => definition.check(value).map_err(|error| {
                    ChangeError::new(ErrorCode::INVALID_CONFIG, error.to_string())
                })?,
                // Refused later, after what is wrong with the name.
                None => value.to_string(),
            };
            configs.insert(config.name.to_string(), value);
        }
    }
    Ok(NewTopic {
        name: topic.name.to_string(),
        partitions,
        configs,
    })
}

fn check_assignments(
    assignments: &[CreatableReplicaAssignment],
    node_id: i32,
) -> Result<i32, ChangeError> {
    let invalid = |message: String| {
        Err(ChangeError::new(
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            message,
        ))
    };
    let mut indexes = BTreeSet::new();
    for assignment in assignments {
        let index = assignment.partition_index;
        if !indexes.insert(index) {
            return invalid(format!("Partition {index} is assigned twice."));
        }
        if assignment.broker_ids != [node_id] {
            return invalid(format!(
                "Broker {node_id} is the only one, and partition {index} is assigned to another."
            ));
        }
    }
    if !indexes.iter().copied().eq(0..assignments.len() as i32) {
        return invalid(
            "The partitions that are assigned have to be 0, 1, 2 and so on, without a gap."
                .to_owned(),
        );
    }
    Ok(assignments.len() as i32)
}

fn success(
    new: &NewTopic,
    topic_id: kohort_wire::Uuid,
    snapshot: &Snapshot,
) -> CreatableTopicResult {
    let configs = topic_settings(&new.configs, snapshot.levels());
    let configs = configs.iter().map(|shown| CreatableTopicConfigs {
        name: shown.definition.name.into(),
        value: shown.value().map(ByteString::from),
        read_only: shown.is_read_only(),
        config_source: shown.source() as i8,
        is_sensitive: false,
    });
    CreatableTopicResult {
        name: new.name.as_str().into(),
        topic_id,
        error_message: None,
        num_partitions: new.partitions,
        replication_factor: 1,
        configs: Some(configs.collect()),
        ..CreatableTopicResult::default()
    }
}

fn failure(name: ByteString, error_code: ErrorCode, message: &str) -> CreatableTopicResult {
    CreatableTopicResult {
        name,
        error_code,
        error_message: Some(message.into()),
        configs: Some(Vec::new()),
        ..CreatableTopicResult::default()
    }
}
