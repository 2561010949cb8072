//! What an answer to Fetch means for each partition.

use kohort_wire::{ApiKey, ErrorCode, Uuid, messages::*};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::time::Instant;

use super::{
    fetched::Fetched,
    partition::{Fetching, Partition, Position},
    shared::Shared,
    validate::truncated,
};
use crate::{
    ByteString, Error, Result, Subject, TopicPartition, error::check, rpc::BrokerMetadata,
};

/// What was asked about a partition.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) name: TopicPartition,
    pub(super) topic_id: Uuid,
    pub(super) lease: u64,
    pub(super) offset: i64,
}

/// Takes a response. Returns the topics whose metadata has to be refreshed.
pub(super) fn apply(
    shared: &Shared,
    broker: i32,
    asked: Vec<Asked>,
    answer: Result<FetchResponse>,
) -> Vec<ByteString> {
    let mut outdated = FxHashSet::default();
    let mut state = shared.lock();
    for asked in &asked {
        let partition = state.partitions.get_mut(&asked.name);
        if let Some(partition) = partition.filter(|p| p.lease == asked.lease) {
            partition.in_flight = false;
        }
    }
    drop(state);
    let response = match answer {
        Ok(response) => response,
        Err(error) => {
            shared.report_refusal(&error);
            return asked.into_iter().map(|asked| asked.name.topic).collect();
        }
    };
    if response.error_code.is_error() {
        // The session has been forgotten, or a topic id is not known: the next fetch says
        // everything again.
        return match response.error_code {
            ErrorCode::FETCH_SESSION_ID_NOT_FOUND | ErrorCode::INVALID_FETCH_SESSION_EPOCH => {
                Vec::new()
            }
            _ => asked.into_iter().map(|asked| asked.name.topic).collect(),
        };
    }
    for node in &response.node_endpoints {
        shared.cluster.note_broker(BrokerMetadata {
            id: node.node_id,
            host: ByteString::from(&*node.host),
            port: node.port,
            rack: node.rack.as_deref().map(ByteString::from),
        });
    }
    let by_name: FxHashMap<_, _> = asked.iter().map(|asked| (&asked.name, asked)).collect();
    let names: FxHashMap<_, _> = asked
        .iter()
        .map(|asked| (asked.topic_id, &asked.name.topic))
        .collect();
    let mut ready = false;
    for topic in response.responses {
        let name = match names.get(&topic.topic_id) {
            Some(name) if !topic.topic_id.is_zero() => (*name).clone(),
            _ => topic.topic,
        };
        for data in topic.partitions {
            let name = TopicPartition::new(name.clone(), data.partition_index);
            let Some(asked) = by_name.get(&name) else {
                continue;
            };
            let (is_ready, is_outdated) = one(shared, broker, asked, data);
            ready |= is_ready;
            if is_outdated {
                outdated.insert(asked.name.topic.clone());
            }
        }
    }
    if ready {
        shared.ready.notify_waiters();
    }
    outdated.into_iter().collect()
}

