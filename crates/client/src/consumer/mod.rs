//! Reading records.
//!
//! # As a member of a group
//!
//! ```no_run
//! use kohort::{Consumer, consumer::OffsetReset};
//!
//! # async fn example() -> kohort::Result<()> {
//! let mut consumer = Consumer::builder()
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
//!     // The next poll finishes these records. What is finished is committed every few seconds and
//!     // when partitions go to other members.
//! }
//! // The last ones are processed too.
//! consumer.finish();
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
//! let mut consumer = Consumer::connect(ConsumerConfig::new("localhost:9092")).await?;
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
//! # async fn example(mut consumer: kohort::Consumer) -> kohort::Result<()> {
//! let mut records = consumer.stream();
//! while let Some(record) = records.next().await {
//!     let record = record?;
//!     println!("{} {:?}", record.offset, record.value);
//! }
//! # Ok(())
//! # }
//! ```

mod commit;
mod config;
mod fetcher;
mod group;
mod group_metadata;
mod handler;
mod lookups;
mod positions;
mod reading;
mod records;
mod shared;
mod stream;

use std::{sync::Arc, time::Duration};

pub use commit::CommitLater;
pub use config::{AssignmentStrategy, ConsumerConfig, GroupProtocol, OffsetReset};
pub use group::Subscription;
pub use group_metadata::ConsumerGroupMetadata;
pub use handler::{Rebalance, RebalanceHandler};
pub use kohort_group::assignor::classic as assignors;
use kohort_member::reader::HandleId;
pub use kohort_member::reader::Seek;
pub use kohort_wire::records::{Header, Headers, TimestampType};
use parking_lot::Mutex;
pub use records::{ConsumerRecord, Iter, OwnedRecord, Records};
pub use stream::RecordStream;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};
use tracing::Instrument;

use self::{
    group::{Command, GroupTask},
    reading::Polling,
    shared::Shared,
};
use crate::{
    ByteString, Error, Result, TopicPartition,
    panics::unpanicked,
    rewind::{self, RewindStep, RewindTo},
    rpc::Cluster,
    runtime::on_runtime_end,
};

/// Reads records, alone or as a member of a group.
///
/// **A record is finished when you ask the same handle for the next one, or say so with
/// [`finish`](Consumer::finish) or [`commit`](Consumer::commit).** Only finished records are
/// committed, automatically or not; everything else is delivered again after a failure. So
///
/// - [`poll`](Consumer::poll) finishes the records of the handle's last poll, and each
///   [`recv`](Consumer::recv) or item of a [`stream`](Consumer::stream) finishes the record before.
///   Iterating over records finishes nothing, nor does dropping them: an error in the middle leaves
///   them all unfinished.
/// - [`close`](Consumer::close) commits what is finished and nothing else. To stop gracefully after
///   processing what you hold, call [`finish`](Consumer::finish) first.
///
/// A consumer is a handle that can be cloned. Clones share connections, membership and
/// partitions, but each holds and finishes only the records that it was given itself: give every
/// task that polls a clone. Among the records of a partition, only those before the first
/// unfinished one are committed, whichever handle holds it.
///
/// [`close`](Consumer::close) ends the consumer for all handles. Dropping the last handle returns
/// at once, without committing.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<Shared>,
    handle: HandleId,
    membership: Arc<Mutex<Membership>>,
}

/// What the task that keeps the consumer in its group needs, or the way to it once it runs.
struct Membership {
    handler: Arc<dyn handler::Handler>,
    assignors: Option<group::Assignors>,
    commands: Option<mpsc::UnboundedSender<Command>>,
    subscription: Option<Subscription>,
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let running = self.commands.is_some();
        f.debug_struct("Membership")
            .field("running", &running)
            .finish()
    }
}

