//! Reading records.
//!
//! # Partitions assigned by hand
//!
//! ```no_run
//! use kohort::{Consumer, ConsumerConfig, TopicPartition, consumer::Seek};
//!
//! # async fn example() -> kohort::Result<()> {
//! let consumer = Consumer::connect(ConsumerConfig::new("localhost:9092")).await?;
//! consumer.assign([(TopicPartition::new("orders", 0), Seek::Earliest)])?;
//! loop {
//!     let records = consumer.poll().await?;
//!     for record in &records {
//!         println!("{} {:?}", record.offset, record.value);
//!     }
//! }
//! # }
//! ```
//!
//! # One record after the other
//!
//! ```no_run
//! use futures_util::StreamExt;
//!
//! # async fn example(consumer: kohort::Consumer) -> kohort::Result<()> {
//! let mut records = std::pin::pin!(consumer.stream());
//! while let Some(record) = records.next().await {
//!     let record = record?;
//!     println!("{} {:?}", record.offset, record.value);
//! }
//! # Ok(())
//! # }
//! ```

mod commit;
mod config;
mod fetch_answer;
mod fetched;
mod fetcher;
mod partition;
mod records;
mod resolve;
mod session;
mod shared;
mod stream;

use std::{sync::Arc, time::Duration};

pub use config::{ConsumerConfig, GroupProtocol, OffsetReset};
use futures_core::Stream;
pub use kohort_wire::records::{Header, Headers};
pub use partition::Seek;
pub use records::{ConsumerRecord, Iter, OwnedRecord, Records};
use tokio::time::{Instant, timeout};

use self::{fetcher::Fetcher, shared::Shared};
use crate::{
    CommittedOffset, Each, Error, OffsetSpec, Result, TopicPartition, committed::committed_offsets,
    list_offsets::list_offsets, rpc::Cluster,
};

/// Reads records, alone or as a member of a group.
///
/// All methods take `&self`: a consumer may be shared between tasks. Only one poll runs at a time;
/// another one waits for it. Dropping a consumer returns at once; [`close`](Consumer::close)
/// commits and leaves the group first.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<Shared>,
    turn: tokio::sync::Mutex<()>,
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.shared.closed.cancel();
    }
}

/// While it lives the application waits for records.
struct Polling<'a>(&'a Shared);

impl<'a> Polling<'a> {
    fn begin(shared: &'a Shared) -> Polling<'a> {
        shared.finish_in_hand();
        shared.lock().polling = true;
        Polling(shared)
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.polling = false;
        state.polled = Instant::now();
    }
}

impl Consumer {
    /// A consumer for the cluster at [`ConsumerConfig::client`], which is reached first.
    pub async fn connect(config: ConsumerConfig) -> Result<Consumer> {
        config.validate()?;
        let cluster = Cluster::connect(config.client.clone()).await?;
        Ok(Consumer::start(config, cluster))
    }

    /// A consumer that reaches the cluster when it needs to. It has to be made on a tokio runtime.
    pub fn new(config: ConsumerConfig) -> Result<Consumer> {
        config.validate()?;
        let cluster = Cluster::new(config.client.clone())?;
        Ok(Consumer::start(config, cluster))
    }

