//! Whether what was read last is in the log of a new leader too (KIP-320): if that leader did not
//! have it when it was elected, the log was truncated, and other records are at those offsets now.
//!
//! Fetch tells it as well, in versions of some years ago and later, if it is not too late: by then
//! the new leader may have written past the position.

use kohort_wire::{ApiKey, ErrorCode, messages::*};
use tokio::time::Instant;

use super::{
    partition::{Fetching, Partition, Position},
    shared::Shared,
};
use crate::{
    ByteString, Error, Result, Subject, TopicPartition,
    by_leader::by_topic,
    error::check,
    rpc::{Destination, Lane},
};

/// A position that is to be validated.
#[derive(Debug, Clone)]
pub(super) struct Doubt {
    pub(super) lease: u64,
    pub(super) position: Position,
    /// The epoch of the leader that is asked.
    pub(super) current_epoch: i32,
}

/// Asks the leader `broker`. Returns the topics whose metadata has to be refreshed.
pub(super) async fn validate(
    shared: &Shared,
    broker: i32,
    doubts: Vec<(TopicPartition, Doubt)>,
) -> Vec<ByteString> {
    let answer = ask(shared, broker, &doubts).await;
    let mut outdated = Vec::new();
    let mut guard = shared.lock();
    let state = &mut *guard;
    for (name, doubt) in doubts {
        let lease = state.lease();
        let partition = state.partitions.get_mut(&name);
        let Some(partition) = partition.filter(|p| p.lease == doubt.lease) else {
            continue;
        };
        partition.fetching = Fetching::At(doubt.position);
        let result = match &answer {
            // It cannot be asked that.
            Ok(None) => Ok(None),
            Ok(Some(response)) => end_of_epoch(response, &name).map(Some),
            Err(error) => Err(error.clone()),
        };
        let error = match result {
            Ok(None) => {
                partition.validated = Some(doubt.current_epoch);
                None
            }
            Ok(Some(end)) if end.offset >= doubt.position.offset => {
                partition.validated = Some(doubt.current_epoch);
                None
            }
            Ok(Some(end)) => {
                partition.validated = Some(doubt.current_epoch);
                let from = doubt.position.offset;
                let (freed, error) = truncated(shared, &name, partition, from, end, lease);
                state.fetched_bytes -= freed;
                error
            }
            Err(error) => {
                tracing::debug!(partition = %name, %error, "whether the log was truncated is not \
                    known yet");
                partition.failures += 1;
                let backoff = shared.cluster.config().retry_backoff;
                partition.not_before = Some(Instant::now() + backoff.after(partition.failures));
                outdated.push(name.topic);
                (!error.is_retriable()).then_some(error)
            }
        };
        if let Some(error) = error {
            state.report(error);
            shared.ready.notify_waiters();
        }
    }
    drop(guard);
    shared.work.notify_one();
    outdated
}

/// Reading goes on at the end of what the leaders have in common; or nowhere, if the application
/// wants to decide itself. What was fetched and is not given to it yet is thrown away. Returns its
/// size, and the error for the application.
pub(super) fn truncated(
    shared: &Shared,
    name: &TopicPartition,
    partition: &mut Partition,
    from: i64,
    end: Position,
    lease: u64,
) -> (usize, Option<Error>) {
    let to = end.offset.min(from).max(0);
    tracing::warn!(partition = %name, from, to, "the log was truncated");
    if shared.config.offset_reset.spec().is_none() {
        partition.fetching = Fetching::Stuck;
        let error = Error::Kafka {
            api: ApiKey::OffsetForLeaderEpoch,
            subject: Subject::Partition(name.clone()),
            code: ErrorCode::OFFSET_OUT_OF_RANGE,
            message: Some(format!("the log was truncated from offset {from} to {to}").into()),
        };
        return (0, Some(error));
    }
    let to = Position { offset: to, ..end };
    partition.progress.truncate(to);
    partition.fetching = Fetching::Finding;
    (partition.throw_away(lease), None)
}

/// `None` if the broker does not know the question.
async fn ask(
    shared: &Shared,
    broker: i32,
    doubts: &[(TopicPartition, Doubt)],
) -> Result<Option<OffsetForLeaderEpochResponse>> {
    let to = Destination::Broker(broker);
    let connection = shared.cluster.connection(&to, Lane::Main).await?;
    let Ok(version) = connection.version::<OffsetForLeaderEpochRequest>() else {
        return Ok(None);
    };
    let topics = by_topic(doubts.iter().cloned());
    let topics = topics
        .into_iter()
        .map(|(topic, partitions)| OffsetForLeaderTopic {
            topic,
            partitions: partitions
                .into_iter()
                .map(|(partition, doubt)| OffsetForLeaderPartition {
                    partition,
                    current_leader_epoch: doubt.current_epoch,
                    leader_epoch: doubt.position.leader_epoch.unwrap_or(-1),
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
