//! Committing how far the application has come.

use std::{sync::Arc, time::Duration};

use kohort_wire::{ErrorCode, codec::Versions, messages::OffsetCommitRequest};
use rustc_hash::FxHashSet;
use tokio::time::{MissedTickBehavior, interval};
use tracing::Instrument;

use super::{Consumer, in_order::InOrder, shared::Shared};
use crate::{
    CommittedOffset, Error, Result, TopicPartition,
    by_leader::UNKNOWN_TOPIC_ATTEMPTS,
    committed::{commit_request, commit_response},
    rpc::{Destination, Lane},
};

/// Commits `offsets`, trying again for as long as `timeout`.
pub(super) async fn commit(
    shared: &Shared,
    offsets: &[(TopicPartition, CommittedOffset)],
    timeout: Duration,
) -> Result<()> {
    let span = tracing::debug_span!("commit", partitions = offsets.len());
    let committed = try_commit(shared, offsets, timeout).instrument(span).await;
    if !offsets.is_empty() {
        crate::measure::committed(&committed);
    }
    committed
}

async fn try_commit(
    shared: &Shared,
    offsets: &[(TopicPartition, CommittedOffset)],
    timeout: Duration,
) -> Result<()> {
    let Some(group_id) = &shared.config.group_id else {
        return Err(Error::config("group.id", "is needed to commit"));
    };
    if offsets.is_empty() {
        return Ok(());
    }
    for (name, offset) in offsets {
        if offset.offset < 0 {
            return Err(Error::State(format!("{name} has no negative offsets")));
        }
    }
    let to = Destination::Group(group_id.clone());
    let mut retry = shared.cluster.retry_for("commit offsets", timeout);
    let mut in_order = InOrder::new(shared, offsets);
    let mut last: Option<Error> = None;
    loop {
        if let Some(last) = &last {
            let wait = in_order.is_overtaken();
            if in_order.is_empty() {
                return in_order.outcome();
            }
            if wait {
                retry.failed(last.clone()).await?;
                continue;
            }
        }
        let committer = {
            let state = shared.lock();
            if state.subscribed && state.committer.is_none() {
                let problem = "the consumer is not a member of its group at present";
                return Err(Error::State(problem.to_owned()));
            }
            state.committer.clone()
        };
        let consumer_protocol = committer
            .as_ref()
            .is_some_and(|member| member.consumer_protocol);
        // Version 10 names topics by id; members of the consumer protocol need version 9.
        let versions = Versions::new(if consumer_protocol { 9 } else { 2 }, 9);
        let offsets = in_order.offsets();
        let attempt = async {
            let connection = shared.cluster.connection(&to, Lane::Group).await?;
            let version = connection.version_of::<OffsetCommitRequest>(versions)?;
            let request = commit_request(group_id, committer.as_ref(), &offsets);
            let timeout = shared.cluster.config().request_timeout;
            connection.call(&request, version, timeout).await
        };
        let results = match retry.attempt(attempt).await {
            Ok(response) => commit_response(response),
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
        in_order.done(&done);
        let mut errors = failed.into_iter().filter_map(|(_, result)| result.err());
        // One that trying again cannot help comes first.
        let Some(first) = errors.next() else {
            return in_order.outcome();
        };
        let error = match first.is_retriable() {
            true => errors.find(|error| !error.is_retriable()).unwrap_or(first),
            false => first,
        };
        shared.cluster.note_error(&to, &error);
        last = Some(error.clone());
        let unknown = error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        if unknown && retry.failures() + 1 >= UNKNOWN_TOPIC_ATTEMPTS {
            return Err(error);
        }
        // The member's epoch has moved on while the request was on its way.
        let stale = error.code() == Some(ErrorCode::STALE_MEMBER_EPOCH) && {
            let now = shared.lock().committer.clone();
            now.is_some() && now.map(|now| now.epoch) != committer.map(|then| then.epoch)
        };
        if !stale {
            retry.failed(error).await?;
        }
    }
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
        let offsets = shared.lock().to_commit(true, None);
        let committing = commit(&shared, &offsets, shared.cluster.config().request_timeout);
        let committed = tokio::select! {
            committed = committing => committed,
            () = shared.closed.cancelled() => return,
        };
        if let Err(error) = committed {
            // The next time has a chance too.
            tracing::warn!(%error, "offsets could not be committed");
        }
    }
}

impl Consumer {
    /// Commits how far the application has come in all its partitions: to the end of the records
    /// that the last poll returned.
    ///
    /// Commits count in the order in which they are begun, however often they have to be sent. What
    /// was taken away before it could be committed is left out, which is an error. If the future is
    /// dropped, it may have been committed.
    pub async fn commit(&self) -> Result<()> {
        let offsets = self.shared.lock().to_commit(false, None);
        commit(
            &self.shared,
            &offsets,
            self.shared.cluster.config().api_timeout,
        )
        .await
    }

    /// Commits these offsets, each that of the next record to be read, as
    /// [`commit`](Consumer::commit) does.
    pub async fn commit_offsets(
        &self,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<()> {
        commit(
            &self.shared,
            offsets,
            self.shared.cluster.config().api_timeout,
        )
        .await
    }

    /// Begins to commit what [`commit`](Consumer::commit) would, and returns at once. The outcome
    /// may be awaited, or not.
    pub fn commit_later(&self) -> CommitLater {
        let offsets = self.shared.lock().to_commit(false, None);
        let shared = self.shared.clone();
        CommitLater(tokio::spawn(async move {
            commit(&shared, &offsets, shared.cluster.config().api_timeout).await
        }))
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
        // The runtime has ended.
        std::task::Poll::Ready(joined.unwrap_or(Err(Error::Closed)))
    }
}
