//! The steps that the application takes: one after the other, each in a task of its own.

use std::{sync::Arc, time::Duration};

use kohort_member::{Action, Partitions};
use tokio::time::{Instant, timeout_at};
use tracing::{Instrument, Span};

use super::{Event, GroupTask};
use crate::{
    Error, TopicPartition,
    consumer::{
        commit,
        handler::{Handler, Rebalance},
        shared::Shared,
    },
    panics::unpanicked,
};

/// How much of the time that a revocation may take is kept for committing and for the handler.
const RESERVE: u32 = 4;

pub(super) fn names(partitions: &Partitions) -> Vec<TopicPartition> {
    partitions
        .iter()
        .map(|(topic, partition)| TopicPartition::new(topic.clone(), *partition))
        .collect()
}

impl GroupTask {
    /// Begins the next step. Returns whether there may be more to do at once.
    pub(super) fn next_step(&mut self) -> bool {
        let Some(step) = self.steps.pop_front() else {
            return false;
        };
        let shared = self.shared.clone();
        let handler = self.handler.clone();
        let deadline = Instant::now() + shared.config.poll_interval_max;
        let rebalance =
            |partitions: &Partitions| Rebalance::new(&shared, names(partitions), deadline);
        // An application that is leaving does not ask for records any more; one that is gone has
        // nothing to say.
        let waits = self.leaving.is_empty();
        let gone = self.closing;
        let life = self.life;
        match step {
            Action::Assign { id, added, all } => {
                for name in names(&added) {
                    let id = self.member.topic_id(&name.topic);
                    shared.lock().reader.assign_suspended(&name, id);
                }
                let rebalance = rebalance(&added);
                tracing::info!(added = ?rebalance.partitions, total = all.len(), "assigned");
                crate::measure::rebalanced("assigned", &rebalance.partitions);
                let span = span("assigned", &rebalance);
                let step = async move {
                    call(&rebalance, handler.assigned(&rebalance)).await;
                    resume(&rebalance);
                    Event::StepDone(life, id)
                };
                self.begin(step.instrument(span));
            }
            Action::Revoke { id, partitions } => {
                let rebalance = rebalance(&partitions);
                tracing::info!(partitions = ?rebalance.partitions, "revoked");
                crate::measure::rebalanced("revoked", &rebalance.partitions);
                shared.lock().reader.suspend(&rebalance.partitions);
                if gone {
                    self.drop_partitions(&rebalance.partitions);
                    self.begin(async move { Event::StepDone(life, id) });
                } else {
                    let span = span("revoked", &rebalance);
                    let step = async move {
                        revoke(&rebalance, &*handler, waits).await;
                        Event::StepDone(life, id)
                    };
                    self.begin(step.instrument(span));
                }
            }
            Action::Lose { id, partitions } => {
                let rebalance = rebalance(&partitions);
                tracing::warn!(partitions = ?rebalance.partitions, "lost");
                crate::measure::rebalanced("lost", &rebalance.partitions);
                let span = span("lost", &rebalance);
                let step = async move {
                    if !gone {
                        call(&rebalance, handler.lost(&rebalance)).await;
                    }
                    Event::StepDone(life, id)
                };
                self.begin(step.instrument(span));
            }
            _ => {}
        }
        true
    }

    fn begin(&mut self, step: impl Future<Output = Event> + Send + 'static) {
        self.in_step = true;
        self.events.push(Box::pin(step));
    }
}

/// What is done, and said by the application's handler, until a change is complete.
fn span(change: &'static str, rebalance: &Rebalance) -> Span {
    let partitions = rebalance.partitions.len();
    tracing::info_span!("rebalance", change, partitions)
}

/// Calls the application's handler, for no longer than it may take.
async fn call(rebalance: &Rebalance, handler: impl Future<Output = ()>) {
    match timeout_at(rebalance.deadline, unpanicked(handler)).await {
        Ok(Ok(())) => {}
        Ok(Err(problem)) => {
            let problem = format!("the rebalance handler did not get to its end: {problem}");
            rebalance.shared.report(Error::State(problem));
        }
        Err(_) => tracing::warn!(partitions = ?rebalance.partitions,
            "the rebalance handler took too long: it was stopped"),
    }
}

/// Starts reading partitions that were assigned.
fn resume(rebalance: &Rebalance) {
    let shared = &rebalance.shared;
    shared.lock().reader.resume_assigned(&rebalance.partitions);
    shared.work.notify_one();
    shared.ready.notify_waiters();
}

async fn revoke(rebalance: &Rebalance, handler: &dyn Handler, waits: bool) {
    let shared: &Arc<Shared> = &rebalance.shared;
    let partitions = &rebalance.partitions;
    if waits {
        // What the application holds is finished first, so that others do not get it again.
        let until = rebalance.deadline - shared.config.poll_interval_max / RESERVE;
        let finished = async {
            loop {
                let mut released = std::pin::pin!(shared.released.notified());
                released.as_mut().enable();
                if !shared.lock().reader.is_held(partitions) {
                    return;
                }
                released.await;
            }
        };
        if timeout_at(until, finished).await.is_err() {
            tracing::warn!("the application still works on records of revoked partitions");
        }
    }
    if shared.config.auto_commit {
        let offsets = shared.lock().reader.to_commit(Some(partitions));
        let left = rebalance.deadline.saturating_duration_since(Instant::now());
        let timeout = (left / 2).max(Duration::from_secs(1));
        let timeout = timeout.min(shared.cluster.config().request_timeout);
        if let Err(error) = commit::commit(shared, offsets, timeout).await {
            tracing::warn!(%error, "offsets of revoked partitions could not be committed");
            shared.lock().commit_failure = Some(error);
        }
    }
    call(rebalance, handler.revoked(rebalance)).await;
    shared.lock().unassign(partitions, false);
}
