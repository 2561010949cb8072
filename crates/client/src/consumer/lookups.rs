//! The lookups of the reader, over the network: what the group has committed, offsets by time, and
//! whether positions are in the log of a new leader.

use kohort_member::reader::{Failure, Position, PositionCheck, Target};
use kohort_wire::{ApiKey, ErrorCode, messages::*};
use rustc_hash::FxHashMap;

use super::shared::{Shared, offset_spec};
use crate::{
    Error, Result, Subject, TopicPartition,
    by_leader::by_topic,
    committed::committed_offsets,
    error::check,
    list_offsets::list_offsets,
    rpc::{Destination, Lane, Topics},
};

impl From<&Error> for Failure {
    fn from(error: &Error) -> Failure {
        Failure {
            code: error.code(),
            is_retriable: error.is_retriable(),
        }
    }
}

/// Looks up what the group has committed.
pub(super) async fn find_committed(shared: &Shared, asked: Vec<(TopicPartition, u64)>) {
    let group_id = shared.config.group_id.clone().unwrap_or_default();
    let leases: FxHashMap<_, _> = asked.iter().cloned().collect();
    let names: Vec<_> = asked.into_iter().map(|(name, _)| name).collect();
    let (member, ids) = {
        let state = shared.lock();
        (
            state.reader.member().cloned(),
            state.reader.topic_ids(&names),
        )
    };
    let timeout = shared.cluster.config().api_timeout;
    let found = committed_offsets(
        &shared.cluster,
        &group_id,
        member.as_ref(),
        Some(&names),
        &ids,
        true,
        timeout,
    );
    let results = found.await.unwrap_or_else(|error| {
        let names = names.iter().cloned();
        names.map(|name| (name, Err(error.clone()))).collect()
    });
    let is_replaced = |result: &Result<_>| {
        let error = result.as_ref().err();
        error.and_then(Error::code) == Some(ErrorCode::UNKNOWN_TOPIC_ID)
    };
    if results.iter().any(|(_, result)| is_replaced(result)) {
        // A topic was deleted, and perhaps created again: its new id is needed.
        let topics = names.iter().map(|name| name.topic.clone()).collect();
        if let Err(error) = shared.cluster.refresh(&Topics::Named(topics)).await {
            tracing::debug!(%error, "topics could not be looked up");
        }
    }
    let now = shared.now();
    let mut state = shared.lock();
    for (name, result) in results {
        let Some(lease) = leases.get(&name) else {
            continue;
        };
        match result {
            Ok(committed) => state
                .reader
                .committed_found(&name, *lease, committed.as_ref()),
            Err(error) => {
                tracing::debug!(partition = %name, %error, "cannot find what is committed");
                let failure = Failure::from(&error);
                if state
                    .reader
                    .find_committed_failed(&name, *lease, failure, now)
                {
                    state.report(error);
                }
            }
        }
    }
}

/// Looks up offsets.
pub(super) async fn find_offsets(shared: &Shared, asked: Vec<(TopicPartition, Target, u64)>) {
    let targets = asked
        .iter()
        .map(|(name, target, lease)| (name.clone(), (*target, *lease)));
    let targets: FxHashMap<_, _> = targets.collect();
    let asked = asked.into_iter();
    let asked = asked.map(|(name, target, _)| (name, offset_spec(target)));
    let isolation_level = shared.config.isolation_level;
    let timeout = shared.cluster.config().request_timeout;
    let results = list_offsets(&shared.cluster, asked.collect(), isolation_level, timeout).await;
    let now = shared.now();
    let mut state = shared.lock();
    for (name, result) in results {
        let Some((target, lease)) = targets.get(&name) else {
            continue;
        };
        match result {
            Ok(listed) => state.reader.offset_found(&name, *lease, listed.offset),
            Err(error) => {
                tracing::debug!(partition = %name, %error, "cannot find an offset");
                let failure = Failure::from(&error);
                let reader = &mut state.reader;
                if reader.find_offset_failed(&name, *lease, *target, failure, now) {
                    state.report(error);
                }
            }
        }
    }
}

/// Asks a leader whether positions are in its log (KIP-320).
pub(super) async fn check_positions(
    shared: &Shared,
    leader: i32,
    checks: Vec<(TopicPartition, PositionCheck)>,
) {
    let response = ask(shared, leader, &checks).await;
    let now = shared.now();
    let mut state = shared.lock();
    for (name, asked) in checks {
        let end = match &response {
            Ok(response) => {
                let response = response.as_ref();
                response
                    .map(|response| end_of_epoch(response, &name))
                    .transpose()
            }
            Err(error) => Err(error.clone()),
        };
        match end {
            Ok(end) => state.reader.position_checked(&name, &asked, end),
            Err(error) => {
                tracing::debug!(partition = %name, %error, "cannot check the position");
                let failure = Failure::from(&error);
                if state
                    .reader
                    .position_check_failed(&name, &asked, failure, now)
                {
                    state.report(error);
                }
            }
        }
    }
}

/// `None` if the broker does not support the request.
async fn ask(
    shared: &Shared,
    broker: i32,
    checks: &[(TopicPartition, PositionCheck)],
) -> Result<Option<OffsetForLeaderEpochResponse>> {
    let to = Destination::Broker(broker);
    let connection = shared.cluster.connection(&to, Lane::Main).await?;
    let Ok(version) = connection.version::<OffsetForLeaderEpochRequest>() else {
        return Ok(None);
    };
    let topics = by_topic(checks.iter().cloned()).into_iter();
    let topics = topics.map(|(topic, partitions)| OffsetForLeaderTopic {
        topic,
        partitions: partitions
            .into_iter()
            .map(|(partition, check)| OffsetForLeaderPartition {
                partition,
                current_leader_epoch: check.current_epoch,
                leader_epoch: check.position.leader_epoch.unwrap_or(-1),
            })
            .collect(),
    });
    let request = OffsetForLeaderEpochRequest {
        replica_id: -1,
        topics: topics.collect(),
    };
    let timeout = shared.cluster.config().request_timeout;
    connection.call(&request, version, timeout).await.map(Some)
}

/// Where the records of the epoch end that was asked for, or of the last one before it.
fn end_of_epoch(
    response: &OffsetForLeaderEpochResponse,
    name: &TopicPartition,
) -> Result<Position> {
    const API: ApiKey = ApiKey::OffsetForLeaderEpoch;
    let subject = || Subject::Partition(name.clone());
    let topic = response
        .topics
        .iter()
        .find(|topic| topic.topic == name.topic);
    let answer = topic.and_then(|topic| {
        let mut answers = topic.partitions.iter();
        answers.find(|answer| answer.partition == name.partition)
    });
    let answer = answer
        .ok_or_else(|| Error::kafka(API, subject(), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION))?;
    check(API, answer.error_code, None, subject)?;
    Ok(Position {
        // −1: the leader has nothing of that epoch or of any before.
        offset: answer.end_offset,
        leader_epoch: (answer.leader_epoch >= 0).then_some(answer.leader_epoch),
    })
}