    fn start(config: ConsumerConfig, cluster: Cluster) -> Consumer {
        let auto_commit = config.auto_commit && config.group_id.is_some();
        let shared = Arc::new(Shared::new(config, cluster));
        tokio::spawn(Fetcher::new(shared.clone()).run());
        if auto_commit {
            tokio::spawn(commit::auto_commit(shared.clone()));
        }
        Consumer {
            shared,
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// How the consumer works.
    pub fn config(&self) -> &ConsumerConfig {
        &self.shared.config
    }

    /// The cluster, for requests that are not offered here.
    pub fn cluster(&self) -> &Cluster {
        &self.shared.cluster
    }

    /// Reads these partitions from now on, and no others. Those that were there before stay as
    /// they are.
    pub fn assign(
        &self,
        partitions: impl IntoIterator<Item = (TopicPartition, Seek)>,
    ) -> Result<()> {
        let wanted: Vec<_> = partitions.into_iter().collect();
        let mut state = self.shared.lock();
        let gone: Vec<_> = state
            .partitions
            .keys()
            .filter(|name| !wanted.iter().any(|(wanted, _)| wanted == *name))
            .cloned()
            .collect();
        for name in gone {
            state.unassign(&name);
        }
        for (name, start) in wanted {
            if !state.partitions.contains_key(&name) {
                state.assign(name, start);
            }
        }
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }

    /// The partitions that are being read, in order.
    pub fn assignment(&self) -> Vec<TopicPartition> {
        let mut partitions: Vec<_> = self.shared.lock().partitions.keys().cloned().collect();
        partitions.sort();
        partitions
    }

    /// Waits for records and returns them, at most [`ConsumerConfig::poll_records_max`].
    ///
    /// By polling the application says that it has finished with the records of the poll before.
    /// The future may be dropped at any time; nothing is lost by that.
    pub async fn poll(&self) -> Result<Records> {
        let _turn = self.turn.lock().await;
        let _polling = Polling::begin(&self.shared);
        self.take(false).await
    }

    async fn take(&self, each: bool) -> Result<Records> {
        loop {
            let mut ready = std::pin::pin!(self.shared.ready.notified());
            ready.as_mut().enable();
            let most = self.shared.config.poll_records_max;
            if let Some(records) = self.shared.take(most, each)? {
                return Ok(records);
            }
            if self.shared.lock().partitions.is_empty() {
                return Err(Error::State(
                    "nothing to read: no partition is assigned".to_owned(),
                ));
            }
            tokio::select! {
                () = ready => {}
                () = self.shared.closed.cancelled() => return Err(Error::Closed),
            }
        }
    }

    /// Records for keeps, one after the other. The stream ends when the consumer is closed; it
    /// goes on after errors.
    ///
    /// By asking for the next record the application says that it has finished with the one
    /// before. When the stream is dropped, what it has not given out will be polled.
    pub fn stream(&self) -> impl Stream<Item = Result<OwnedRecord>> + Send + '_ {
        stream::stream(self)
    }

    /// [`poll`](Consumer::poll) for no longer than `wait`; returns no records if there are none.
    pub async fn poll_for(&self, wait: Duration) -> Result<Records> {
        timeout(wait, self.poll())
            .await
            .unwrap_or_else(|_| Ok(Records::default()))
    }

    fn change(
        &self,
        partitions: &[TopicPartition],
        mut change: impl FnMut(&mut shared::State, &TopicPartition) -> bool,
    ) -> Result<()> {
        let mut state = self.shared.lock();
        for name in partitions {
            if !change(&mut state, name) {
                return Err(not_assigned(name));
            }
        }
        drop(state);
        self.shared.work.notify_one();
        self.shared.ready.notify_waiters();
        Ok(())
    }

    /// Gives the application no more records of these partitions until they are resumed. A
    /// partition that is taken away and comes back is not paused any more.
    pub fn pause(&self, partitions: &[TopicPartition]) -> Result<()> {
        self.change(partitions, |state, name| {
            let partition = state.partitions.get_mut(name);
            partition.map(|partition| partition.paused = true).is_some()
        })
    }

    /// Goes on with partitions that were paused.
    pub fn resume(&self, partitions: &[TopicPartition]) -> Result<()> {
        self.change(partitions, |state, name| {
            state.add_turn(name);
            let partition = state.partitions.get_mut(name);
            partition
                .map(|partition| partition.paused = false)
                .is_some()
        })
    }

    /// The partitions that are paused, in order.
    pub fn paused(&self) -> Vec<TopicPartition> {
        let state = self.shared.lock();
        let paused = state
            .partitions
            .iter()
            .filter(|(_, partition)| partition.paused);
        let mut paused: Vec<_> = paused.map(|(name, _)| name.clone()).collect();
        paused.sort();
        paused
    }

    /// Goes on reading elsewhere in a partition.
    pub fn seek(&self, partition: &TopicPartition, to: impl Into<Seek>) -> Result<()> {
        let to = to.into();
        if matches!(to, Seek::Offset(..0)) {
            return Err(Error::State(format!("{partition} has no negative offsets")));
        }
        self.change(std::slice::from_ref(partition), |state, name| {
            state.seek(name, to)
        })
    }

    /// The offset of the record of a partition that a poll will return next; `None` while it is
    /// not known where to begin.
    pub fn position(&self, partition: &TopicPartition) -> Result<Option<i64>> {
        let state = self.shared.lock();
        let known = state
            .partitions
            .get(partition)
            .ok_or_else(|| not_assigned(partition))?;
        Ok(known.position.map(|position| position.offset))
    }

    /// How many records of a partition are still to be read, as far as is known; `None` before
    /// anything was fetched of it.
    pub fn lag(&self, partition: &TopicPartition) -> Result<Option<i64>> {
        let state = self.shared.lock();
        let known = state
            .partitions
            .get(partition)
            .ok_or_else(|| not_assigned(partition))?;
        Ok(known.lag(self.shared.committed_only()))
    }

    /// Offsets by time, the first or the last.
    pub async fn list_offsets(
        &self,
        partitions: &[(TopicPartition, OffsetSpec)],
    ) -> Each<TopicPartition, Option<i64>> {
        let isolation_level = self.shared.config.isolation_level;
        let timeout = self.shared.cluster.config().api_timeout;
        let partitions = partitions.to_vec();
        let listed = list_offsets(&self.shared.cluster, partitions, isolation_level, timeout);
        let results = listed.await.into_iter();
        results
            .map(|(name, result)| (name, result.map(|listed| listed.offset)))
            .collect()
    }

    /// What the group has committed for these partitions.
    pub async fn committed(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<Each<TopicPartition, Option<CommittedOffset>>> {
        let Some(group_id) = &self.shared.config.group_id else {
            return Err(Error::config(
                "group.id",
                "is needed to know what was committed",
            ));
        };
        let timeout = self.shared.cluster.config().api_timeout;
        let member = self.shared.lock().committer.clone();
        let (cluster, member) = (&self.shared.cluster, member.as_ref());
        committed_offsets(cluster, group_id, member, Some(partitions), true, timeout).await
    }

    /// Commits how far the application has come in all its partitions: to the end of the records
    /// that the last poll returned.
    pub async fn commit(&self) -> Result<()> {
        let offsets = self.shared.lock().to_commit(false, None);
        commit::commit(
            &self.shared,
            &offsets,
            self.shared.cluster.config().api_timeout,
        )
        .await
    }

    /// Commits these offsets, each that of the next record to be read.
    pub async fn commit_offsets(
        &self,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<()> {
        commit::commit(
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
            commit::commit(&shared, &offsets, shared.cluster.config().api_timeout).await
        }))
    }

    /// Commits what the application has finished with, if it is to be committed by itself, and
    /// ends. Records of the last poll count as finished if the application has gone through them
    /// to the end. Takes no longer than 30 s.
    pub async fn close(self) -> Result<()> {
        self.close_within(Duration::from_secs(30)).await
    }

    /// [`close`](Consumer::close), taking no longer than `wait`.
    pub async fn close_within(self, wait: Duration) -> Result<()> {
        self.shared.finish_what_is_done();
        let mut result = Ok(());
        if self.shared.config.auto_commit && self.shared.config.group_id.is_some() {
            let offsets = self.shared.lock().to_commit(true, None);
            result = commit::commit(&self.shared, &offsets, wait).await;
        }
        self.shared.closed.cancel();
        self.shared.cluster.close();
        result
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

fn not_assigned(partition: &TopicPartition) -> Error {
    Error::State(format!("{partition} is not assigned to this consumer"))
}
