//! Committing how far the application has come.

use std::{sync::Arc, time::Duration};

use kohort_member::reader::{Commit, CommitStep};
use kohort_wire::{
    ErrorCode,
    codec::Versions,
    messages::{OffsetCommitRequest, OffsetCommitResponse},
};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::Instrument;

use super::{Consumer, shared::Shared};
use crate::{
    CommittedOffset, Error, Result, TopicPartition,
    by_leader::UNKNOWN_TOPIC_MAX,
    committed::{check_numbers, commit_request, commit_response},
    rpc::{Destination, Lane, Topics},
};

/// Commits `offsets`, trying again for as long as `timeout`.
pub(super) async fn commit(
    shared: &Arc<Shared>,
    offsets: Vec<(TopicPartition, CommittedOffset)>,
    timeout: Duration,
) -> Result<()> {
    let begun = shared.lock().reader.begin_commit(offsets, Vec::new());
    let begun = Begun::new(shared, begun);
    carry_out(begun, timeout).await
}

/// A commit that has its place in the order until it is dropped.
pub(super) struct Begun {
    shared: Arc<Shared>,
    commit: Commit,
}

impl Begun {
    pub(super) fn new(shared: &Arc<Shared>, commit: Commit) -> Begun {
        Begun {
            shared: shared.clone(),
            commit,
        }
    }

    /// An error if partitions were lost before their offsets could be committed.
    fn outcome(&self) -> Result<()> {
        match self.commit.lost() {
            [] => Ok(()),
            lost => Err(self.shared.not_committed(lost.to_vec())),
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.shared.lock().reader.end_commit(&mut self.commit);
    }
}

/// Carries out a commit that has begun, trying again for as long as `timeout`.
pub(super) async fn carry_out(begun: Begun, timeout: Duration) -> Result<()> {
    let partitions = begun.commit.len();
    let span = tracing::debug_span!("commit", partitions);
    let committed = attempts(begun, timeout).instrument(span).await;
    if partitions > 0 {
        crate::measure::committed(&committed);
    }
    committed
}

async fn attempts(mut begun: Begun, timeout: Duration) -> Result<()> {
    let shared = begun.shared.clone();
    let Some(group_id) = &shared.config.group_id else {
        return Err(Error::config("group.id", "is needed to commit"));
    };
    check_numbers(&begun.commit.offsets())?;
    let to = Destination::Group(group_id.clone());
    let started = Instant::now();
    let mut retry = shared.cluster.retry_for("commit offsets", timeout);
    let mut last: Option<Error> = None;
    loop {
        let metadata = shared.cluster.metadata();
        let id_of = |topic: &str| metadata.topic(topic).map(|topic| topic.id);
        let (step, stopped) = {
            let mut state = shared.lock();
            let step = state.reader.next_commit_step(&mut begun.commit, id_of);
            (step, state.stopped.clone())
        };
        let (committer, offsets) = match step {
            CommitStep::Done => return begun.outcome(),
            CommitStep::Wait => {
                let is_behind = || Error::State("a later commit is in flight".to_owned());
                retry.failed(last.clone().unwrap_or_else(is_behind)).await?;
                continue;
            }
            CommitStep::Send(committer, offsets) => (committer, offsets),
        };
        if let Some(error) = stopped {
            return Err(error);
        }
        let consumer_protocol = committer
            .as_ref()
            .is_some_and(|member| member.consumer_protocol);
        // Version 10 names topics by id; members of the consumer protocol need version 9.
        let by_id = offsets.iter().all(|(_, offset)| offset.topic_id.is_some());
        let oldest = if consumer_protocol { 9 } else { 2 };
        let versions = Versions::new(oldest, if by_id { 10 } else { 9 });
        let attempt = async {
            let connection = shared.cluster.connection(&to, Lane::Group).await?;
            let version = connection.version_of::<OffsetCommitRequest>(versions)?;
            let request = commit_request(group_id, committer.as_ref(), &offsets);
            let timeout = shared.cluster.config().request_timeout;
            connection.call(&request, version, timeout).await
        };
        let results = match retry.attempt(attempt).await {
            Ok(response) => commit_response(named(response, &offsets)),
            Err(error) => {
                shared.cluster.note_error(&to, &error);
                last = Some(error.clone());
                retry.failed(error).await?;
                continue;
            }
        };
        let (done, failed): (Vec<_>, Vec<_>) =
            results.into_iter().partition(|(_, result)| result.is_ok());
        let done: FxHashSet<_> = done.into_iter().map(|(name, _)| name).collect();
        shared.lock().reader.committed(&mut begun.commit, &done);
        let mut errors = failed.into_iter().filter_map(|(_, result)| result.err());
        // One that trying again cannot help comes first.
        let Some(first) = errors.next() else {
            return begun.outcome();
        };
        let error = if first.is_retriable() {
            errors.find(|error| !error.is_retriable()).unwrap_or(first)
        } else {
            first
        };
        shared.cluster.note_error(&to, &error);
        last = Some(error.clone());
        let is_unknown_id = error.code() == Some(ErrorCode::UNKNOWN_TOPIC_ID);
        if is_unknown_id {
            // It may have been deleted and created again.
            let topics = offsets.iter().map(|(name, _)| name.topic.clone());
            let topics = Topics::Named(topics.collect());
            let refreshed = shared.cluster.refresh(&topics);
            if let Err(error) = retry.attempt(refreshed).await {
                tracing::debug!(%error, "topics could not be looked up");
            }
        }
        let unknown = is_unknown_id || error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        if unknown && started.elapsed() >= UNKNOWN_TOPIC_MAX {
            return Err(error);
        }
        // The member's epoch has moved on while the request was on its way.
        let stale = error.code() == Some(ErrorCode::STALE_MEMBER_EPOCH) && {
            let now = shared.lock().reader.member().cloned();
            now.is_some() && now.map(|now| now.epoch) != committer.map(|then| then.epoch)
        };
        if !stale {
            retry.failed(error).await?;
        }
    }
}

/// A response with names instead of ids.
fn named(
    mut response: OffsetCommitResponse,
    offsets: &[(TopicPartition, CommittedOffset)],
) -> OffsetCommitResponse {
    let ids = offsets
        .iter()
        .filter_map(|(name, offset)| Some((offset.topic_id?, &name.topic)));
    let ids: FxHashMap<_, _> = ids.collect();
    for topic in &mut response.topics {
        if topic.name.is_empty()
            && let Some(name) = ids.get(&topic.topic_id)
        {
            topic.name = (*name).clone();
        }
    }
    response
}

/// Commits now and then what the application has finished with.
pub(super) async fn auto_commit(shared: Arc<Shared>) {
    let mut ticks = interval(shared.config.auto_commit_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shared.closed.cancelled() => return,
        }
        let (offsets, departed) = {
            let mut state = shared.lock();
            (state.reader.to_commit(None), state.reader.take_departed())
        };
        let all = offsets.into_iter().chain(departed.clone()).collect();
        let committing = commit(&shared, all, shared.cluster.config().request_timeout);
        let committed = tokio::select! {
            committed = committing => committed,
            () = shared.closed.cancelled() => return,
        };
        if let Err(error) = committed {
            // The next time has a chance too.
            tracing::warn!(%error, "offsets could not be committed");
            shared.lock().reader.restore_departed(departed);
        }
    }
}

