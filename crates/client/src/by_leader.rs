//! What concerns partitions goes to their leaders: each is asked for its own, and what went wrong
//! for a partition is tried again where its leader is by then.

use std::{collections::hash_map::Entry, time::Duration};

use futures_util::future::{BoxFuture, join_all};
pub(crate) use kohort_member::reader::by_topic;
use kohort_wire::{ApiKey, ErrorCode};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::time::Instant;

use crate::{
    Each, Error, Result, Subject, TopicPartition,
    rpc::{Cluster, Topics},
};

/// For so long brokers may say that a topic doesn't exist before they are believed: they learn of a
/// new topic one after the other, within a second or so.
pub(crate) const UNKNOWN_TOPIC_MAX: Duration = Duration::from_secs(2);

/// Asks the leader of each partition, by `call`, for what concerns its partitions.
pub(crate) async fn by_leader<T: Clone, V>(
    cluster: &Cluster,
    api: ApiKey,
    items: Vec<(TopicPartition, T)>,
    timeout: Duration,
    call: impl Fn(i32, Vec<(TopicPartition, T)>) -> BoxFuture<'static, Result<Each<TopicPartition, V>>>,
) -> Each<TopicPartition, V> {
    // Of a partition that stands there twice the last counts.
    let mut order = FxHashMap::default();
    let mut left: Vec<(TopicPartition, T)> = Vec::with_capacity(items.len());
    for item in items {
        match order.entry(item.0.clone()) {
            Entry::Occupied(place) => left[*place.get()] = item,
            Entry::Vacant(place) => {
                place.insert(left.len());
                left.push(item);
            }
        }
    }
    let mut done: Vec<Option<(TopicPartition, Result<V>)>> = Vec::new();
    done.resize_with(order.len(), || None);
    let started = Instant::now();
    let mut retry = cluster.retry_for(format!("complete {}", api.name()), timeout);
    while !left.is_empty() {
        let (leaders, mut failed) = share_out(cluster, api, &left).await;
        let mut calls = Vec::new();
        for (broker, items) in leaders {
            let partitions: Vec<_> = items.iter().map(|(p, _)| p.clone()).collect();
            let answer = call(broker, items);
            let retry = &retry;
            calls.push(async move {
                match retry.attempt(answer).await {
                    Ok(results) => results,
                    Err(error) => {
                        let failed = partitions.into_iter().map(|p| (p, Err(error.clone())));
                        failed.collect::<Vec<_>>()
                    }
                }
            });
        }
        let mut again = FxHashSet::default();
        let mut last = None;
        let results = join_all(calls).await.into_iter().flatten();
        for (partition, result) in results.chain(failed.drain(..)) {
            let Some(&index) = order.get(&partition) else {
                continue;
            };
            let retriable = |error: &Error| {
                let unknown = error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
                error.is_retriable() && !(unknown && started.elapsed() >= UNKNOWN_TOPIC_MAX)
            };
            if let Err(error) = &result
                && retriable(error)
            {
                last = Some(error.clone());
                again.insert(partition.clone());
            }
            done[index] = Some((partition, result));
        }
        let Some(last) = last else { break };
        left.retain(|(partition, _)| again.contains(partition));
        if let Err(error) = retry.failed(last).await {
            for (partition, _) in left {
                let index = order[&partition];
                done[index] = Some((partition, Err(error.clone())));
            }
            break;
        }
        let names: FxHashSet<_> = left.iter().map(|(p, _)| p.topic.clone()).collect();
        let topics = Topics::Named(names.into_iter().collect());
        let refresh = cluster.refresh(&topics);
        // Should it fail, the next attempt tells.
        let _ = retry.attempt(refresh).await;
    }
    let mut results: Vec<_> = done.into_iter().flatten().collect();
    // A broker that leaves a partition out of its answer broke the protocol.
    if results.len() < order.len() {
        let there: FxHashSet<_> = results.iter().map(|(p, _)| p.clone()).collect();
        for partition in order.into_keys().filter(|p| !there.contains(p)) {
            let subject = Subject::Partition(partition.clone());
            let error = Error::kafka(api, subject, ErrorCode::UNKNOWN_SERVER_ERROR);
            results.push((partition, Err(error)));
        }
    }
    results
}

type ByBroker<T> = FxHashMap<i32, Vec<(TopicPartition, T)>>;

/// Partitions by their leaders, and those without a leader as errors.
async fn share_out<T: Clone, V>(
    cluster: &Cluster,
    api: ApiKey,
    items: &[(TopicPartition, T)],
) -> (ByBroker<T>, Each<TopicPartition, V>) {
    let mut metadata = cluster.metadata();
    let mut errors = FxHashMap::default();
    let unknown: FxHashSet<_> = items
        .iter()
        .filter(|(partition, _)| metadata.leader(partition).is_none())
        .map(|(partition, _)| partition.topic.clone())
        .collect();
    let mut refused = None;
    if !unknown.is_empty() {
        let topics = Topics::Named(unknown.into_iter().collect());
        match cluster.refresh_errors(&topics).await {
            Ok((now, topics)) => {
                metadata = now;
                errors.extend(topics);
            }
            Err(error) => refused = Some(error),
        }
    }
    let mut leaders = ByBroker::default();
    let mut failed = Vec::new();
    for (partition, item) in items {
        if let Some(leader) = metadata.leader(partition) {
            let share = leaders.entry(leader).or_default();
            share.push((partition.clone(), item.clone()));
            continue;
        }
        let error = refused.clone().unwrap_or_else(|| {
            let code = match metadata.partition(partition) {
                Some(_) => ErrorCode::LEADER_NOT_AVAILABLE,
                None => errors
                    .get(&partition.topic)
                    .copied()
                    .unwrap_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            };
            Error::kafka(api, Subject::Partition(partition.clone()), code)
        });
        failed.push((partition.clone(), Err(error)));
    }
    (leaders, failed)
}