impl Clone for Consumer {
    /// Another handle of the same consumer, which holds no records yet.
    fn clone(&self) -> Consumer {
        Consumer {
            shared: self.shared.clone(),
            handle: self.shared.lock().reader.add_handle(),
            membership: self.membership.clone(),
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let is_last = state.reader.is_last_handle(self.handle);
        let held = state.reader.remove_handle(self.handle);
        drop(state);
        if is_last {
            self.shared.closed.cancel();
        } else if held {
            tracing::warn!(
                "a handle was dropped with records that it had not finished: nothing after them is \
                 committed until their partitions are assigned again"
            );
            // They do not keep others waiting.
            self.shared.released.notify_waiters();
        }
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
        let shared = Arc::new(Shared::new(config, cluster));
        let auto_commit = shared.commits_automatically();
        let span = &shared.span;
        let fetcher = fetcher::run(shared.clone());
        tokio::spawn(guarded(shared.clone(), fetcher).instrument(span.clone()));
        if auto_commit {
            tokio::spawn(commit::auto_commit(shared.clone()).instrument(span.clone()));
        }
        let handle = shared.lock().reader.add_handle();
        Consumer {
            shared,
            handle,
            membership: Arc::new(Mutex::new(Membership {
                handler: Arc::new(()),
                assignors: None,
                commands: None,
                subscription: None,
            })),
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

    /// Reads these partitions from now on, and no others. Those that were assigned before stay as
    /// they are. What is finished in partitions that are no longer assigned is still committed
    /// automatically, if [`ConsumerConfig::auto_commit`] is on.
    pub fn assign(
        &self,
        partitions: impl IntoIterator<Item = (TopicPartition, Seek)>,
    ) -> Result<()> {
        let wanted: Vec<_> = partitions.into_iter().collect();
        for (name, start) in &wanted {
            positions::check(*start, name)?;
        }
        let mut state = self.shared.lock();
        if state.reader.is_subscribed() {
            let problem = "the group assigns the partitions: unsubscribe first";
            return Err(Error::State(problem.to_owned()));
        }
        let gone: Vec<_> = state
            .reader
            .assigned()
            .filter(|name| !wanted.iter().any(|(wanted, _)| wanted == *name))
            .cloned()
            .collect();
        let auto_commit = self.shared.commits_automatically();
        state.unassign(&gone, auto_commit);
        for (name, start) in wanted {
            if !state.reader.contains(&name) {
                state.reader.assign(name, start);
            }
        }
        drop(state);
        // Revocations don't wait for held records of partitions that are gone.
        self.shared.released.notify_waiters();
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
        self.subscribe_to(Subscription::Topics(topics))
    }

    /// Subscribes to all topics whose whole names match a regular expression, present and future.
    /// In the consumer protocol the coordinator resolves it (RE2 syntax with Apache Kafka).
    pub fn subscribe_regex(&self, regex: impl Into<ByteString>) -> Result<()> {
        let regex = regex.into();
        if regex.is_empty() {
            return Err(Error::State("the regular expression is empty".to_owned()));
        }
        self.subscribe_to(Subscription::Regex(regex))
    }

    fn subscribe_to(&self, wish: Subscription) -> Result<()> {
        if self.shared.config.group_id.is_none() {
            return Err(Error::config("group.id", "is needed to subscribe"));
        }
        let mut membership = self.membership.lock();
        {
            let mut state = self.shared.lock();
            let is_subscribed = state.reader.is_subscribed();
            if !is_subscribed && state.reader.assigned().next().is_some() {
                let problem = "partitions are assigned by hand: assign none first";
                return Err(Error::State(problem.to_owned()));
            }
            if !is_subscribed {
                state.polled = Instant::now();
            }
            if let Some(error) = &state.stopped {
                return Err(error.clone());
            }
            state.reader.set_subscribed(true);
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
        membership.subscription = Some(wish.clone());
        commands.send(Command::Subscribe(wish)).map_err(|_| {
            let stopped = self.shared.lock().stopped.clone();
            stopped.unwrap_or(Error::Closed)
        })
    }

    /// Leaves the group: the partitions are revoked first, and what is finished is committed if
    /// [`ConsumerConfig::auto_commit`] is on; an error says if that failed. The consumer can
    /// subscribe again, or assign partitions by hand. If the future is dropped, the group is left
    /// nevertheless.
    pub async fn unsubscribe(&self) -> Result<()> {
        let after = self.shared.cluster.config().api_timeout;
        let left = timeout(after, self.leave()).await;
        left.map_err(|_| Error::Timeout {
            what: "leave the group".to_owned(),
            after,
            last: None,
        })?;
        self.commits_while_leaving()
    }

    /// An error if the consumer had stopped, or if finished records could not be committed
    /// automatically before the group was left.
    fn commits_while_leaving(&self) -> Result<()> {
        if let Some(error) = &self.shared.lock().stopped {
            return Err(error.clone());
        }
        if !self.shared.commits_automatically() {
            return Ok(());
        }
        let mut state = self.shared.lock();
        let failure = state.commit_failure.take();
        let lost = state.reader.take_lost(self.handle);
        drop(state);
        if lost.is_empty() {
            return Ok(());
        }
        Err(failure.unwrap_or_else(|| self.shared.not_committed(lost)))
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

    /// What the consumer subscribes to; `None` before [`subscribe`](Consumer::subscribe) and after
    /// [`unsubscribe`](Consumer::unsubscribe).
    pub fn subscription(&self) -> Option<Subscription> {
        let membership = self.membership.lock();
        let subscribed = self.shared.lock().reader.is_subscribed();
        membership.subscription.clone().filter(|_| subscribed)
    }

    /// The consumer as the coordinator knows it at present; `None` while it is not a member.
    pub fn group_metadata(&self) -> Option<ConsumerGroupMetadata> {
        let group_id = self.shared.config.group_id.clone()?;
        let member = self.shared.lock().reader.member().cloned()?;
        Some(ConsumerGroupMetadata {
            group_id,
            generation_id: member.epoch,
            member_id: member.member_id,
            group_instance_id: member.instance_id,
        })
    }

    /// The partitions that are being read, in order.
    pub fn assignment(&self) -> Vec<TopicPartition> {
        let mut partitions: Vec<_> = self.shared.lock().reader.assigned().cloned().collect();
        partitions.sort();
        partitions
    }

    /// Moves the whole group in these partitions while it runs: their owners release them, and
    /// start at the new offsets. Returns what was committed before, and what is committed now.
    ///
    /// See [`Admin::rewind_group`](crate::Admin::rewind_group), which has the same promises and
    /// errors. Finishes the records that this handle holds, as this consumer may own some of the
    /// partitions. To move this consumer alone: [`seek`](Consumer::seek).
    pub async fn rewind(
        &mut self,
        partitions: &[(TopicPartition, RewindTo)],
    ) -> Result<Vec<RewindStep>> {
        let group_id = rewind::group_of(self.shared.config.group_id.as_ref())?;
        let cluster = &self.shared.cluster;
        let steps = rewind::plan(cluster, group_id, partitions, false).await?;
        let _polling = Polling::begin(&self.shared, self.handle);
        rewind::execute(cluster, group_id, &steps, rewind::TIMEOUT).await
    }

    /// Commits what is finished, if [`ConsumerConfig::auto_commit`] is on, leaves the group, and
    /// ends the consumer for all its handles. Takes no longer than 30 s. If the future is dropped,
    /// the consumer ends as if it had been dropped.
    ///
    /// Records that this handle still holds are not finished by closing: call
    /// [`finish`](Consumer::finish) before if they are processed.
    ///
    /// # Errors
    ///
    /// Those of [`commit`](Consumer::commit), if something that is finished could not be committed.
    /// The consumer has ended nevertheless.
    pub async fn close(self) -> Result<()> {
        self.close_within(Duration::from_secs(30)).await
    }

    /// [`close`](Consumer::close), taking no longer than `wait`.
    pub async fn close_within(self, wait: Duration) -> Result<()> {
        let closing = async {
            let offsets = {
                let mut state = self.shared.lock();
                let by_hand = !state.reader.is_subscribed() && self.shared.commits_automatically();
                by_hand.then(|| {
                    let departed = state.reader.take_departed();
                    [state.reader.to_commit(None), departed].concat()
                })
            };
            if let Some(offsets) = offsets {
                commit::commit(&self.shared, offsets, wait).await?;
            }
            // A member commits when its partitions are revoked.
            self.leave().await;
            self.commits_while_leaving()
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

/// Runs a task of a consumer. If it panics (it also calls the application's code) or dies with its
/// runtime, the application gets an error instead of waiting forever.
fn guarded(shared: Arc<Shared>, task: impl Future<Output = ()>) -> impl Future<Output = ()> {
    let stopped = shared.clone();
    let task = async move {
        if let Err(problem) = unpanicked(task).await {
            let problem = format!("the consumer has stopped: {problem}");
            shared.stop(Error::State(problem));
        }
    };
    on_runtime_end(task, move || stopped.stop(Error::RuntimeEnded))
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