impl Consumer {
    /// Finishes the records that this handle holds, and commits what is finished.
    ///
    /// In each partition that is everything before the first record that another handle still
    /// holds. Returns once it is committed.
    ///
    /// # Errors
    ///
    /// [`Error::NotCommitted`] names the partitions that were taken away before their offsets could
    /// be committed: the consumer was evicted (it did not poll within
    /// [`ConsumerConfig::poll_interval_max`](crate::ConsumerConfig::poll_interval_max), its session
    /// ended, an administrator removed it, a static member replaced it), left, or lost them in a
    /// rebalance. What else could be committed has been. [`Error::Kafka`] is the coordinator's
    /// refusal, [`Error::Timeout`] means that it could not be asked. In all cases the records are
    /// delivered again, here or to another member, unless another commit follows.
    ///
    /// Commits count in the order in which they are begun, however often they have to be sent. If
    /// the future is dropped, the offsets may have been committed.
    pub async fn commit(&self) -> Result<()> {
        let begun = self.begin_commit();
        let timeout = self.shared.cluster.config().api_timeout;
        carry_out(begun, timeout).await
    }

    /// Commits these offsets, each that of the next record to be read, with the errors of
    /// [`commit`](Consumer::commit). Records before them count as finished.
    pub async fn commit_offsets(
        &self,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<()> {
        let timeout = self.shared.cluster.config().api_timeout;
        commit(&self.shared, offsets.to_vec(), timeout).await
    }

    /// Begins what [`commit`](Consumer::commit) does, and returns at once. The outcome, which is
    /// that of [`commit`](Consumer::commit), may be awaited, or not.
    pub fn commit_later(&self) -> CommitLater {
        let begun = self.begin_commit();
        let timeout = self.shared.cluster.config().api_timeout;
        CommitLater(tokio::spawn(carry_out(begun, timeout)))
    }

    /// Finishes what this handle holds, and gives the commit of all that is finished its place in
    /// the order.
    fn begin_commit(&self) -> Begun {
        let (commit, held) = self.shared.lock().reader.begin_commit_of(self.handle);
        if held {
            self.shared.released.notify_waiters();
        }
        Begun::new(&self.shared, commit)
    }
}

/// The outcome of a commit that is under way. Dropping it does not stop the commit.
#[derive(Debug)]
pub struct CommitLater(tokio::task::JoinHandle<Result<()>>);

impl Future for CommitLater {
    type Output = Result<()>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<()>> {
        let joined = std::task::ready!(std::pin::Pin::new(&mut self.0).poll(cx));
        std::task::Poll::Ready(joined.unwrap_or(Err(Error::RuntimeEnded)))
    }
}
