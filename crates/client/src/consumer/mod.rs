//! Reading records.
//!
//! # As a member of a group
//!
//! ```no_run
//! use kohort::{Consumer, consumer::OffsetReset};
//!
//! # async fn example() -> kohort::Result<()> {
//! let consumer = Consumer::builder()
//!     .bootstrap_servers("localhost:9092")
//!     .group_id("billing")
//!     .offset_reset(OffsetReset::Earliest)
//!     .build()
//!     .await?;
//! consumer.subscribe(["orders"])?;
//! for _ in 0..100 {
//!     let records = consumer.poll().await?;
//!     for record in &records {
//!         println!("{} {:?}", record.offset, record.value);
//!     }
//!     // By polling again the application says that it has finished with these records. Only such
//!     // are committed, now and then and when partitions go to other members.
//! }
//! consumer.close().await
//! # }
//! ```
//!
//! What is to be done when partitions come and go: [`RebalanceHandler`]. Membership runs on a task
//! of its own, so heartbeats do not depend on how often the application polls; but it has to poll
//! within [`ConsumerConfig::poll_interval_max`].
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

mod aborted;
mod commit;
mod config;
mod fetch_answer;
mod fetched;
mod fetcher;
mod group;
mod handler;
mod in_order;
mod partition;
mod positions;
mod records;
mod resolve;
mod session;
mod shared;
mod stream;
mod validate;

use std::{sync::Arc, time::Duration};

pub use commit::CommitLater;
pub use config::{AssignmentStrategy, ConsumerConfig, GroupProtocol, OffsetReset};
use futures_core::Stream;
pub use handler::{Rebalance, RebalanceHandler};
pub use kohort_group::assignor::classic as assignors;
pub use kohort_wire::records::{Header, Headers, TimestampType};
use parking_lot::Mutex;
pub use partition::Seek;
pub use records::{ConsumerRecord, Iter, OwnedRecord, Records};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};
use tracing::Instrument;

use self::{
    fetcher::Fetcher,
    group::{Command, GroupTask, Wish},
    shared::Shared,
};
use crate::{
    ByteString, Error, Result, TopicPartition,
    panics::unpanicked,
    rewind::{self, RewindStep, RewindTo},
    rpc::Cluster,
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
    membership: Mutex<Membership>,
}

