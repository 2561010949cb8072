//! What the application does when partitions come and go.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{Seek, commit, shared::Shared};
use crate::{CommittedOffset, Error, Result, TopicPartition};

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

    /// The consumer is to let go of partitions. Polls return nothing of them any more; the records
    /// of the last poll are finished with (unless the application took too long), and offsets that
    /// are committed by themselves have been committed. Others get the partitions when this
    /// returns.
    fn revoked(&self, rebalance: &Rebalance) -> impl Future<Output = ()> + Send {
        let _ = rebalance;
        async {}
    }

    /// The consumer has lost partitions: others may have them already. Nothing can be committed.
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
    pub(super) deadline: Instant,
}

impl Rebalance {
    /// The partitions that come or go, in order.
    pub fn partitions(&self) -> &[TopicPartition] {
        &self.partitions
    }

    /// Until when the handler may take.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Goes elsewhere in one of the partitions.
    pub fn seek(&self, partition: &TopicPartition, to: impl Into<Seek>) -> Result<()> {
        let to = to.into();
        to.check(partition)?;
        match self.shared.lock().seek(partition, to) {
            true => Ok(()),
            false => Err(Error::State(format!(
                "{partition} is not assigned to this consumer"
            ))),
        }
    }

    /// The offset of the record of a partition that would be polled next, if known.
    pub fn position(&self, partition: &TopicPartition) -> Option<i64> {
        let state = self.shared.lock();
        Some(state.partitions.get(partition)?.position?.offset)
    }

    /// Commits how far the application has come in the partitions: to the end of the records that
    /// it was given.
    pub async fn commit(&self) -> Result<()> {
        let offsets = self.shared.lock().to_commit(false, Some(&self.partitions));
        commit::commit(&self.shared, &offsets, self.remaining()).await
    }

    /// Commits these offsets, each that of the next record to be read.
    pub async fn commit_offsets(
        &self,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<()> {
        commit::commit(&self.shared, offsets, self.remaining()).await
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
