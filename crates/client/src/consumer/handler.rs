//! What the application does when partitions come and go.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{
    Seek,
    commit::{self, Begun},
    positions::{check, not_assigned},
    shared::{Shared, State},
};
use crate::{CommittedOffset, Result, TopicPartition};

/// What the application does when partitions come and go: all of it may be left out.
///
/// The calls come one after the other, from a task of the consumer; heartbeats go on meanwhile.
/// Each has until [`Rebalance::deadline`]; then its future is dropped and the consumer goes on
/// without it. A panic is told as an error by the next poll, and the consumer goes on too.
///
/// ```
/// use kohort::consumer::{Rebalance, RebalanceHandler};
///
/// struct Stores;
///
/// impl RebalanceHandler for Stores {
///     async fn assigned(&self, rebalance: &Rebalance) {
///         for partition in rebalance.partitions() {
///             println!("open the store of {partition}");
///         }
///     }
///
///     async fn revoked(&self, rebalance: &Rebalance) {
///         for partition in rebalance.partitions() {
///             println!("write the store of {partition} and close it");
///         }
///     }
///
///     async fn lost(&self, rebalance: &Rebalance) {
///         println!("throw away the stores of {:?}", rebalance.partitions());
///     }
/// }
/// ```
pub trait RebalanceHandler: Send + Sync + 'static {
    /// The consumer has got partitions, which it did not have before. Nothing is read from them
    /// until this returns: the place to [`seek`](Rebalance::seek).
    fn assigned(&self, rebalance: &Rebalance) -> impl Future<Output = ()> + Send {
        let _ = rebalance;
        async {}
    }

    /// The consumer must give up partitions. Polls return nothing of them any more; the records that
    /// were delivered are finished (unless the application took too long), and what is committed
    /// automatically has been committed. Others get the partitions when this returns.
    fn revoked(&self, rebalance: &Rebalance) -> impl Future<Output = ()> + Send {
        let _ = rebalance;
        async {}
    }

    /// The consumer has lost partitions: others may have them already. Nothing can be committed
    /// ([`Error::NotCommitted`](crate::Error::NotCommitted)).
    fn lost(&self, rebalance: &Rebalance) -> impl Future<Output = ()> + Send {
        let _ = rebalance;
        async {}
    }
}

/// Does nothing.
impl RebalanceHandler for () {}

/// Partitions that come or go.
#[derive(Debug)]
pub struct Rebalance {
    pub(super) shared: Arc<Shared>,
    pub(super) partitions: Vec<TopicPartition>,
    /// Which assignment of each partition this is about; `None` if it is lost.
    pub(super) assignments: Vec<Option<u64>>,
    pub(super) deadline: Instant,
}

impl Rebalance {
    pub(super) fn new(
        shared: &Arc<Shared>,
        partitions: Vec<TopicPartition>,
        deadline: Instant,
    ) -> Rebalance {
        let assignments = {
            let state = shared.lock();
            let assignments = partitions.iter();
            assignments
                .map(|name| state.reader.assignment(name))
                .collect()
        };
        Rebalance {
            shared: shared.clone(),
            partitions,
            assignments,
            deadline,
        }
    }

    /// The partitions that the consumer no longer has.
    fn lost(&self, state: &State) -> Vec<TopicPartition> {
        let partitions = self.partitions.iter().zip(&self.assignments);
        let lost = partitions.filter(|(name, assignment)| {
            let now = state.reader.assignment(name);
            assignment.is_none() || now != **assignment
        });
        lost.map(|(name, _)| name.clone()).collect()
    }

    /// The partitions that come or go, in order.
    pub fn partitions(&self) -> &[TopicPartition] {
        &self.partitions
    }

    /// The deadline by which the handler must return.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Goes elsewhere in one of the partitions.
    pub fn seek(&self, partition: &TopicPartition, to: impl Into<Seek>) -> Result<()> {
        let to = to.into();
        check(to, partition)?;
        if self.shared.lock().reader.seek(partition, to) {
            Ok(())
        } else {
            Err(not_assigned(partition))
        }
    }

    /// The offset of the record of a partition that would be polled next, if known.
    pub fn position(&self, partition: &TopicPartition) -> Option<i64> {
        self.shared.lock().reader.position(partition).flatten()
    }

    /// Commits what the application has finished in the partitions.
    ///
    /// Fails with [`Error::NotCommitted`](crate::Error::NotCommitted) if partitions are lost already,
    /// and otherwise as [`Consumer::commit`](crate::Consumer::commit) does.
    pub async fn commit(&self) -> Result<()> {
        let begun = {
            let mut state = self.shared.lock();
            let lost = self.lost(&state);
            let mut offsets = state.reader.to_commit(Some(&self.partitions));
            offsets.retain(|(name, _)| !lost.contains(name));
            state.reader.begin_commit(offsets, lost)
        };
        let begun = Begun::new(&self.shared, begun);
        commit::carry_out(begun, self.remaining()).await
    }

    /// Commits these offsets, each that of the next record to be read, with the errors of
    /// [`commit`](Rebalance::commit).
    pub async fn commit_offsets(
        &self,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<()> {
        let begun = {
            let mut state = self.shared.lock();
            let lost = self.lost(&state);
            let (lost, offsets): (Vec<_>, Vec<_>) = offsets
                .iter()
                .cloned()
                .partition(|(name, _)| lost.contains(name));
            let lost = lost.into_iter().map(|(name, _)| name).collect();
            state.reader.begin_commit(offsets, lost)
        };
        let begun = Begun::new(&self.shared, begun);
        commit::carry_out(begun, self.remaining()).await
    }
}

/// A [`RebalanceHandler`] whose type does not matter.
pub(super) trait Handler: Send + Sync {
    fn assigned<'a>(&'a self, rebalance: &'a Rebalance) -> BoxFuture<'a, ()>;
    fn revoked<'a>(&'a self, rebalance: &'a Rebalance) -> BoxFuture<'a, ()>;
    fn lost<'a>(&'a self, rebalance: &'a Rebalance) -> BoxFuture<'a, ()>;
}

impl<T: RebalanceHandler> Handler for T {
    fn assigned<'a>(&'a self, rebalance: &'a Rebalance) -> BoxFuture<'a, ()> {
        Box::pin(RebalanceHandler::assigned(self, rebalance))
    }

    fn revoked<'a>(&'a self, rebalance: &'a Rebalance) -> BoxFuture<'a, ()> {
        Box::pin(RebalanceHandler::revoked(self, rebalance))
    }

    fn lost<'a>(&'a self, rebalance: &'a Rebalance) -> BoxFuture<'a, ()> {
        Box::pin(RebalanceHandler::lost(self, rebalance))
    }
}
