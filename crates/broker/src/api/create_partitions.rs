//! CreatePartitions (37).

use std::collections::BTreeMap;

use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::Call;
use crate::topics::{ChangeError, NEW_PARTITIONS_MAX, NewPartitions, too_many_at_once};

pub(super) async fn handle(
    call: Call,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let node = &call.node;
    let mut seen: BTreeMap<&ByteString, usize> = BTreeMap::new();
    for topic in &request.topics {
        *seen.entry(&topic.name).or_default() += 1;
    }
    let mut results = Vec::with_capacity(seen.len());
    for (name, count) in &seen {
        if *count > 1 {
            let error = ChangeError::new(
                ErrorCode::INVALID_REQUEST,
                "This topic stands twice in the request.",
            );
            results.push(result(name, Err(error)));
        }
    }
    let is_too_much = new_partitions(&call, &request.topics) > NEW_PARTITIONS_MAX;
    for topic in request.topics.iter().filter(|topic| seen[&topic.name] == 1) {
        let grown = match check(&call, topic) {
            Ok(_) if is_too_much => Err(too_many_at_once()),
            Ok(wanted) => {
                node.catalog
                    .create_partitions(wanted, node.fixed.partitions_max, request.validate_only)
                    .await
            }
            Err(error) => Err(error),
        };
        results.push(result(&topic.name, grown));
    }
    CreatePartitionsResponse {
        results,
        ..CreatePartitionsResponse::default()
    }
}

/// How many partitions the request asks for in all.
fn new_partitions(call: &Call, topics: &[CreatePartitionsTopic]) -> usize {
    let snapshot = call.node.snapshot();
    let new = topics.iter().map(|topic| {
        let known = snapshot.topic(&topic.name);
        let known = known.map_or(0, |known| known.partitions.len());
        usize::try_from(topic.count)
            .unwrap_or_default()
            .saturating_sub(known)
    });
    new.fold(0, usize::saturating_add)
}

fn check(call: &Call, topic: &CreatePartitionsTopic) -> Result<NewPartitions, ChangeError> {
    let wanted = NewPartitions {
        name: topic.name.to_string(),
        count: topic.count,
    };
    let snapshot = call.node.snapshot();
    let (Some(assignments), Some(known)) = (&topic.assignments, snapshot.topic(&topic.name)) else {
        return Ok(wanted);
    };
    let more = i64::from(topic.count) - known.partitions.len() as i64;
    let invalid = |message: String| {
        Err(ChangeError::new(
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            message,
        ))
    };
    if more > 0 && assignments.len() as i64 != more {
        return invalid(format!(
            "The request adds {more} partitions and assigns {}.",
            assignments.len()
        ));
    }
    let node_id = call.node.fixed.node_id;
    if assignments
        .iter()
        .any(|assignment| assignment.broker_ids != [node_id])
    {
        return invalid(format!(
            "Broker {node_id} is the only one, and has to be named for each partition."
        ));
    }
    Ok(wanted)
}

fn result(name: &ByteString, grown: Result<(), ChangeError>) -> CreatePartitionsTopicResult {
    let (error_code, error_message) = match grown {
        Ok(()) => (ErrorCode::NONE, None),
        Err(error) => (error.code, Some(error.message.into())),
    };
    CreatePartitionsTopicResult {
        name: name.clone(),
        error_code,
        error_message,
    }
}