/// What the task that keeps the consumer in its group needs, or the way to it once it runs.
struct Membership {
    handler: Arc<dyn handler::Handler>,
    assignors: Option<group::Assignors>,
    commands: Option<mpsc::UnboundedSender<Command>>,
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let running = self.commands.is_some();
        f.debug_struct("Membership")
            .field("running", &running)
            .finish()
    }
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
        let mut state = shared.lock();
        state.polling = true;
        if std::mem::take(&mut state.away) {
            shared.away_no_more.notify_one();
        }
        drop(state);
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
        let span = &shared.span;
        let fetcher = Fetcher::new(shared.clone()).run();
        tokio::spawn(guarded(shared.clone(), fetcher).instrument(span.clone()));
        if auto_commit {
            tokio::spawn(commit::auto_commit(shared.clone()).instrument(span.clone()));
        }
        Consumer {
            shared,
            turn: tokio::sync::Mutex::default(),
            membership: Mutex::new(Membership {
                handler: Arc::new(()),
                assignors: None,
                commands: None,
            }),
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
        for (name, start) in &wanted {
            start.check(name)?;
        }
        let mut state = self.shared.lock();
        if state.subscribed {
            let problem = "the group assigns the partitions: unsubscribe first";
            return Err(Error::State(problem.to_owned()));
        }
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

    /// What is to be done when partitions come and go. To be set before the first subscription.
    pub fn set_rebalance_handler(&self, handler: impl RebalanceHandler) -> Result<()> {
        let mut membership = self.membership.lock();
        if membership.commands.is_some() {
            return Err(Error::State(
                "the consumer has subscribed already".to_owned(),
            ));
        }
        membership.handler = Arc::new(handler);
        Ok(())
    }

    /// Brings assignors of the application's own for the classic protocol, instead of those of
    /// [`ConsumerConfig::assignment_strategies`]. To be set before the first subscription.
    pub fn set_assignors(
        &self,
        assignors: impl Fn() -> Vec<Box<dyn assignors::ConsumerPartitionAssignor>>
        + Send
        + Sync
        + 'static,
    ) -> Result<()> {
        let mut membership = self.membership.lock();
        if membership.commands.is_some() {
            return Err(Error::State(
                "the consumer has subscribed already".to_owned(),
            ));
        }
        membership.assignors = Some(Box::new(assignors));
        Ok(())
    }

    /// Subscribes to topics as a member of the group, instead of what was subscribed to before.
    /// Returns at once; the partitions come while the application polls.
    pub fn subscribe<T: Into<ByteString>>(
        &self,
        topics: impl IntoIterator<Item = T>,
    ) -> Result<()> {
        let topics: Vec<_> = topics.into_iter().map(Into::into).collect();
        if topics.is_empty() {
            return Err(Error::State("no topic is named".to_owned()));
        }
        self.subscribe_to(Wish::Topics(topics))
    }

    /// Subscribes to all topics whose whole names match a regular expression, present and future.
    /// In the consumer protocol the coordinator resolves it (RE2 syntax with Apache Kafka).
    pub fn subscribe_regex(&self, regex: impl Into<ByteString>) -> Result<()> {
        let regex = regex.into();
        if regex.is_empty() {
            return Err(Error::State("the regular expression is empty".to_owned()));
        }
        self.subscribe_to(Wish::Regex(regex))
    }

    fn subscribe_to(&self, wish: Wish) -> Result<()> {
        if self.shared.config.group_id.is_none() {
            return Err(Error::config("group.id", "is needed to subscribe"));
        }
        let mut membership = self.membership.lock();
        {
            let mut state = self.shared.lock();
            if !state.subscribed && !state.partitions.is_empty() {
                let problem = "partitions are assigned by hand: assign none first";
                return Err(Error::State(problem.to_owned()));
            }
            if !state.subscribed {
                state.polled = Instant::now();
            }
            state.subscribed = true;
            state.broken = None;
        }
        let commands = match &membership.commands {
            Some(commands) => commands.clone(),
            None => {
                let strategies = self.shared.config.assignment_strategies.clone();
                let assignors = membership.assignors.take();
                let assignors =
                    assignors.unwrap_or_else(|| Box::new(move || built_in(&strategies)));
                let (commands, receiver) = mpsc::unbounded_channel();
                let handler = membership.handler.clone();
                let task = GroupTask::new(self.shared.clone(), handler, assignors, receiver)?;
                let task = guarded(self.shared.clone(), task.run());
                tokio::spawn(task.instrument(self.shared.span.clone()));
                membership.commands = Some(commands.clone());
                commands
            }
        };
        commands
            .send(Command::Subscribe(wish))
            .map_err(|_| Error::Closed)
    }

    /// Leaves the group: the partitions are revoked first. The consumer can subscribe again, or
    /// assign partitions by hand. If the future is dropped, the group is left nevertheless.
    pub async fn unsubscribe(&self) -> Result<()> {
        let after = self.shared.cluster.config().api_timeout;
        let left = timeout(after, self.leave()).await;
        left.map_err(|_| Error::Timeout {
            what: "leave the group".to_owned(),
            after,
            last: None,
        })
    }

    async fn leave(&self) {
        let commands = self.membership.lock().commands.clone();
        if let Some(commands) = commands {
            let (done, left) = oneshot::channel();
            if commands.send(Command::Leave(done)).is_ok() {
                let _ = left.await;
            }
        }
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
            let idle = {
                let state = self.shared.lock();
                state.partitions.is_empty() && !state.subscribed
            };
            if idle {
                let problem = "nothing to read: subscribe or assign partitions first";
                return Err(Error::State(problem.to_owned()));
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
    /// before. When the stream is dropped, what it has not given out will be polled. From when it
    /// was asked for a record until it gives one it counts as waiting, also if whoever asked has
    /// stopped: to be noticed by [`ConsumerConfig::poll_interval_max`], drop it.
    pub fn stream(&self) -> impl Stream<Item = Result<OwnedRecord>> + Send + '_ {
        stream::stream(self)
    }

    /// [`poll`](Consumer::poll) for no longer than `wait`; returns no records if there are none.
    pub async fn poll_for(&self, wait: Duration) -> Result<Records> {
        timeout(wait, self.poll())
            .await
            .unwrap_or_else(|_| Ok(Records::default()))
    }

    /// Has the whole group go on elsewhere in these partitions, while it runs: whoever owns them
    /// gives them up, and starts at the new place. Gives what was committed before, and what is now.
    ///
    /// See [`Admin::rewind_group`](crate::Admin::rewind_group), whose promises and errors these are.
    /// As by polling, the application says that it has finished with the records that it was given,
    /// unless another task polls meanwhile. To move this consumer alone: [`seek`](Consumer::seek).
    pub async fn rewind(
        &self,
        partitions: &[(TopicPartition, RewindTo)],
    ) -> Result<Vec<RewindStep>> {
        let group_id = rewind::group_of(self.shared.config.group_id.as_ref())?;
        let cluster = &self.shared.cluster;
        let steps = rewind::plan(cluster, group_id, partitions, false).await?;
        // This member may own some of them, and gives them up only when it has no records in hand.
        let turn = self.turn.try_lock();
        let _polling = turn.is_ok().then(|| Polling::begin(&self.shared));
        rewind::execute(cluster, group_id, &steps, rewind::TIMEOUT).await
    }

    /// Commits what the application has finished with, if it is to be committed by itself, leaves
    /// the group, and ends. Records of the last poll count as finished if the application has gone
    /// through them to the end. Takes no longer than 30 s. If the future is dropped, that is as if
    /// the consumer had been.
    pub async fn close(self) -> Result<()> {
        self.close_within(Duration::from_secs(30)).await
    }

    /// [`close`](Consumer::close), taking no longer than `wait`.
    pub async fn close_within(self, wait: Duration) -> Result<()> {
        self.shared.finish_what_is_done();
        let closing = async {
            let by_hand = !self.shared.lock().subscribed;
            let auto_commit = self.shared.config.auto_commit;
            if by_hand && auto_commit && self.shared.config.group_id.is_some() {
                let offsets = self.shared.lock().to_commit(true, None);
                commit::commit(&self.shared, &offsets, wait).await?;
            }
            // A member commits when its partitions are revoked.
            self.leave().await;
            Ok(())
        };
        let result = timeout(wait, closing).await.unwrap_or_else(|_| {
            Err(Error::Timeout {
                what: "close the consumer".to_owned(),
                after: wait,
                last: None,
            })
        });
        self.shared.closed.cancel();
        self.shared.cluster.close();
        result
    }
}

/// Runs a task of a consumer. Should it panic (the application's code is called by it, too), the
/// application is told instead of waiting for ever.
async fn guarded(shared: Arc<Shared>, task: impl Future<Output = ()>) {
    if let Err(problem) = unpanicked(task).await {
        let problem = format!("the consumer has stopped: {problem}");
        shared.lock().broken = Some(Error::State(problem));
        shared.ready.notify_waiters();
    }
}

fn built_in(
    strategies: &[AssignmentStrategy],
) -> Vec<Box<dyn assignors::ConsumerPartitionAssignor>> {
    let each = strategies.iter().map(
        |strategy| -> Box<dyn assignors::ConsumerPartitionAssignor> {
            match strategy {
                AssignmentStrategy::Range => Box::<assignors::Range>::default(),
                AssignmentStrategy::RoundRobin => Box::<assignors::RoundRobin>::default(),
                AssignmentStrategy::Sticky => Box::<assignors::Sticky>::default(),
                AssignmentStrategy::CooperativeSticky => {
                    Box::<assignors::CooperativeSticky>::default()
                }
            }
        },
    );
    each.collect()
}