/// Returns whether there is something for the application, and whether news is needed.
fn one(shared: &Shared, broker: i32, asked: &Asked, data: FetchPartitionData) -> (bool, bool) {
    let leader = &data.current_leader;
    if leader.leader_id >= 0 {
        let (id, epoch) = (leader.leader_id, leader.leader_epoch);
        shared.cluster.note_leader(&asked.name, id, epoch);
    }
    let mut state = shared.lock();
    let state = &mut *state;
    let lease = state.lease();
    let partition = state.partitions.get_mut(&asked.name);
    let Some(partition) = partition.filter(|partition| partition.lease == asked.lease) else {
        return (false, false);
    };
    let known = |offset: i64| (offset >= 0).then_some(offset);
    if data.error_code.is_error() {
        let (error, outdated) = failed(shared, broker, asked, partition, data.error_code);
        if let Some(error) = error {
            state.report(error);
            return (true, outdated);
        }
        return (false, outdated);
    }
    partition.failures = 0;
    partition.high_watermark = known(data.high_watermark);
    partition.last_stable_offset = known(data.last_stable_offset);
    partition.log_start_offset = known(data.log_start_offset);
    partition
        .measures
        .lag(partition.lag(shared.committed_only()));
    if data.diverging_epoch.end_offset >= 0 {
        // What was read last is not in the log any more (KIP-320): it was cut off.
        let end = Position {
            offset: data.diverging_epoch.end_offset,
            leader_epoch: known(i64::from(data.diverging_epoch.epoch)).map(|epoch| epoch as i32),
        };
        let (freed, error) = truncated(shared, &asked.name, partition, asked.offset, end, lease);
        state.fetched_bytes -= freed;
        let stuck = error.is_some();
        error.into_iter().for_each(|error| state.report(error));
        return (stuck, false);
    }
    if data.preferred_read_replica >= 0 {
        let until = Instant::now() + shared.cluster.config().metadata_max_age;
        partition.preferred_replica = Some((data.preferred_read_replica, until));
    }
    let records = data.records.unwrap_or_default();
    if records.is_empty() {
        return (false, false);
    }
    let aborted = shared
        .committed_only()
        .then(|| data.aborted_transactions.unwrap_or_default());
    let fetched = Fetched::new(records, aborted, asked.offset);
    let Some((end, epoch)) = fetched.end() else {
        partition.fetching = Fetching::Stuck;
        state.report(Error::Records {
            partition: asked.name.clone(),
            offset: asked.offset,
            problem: "the answer holds no whole batch".to_owned(),
        });
        return (true, false);
    };
    partition.fetching = Fetching::At(Position {
        offset: end.max(asked.offset),
        leader_epoch: (epoch >= 0).then_some(epoch),
    });
    partition.measures.fetched(fetched.size);
    partition.fetched_bytes += fetched.size;
    state.fetched_bytes += fetched.size;
    partition.fetched.push_back(fetched);
    let deliverable = partition.is_deliverable();
    if deliverable {
        state.add_turn(&asked.name);
    }
    (deliverable, false)
}

/// Returns an error for the application, and whether news is needed.
fn failed(
    shared: &Shared,
    broker: i32,
    asked: &Asked,
    partition: &mut Partition,
    code: ErrorCode,
) -> (Option<Error>, bool) {
    let subject = || Subject::Partition(asked.name.clone());
    let error = || check(ApiKey::Fetch, code, None, subject).err();
    partition.failures += 1;
    let backoff = shared.cluster.config().retry_backoff;
    partition.not_before = Some(Instant::now() + backoff.after(partition.failures));
    match code {
        ErrorCode::OFFSET_OUT_OF_RANGE => {
            // A follower may lag behind: the leader knows.
            let leader = shared.cluster.metadata().leader(&asked.name);
            if partition.preferred_replica.take().is_some() && leader != Some(broker) {
                return (None, false);
            }
            // What comes before it is to be given to the application first: until then it is not
            // where the application is that is out of range. It is asked again a little later.
            if !partition.is_given_up_to(asked.offset) {
                return (None, false);
            }
            match shared.config.offset_reset.spec() {
                Some(spec) => {
                    tracing::info!(partition = %asked.name, offset = asked.offset,
                        "the offset is out of range: it is reset");
                    partition.fetching = Fetching::Find(spec);
                    // At once, unless the place that was found is out of range again.
                    if partition.failures == 1 {
                        partition.not_before = None;
                    }
                    (None, false)
                }
                None => {
                    partition.fetching = Fetching::Stuck;
                    (error(), false)
                }
            }
        }
        ErrorCode::UNKNOWN_TOPIC_ID | ErrorCode::INCONSISTENT_TOPIC_ID => (None, true),
        code if code.is_retriable() => (None, true),
        ErrorCode::TOPIC_AUTHORIZATION_FAILED => (error(), true),
        _ => {
            partition.fetching = Fetching::Stuck;
            (error(), false)
        }
    }
}
