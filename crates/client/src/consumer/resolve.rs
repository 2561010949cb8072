//! Where reading begins: what the group has committed, or what is asked for by time.

use kohort_wire::ErrorCode;
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use super::{
    partition::{Fetching, Position},
    shared::Shared,
};
use crate::{
    Error, OffsetSpec, Result, TopicPartition, committed::committed_offsets,
    list_offsets::list_offsets, rpc::Topics,
};

/// Finds where the group has committed; where it has not, `auto.offset.reset` counts.
pub(super) async fn find_committed(shared: &Shared, partitions: Vec<(TopicPartition, u64)>) {
    let Some(group_id) = &shared.config.group_id else {
        for (name, lease) in partitions {
            reset(shared, &name, lease);
        }
        return;
    };
    let leases: FxHashMap<_, _> = partitions.iter().cloned().collect();
    let names: Vec<_> = partitions.into_iter().map(|(name, _)| name).collect();
    let (member, ids) = {
        let state = shared.lock();
        (state.committer.clone(), state.topic_ids(&names))
    };
    let timeout = shared.cluster.config().api_timeout;
    let found = committed_offsets(
        &shared.cluster,
        group_id,
        member.as_ref(),
        Some(&names),
        &ids,
        true,
        timeout,
    );
    match found.await {
        Ok(results) => {
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
            for (name, result) in results {
                let Some(lease) = leases.get(&name) else {
                    continue;
                };
                match result {
                    Ok(Some(committed)) => {
                        let position = Position {
                            offset: committed.offset,
                            leader_epoch: committed.leader_epoch,
                        };
                        let mut state = shared.lock();
                        if let Some(partition) = state.found(&name, *lease, position) {
                            partition.progress.note_committed(committed.offset);
                        }
                    }
                    Ok(None) => reset(shared, &name, *lease),
                    Err(error) => later(shared, &name, *lease, Fetching::FindCommitted, error),
                }
            }
        }
        Err(error) => {
            for (name, lease) in leases {
                later(shared, &name, lease, Fetching::FindCommitted, error.clone());
            }
        }
    }
    shared.work.notify_one();
}

/// Nothing was committed.
fn reset(shared: &Shared, name: &TopicPartition, lease: u64) {
    let mut state = shared.lock();
    let partition = state.partitions.get_mut(name);
    let Some(partition) = partition.filter(|partition| partition.lease == lease) else {
        return;
    };
    let is_replacement = partition.is_replacement;
    match shared.config.offset_reset.spec() {
        Some(spec) => {
            let spec = match is_replacement {
                true => OffsetSpec::Earliest,
                false => spec,
            };
            partition.fetching = Fetching::Find(spec);
            drop(state);
            shared.work.notify_one();
        }
        None => {
            partition.fetching = Fetching::Stuck;
            let problem =
                format!("nothing was committed for {name}, and nothing says where to begin");
            state.report(Error::config("auto.offset.reset", problem));
            drop(state);
            shared.ready.notify_waiters();
        }
    }
}

/// Finds offsets by time.
pub(super) async fn find_by_time(
    shared: &Shared,
    partitions: Vec<(TopicPartition, OffsetSpec, u64)>,
) {
    let specs: FxHashMap<_, _> = partitions
        .iter()
        .map(|(name, spec, lease)| (name.clone(), (*spec, *lease)))
        .collect();
    let asked: Vec<_> = partitions
        .into_iter()
        .map(|(name, spec, _)| (name, spec))
        .collect();
    let isolation_level = shared.config.isolation_level;
    let timeout = shared.cluster.config().request_timeout;
    let results = list_offsets(&shared.cluster, asked, isolation_level, timeout).await;
    for (name, result) in results {
        let Some((spec, lease)) = specs.get(&name) else {
            continue;
        };
        match result {
            Ok(listed) => {
                let mut state = shared.lock();
                if let Some(offset) = listed.offset {
                    let leader_epoch = None;
                    let position = Position {
                        offset,
                        leader_epoch,
                    };
                    state.found(&name, *lease, position);
                } else {
                    // No record is as late as that.
                    let partition = state.partitions.get_mut(&name);
                    if let Some(partition) = partition.filter(|p| p.lease == *lease) {
                        partition.fetching = Fetching::Find(OffsetSpec::Latest);
                    }
                }
            }
            Err(error) => later(shared, &name, *lease, Fetching::Find(*spec), error),
        }
    }
    shared.work.notify_one();
    // Wakes calls that wait for a position.
    shared.ready.notify_waiters();
}

/// Tries again a little later; the application learns of it if that cannot help.
fn later(shared: &Shared, name: &TopicPartition, lease: u64, fetching: Fetching, error: Error) {
    let mut state = shared.lock();
    let partition = state.partitions.get_mut(name);
    let Some(partition) = partition.filter(|partition| partition.lease == lease) else {
        return;
    };
    partition.failures += 1;
    let backoff = shared.cluster.config().retry_backoff;
    partition.not_before = Some(Instant::now() + backoff.after(partition.failures));
    partition.fetching = fetching;
    tracing::debug!(partition = %name, %error, "where to begin is not known yet");
    // The member's epoch has moved on while the question was on its way: it is asked again.
    let again = matches!(
        error.code(),
        Some(
            ErrorCode::STALE_MEMBER_EPOCH
                | ErrorCode::UNKNOWN_MEMBER_ID
                | ErrorCode::ILLEGAL_GENERATION
        )
    );
    let unknown_topic = error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    if (!again && !error.is_retriable()) || (unknown_topic && state.committer.is_none()) {
        state.report(error);
        drop(state);
        shared.ready.notify_waiters();
    }
}
