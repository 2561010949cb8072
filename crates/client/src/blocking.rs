//! The same without `async`, for programs that have no runtime: [`Consumer`], [`Producer`] and
//! [`Admin`] under the same names, whose methods return when it is done.
//!
//! ```no_run
//! use kohort::blocking::Consumer;
//!
//! # fn main() -> kohort::Result<()> {
//! let mut consumer = Consumer::builder()
//!     .bootstrap_servers("localhost:9092")
//!     .group_id("billing")
//!     .build_blocking()?;
//! consumer.subscribe(["orders"])?;
//! for _ in 0..100 {
//!     for record in &consumer.poll()? {
//!         println!("{} {:?}", record.offset, record.value);
//!     }
//! }
//! // The records of the last poll are processed too.
//! consumer.finish();
//! consumer.close()
//! # }
//! ```
//!
//! Connections and heartbeats run on two threads of their own. What is not offered here, like
//! [`rpc`](crate::rpc), can be used with [`wait`]. None of this may be called from async code.

use std::{ops::Deref, sync::OnceLock, time::Duration};

use tokio::runtime::{Builder, Runtime};

use crate::{
    AdminBuilder, ByteString, ClientConfig, CommittedOffset, ConsumerBuilder, ConsumerConfig, Each,
    Error, IsolationLevel, ListedOffset, OffsetSpec, ProducerBuilder, ProducerConfig,
    ProducerRecord, Result, TopicPartition,
    admin::*,
    consumer::{CommitLater, OwnedRecord, Records},
    producer::{Delivery, RecordMetadata},
    rpc::TopicMetadata,
};

/// The threads on which connections and heartbeats run.
fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<std::result::Result<Runtime, String>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("kohort")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())
    });
    let failed = |error: &String| Error::State(format!("no threads can be started: {error}"));
    runtime.as_ref().map_err(failed)
}

/// Waits for a future of this crate.
///
/// # Panics
///
/// In async code, and if the operating system has no threads to give.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    runtime().expect("threads can be started").block_on(future)
}

/// The same, with an error instead of the panic.
pub(crate) fn wait_for<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    runtime()?.block_on(future)
}

macro_rules! forward {
    ($target:ty: $(
        $(#[$meta:meta])*
        fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $output:ty;
    )*) => {
        impl $target {
            $(
                $(#[$meta])*
                pub fn $name(&self $(, $argument: $type)*) -> $output {
                    wait(self.inner.$name($($argument),*))
                }
            )*
        }
    };
    (mut $target:ty: $(
        $(#[$meta:meta])*
        fn $name:ident(&mut self $(, $argument:ident: $type:ty)*) -> $output:ty;
    )*) => {
        impl $target {
            $(
                $(#[$meta])*
                pub fn $name(&mut self $(, $argument: $type)*) -> $output {
                    wait(self.inner.$name($($argument),*))
                }
            )*
        }
    };
}

/// [`kohort::Admin`](crate::Admin), waiting.
#[derive(Debug, Clone)]
pub struct Admin {
    inner: crate::Admin,
}

impl Admin {
    /// See [`Admin::connect`](crate::Admin::connect).
    pub fn connect(config: ClientConfig) -> Result<Admin> {
        wait_for(crate::Admin::connect(config)).map(Admin::from)
    }

    /// A builder, with the defaults; in the end comes
    /// [`build_blocking`](AdminBuilder::build_blocking).
    pub fn builder() -> AdminBuilder {
        crate::Admin::builder()
    }
}

impl From<crate::Admin> for Admin {
    fn from(inner: crate::Admin) -> Admin {
        Admin { inner }
    }
}

forward! { Admin:
    /// See [`Admin::create_topics`](crate::Admin::create_topics).
    fn create_topics(&self, topics: &[NewTopic], validate_only: bool) -> Result<Each<ByteString, CreatedTopic>>;
    /// See [`Admin::create_topic`](crate::Admin::create_topic).
    fn create_topic(&self, topic: &NewTopic) -> Result<CreatedTopic>;
    /// See [`Admin::delete_topics`](crate::Admin::delete_topics).
    fn delete_topics(&self, names: &[ByteString]) -> Result<Each<ByteString, ()>>;
    /// See [`Admin::delete_topic`](crate::Admin::delete_topic).
    fn delete_topic(&self, name: &str) -> Result<()>;
    /// See [`Admin::create_partitions`](crate::Admin::create_partitions).
    fn create_partitions(&self, name: &str, total: i32) -> Result<()>;
    /// See [`Admin::list_topics`](crate::Admin::list_topics).
    fn list_topics(&self, internal: bool) -> Result<Vec<std::sync::Arc<TopicMetadata>>>;
    /// See [`Admin::describe_topics`](crate::Admin::describe_topics).
    fn describe_topics(&self, names: &[ByteString]) -> Result<Each<ByteString, std::sync::Arc<TopicMetadata>>>;
    /// See [`Admin::describe_configs`](crate::Admin::describe_configs).
    fn describe_configs(&self, resources: &[ConfigResource], documentation: bool) -> Each<ConfigResource, Vec<ConfigEntry>>;
    /// See [`Admin::alter_configs`](crate::Admin::alter_configs).
    fn alter_configs(&self, resource: &ConfigResource, changes: &[(ByteString, ConfigOperation)], validate_only: bool) -> Result<()>;
    /// See [`Admin::list_config_resources`](crate::Admin::list_config_resources).
    fn list_config_resources(&self, kinds: &[ConfigResourceType]) -> Result<Vec<ConfigResource>>;
    /// See [`Admin::list_groups`](crate::Admin::list_groups).
    fn list_groups(&self, filter: &GroupFilter) -> Result<Vec<GroupListing>>;
    /// See [`Admin::describe_groups`](crate::Admin::describe_groups).
    fn describe_groups(&self, group_ids: &[ByteString]) -> Each<ByteString, GroupDescription>;
    /// See [`Admin::describe_group`](crate::Admin::describe_group).
    fn describe_group(&self, group_id: &str) -> Result<GroupDescription>;
    /// See [`Admin::delete_groups`](crate::Admin::delete_groups).
    fn delete_groups(&self, group_ids: &[ByteString]) -> Each<ByteString, ()>;
    /// See [`Admin::delete_group`](crate::Admin::delete_group).
    fn delete_group(&self, group_id: &str) -> Result<()>;
    /// See [`Admin::remove_members`](crate::Admin::remove_members).
    fn remove_members(&self, group_id: &str, members: &[MemberToRemove], reason: &str) -> Result<Each<ByteString, ()>>;
    /// See [`Admin::rewind_group`](crate::Admin::rewind_group).
    fn rewind_group(&self, group_id: &str, partitions: &[(TopicPartition, RewindTo)]) -> Result<Vec<RewindStep>>;
    /// See [`Admin::plan_rewind`](crate::Admin::plan_rewind).
    fn plan_rewind(&self, group_id: &str, partitions: &[(TopicPartition, RewindTo)], clamp: bool) -> Result<Vec<RewindStep>>;
    /// See [`Admin::plan_undo`](crate::Admin::plan_undo).
    fn plan_undo(&self, group_id: &str, clamp: bool) -> Result<Vec<RewindStep>>;
    /// See [`Admin::execute_rewind`](crate::Admin::execute_rewind).
    fn execute_rewind(&self, group_id: &str, steps: &[RewindStep], timeout: Duration) -> Result<Vec<RewindStep>>;
    /// See [`Admin::undo_rewind`](crate::Admin::undo_rewind).
    fn undo_rewind(&self, group_id: &str) -> Result<Vec<RewindStep>>;
    /// See [`Admin::pending_rewind`](crate::Admin::pending_rewind).
    fn pending_rewind(&self, group_id: &str) -> Result<Option<LastRewind>>;
    /// See [`Admin::cancel_rewind`](crate::Admin::cancel_rewind).
    fn cancel_rewind(&self, group_id: &str) -> Result<Vec<RewindStep>>;
    /// See [`Admin::last_rewind`](crate::Admin::last_rewind).
    fn last_rewind(&self, group_id: &str) -> Result<Option<LastRewind>>;
    /// See [`Admin::list_group_offsets`](crate::Admin::list_group_offsets).
    fn list_group_offsets(&self, group_id: &str, partitions: Option<&[TopicPartition]>) -> Result<Each<TopicPartition, Option<CommittedOffset>>>;
    /// See [`Admin::alter_group_offsets`](crate::Admin::alter_group_offsets).
    fn alter_group_offsets(&self, group_id: &str, offsets: &[(TopicPartition, CommittedOffset)]) -> Result<Each<TopicPartition, ()>>;
    /// See [`Admin::delete_group_offsets`](crate::Admin::delete_group_offsets).
    fn delete_group_offsets(&self, group_id: &str, partitions: &[TopicPartition]) -> Result<Each<TopicPartition, ()>>;
    /// See [`Admin::list_offsets`](crate::Admin::list_offsets).
    fn list_offsets(&self, partitions: &[(TopicPartition, OffsetSpec)], isolation_level: IsolationLevel) -> Each<TopicPartition, ListedOffset>;
    /// See [`Admin::delete_records`](crate::Admin::delete_records).
    fn delete_records(&self, partitions: &[(TopicPartition, i64)]) -> Each<TopicPartition, i64>;
    /// See [`Admin::describe_cluster`](crate::Admin::describe_cluster).
    fn describe_cluster(&self) -> Result<ClusterDescription>;
}

/// [`kohort::Producer`](crate::Producer), waiting.
#[derive(Debug, Clone)]
pub struct Producer {
    inner: crate::Producer,
}

impl Producer {
    /// See [`Producer::connect`](crate::Producer::connect).
    pub fn connect(config: ProducerConfig) -> Result<Producer> {
        wait_for(crate::Producer::connect(config)).map(Producer::from)
    }

    /// A builder, with the defaults; in the end comes
    /// [`build_blocking`](ProducerBuilder::build_blocking).
    pub fn builder() -> ProducerBuilder {
        crate::Producer::builder()
    }

    /// See [`Producer::send_json`](crate::Producer::send_json).
    #[cfg(feature = "json")]
    pub fn send_json<T: serde::Serialize + ?Sized>(
        &self,
        record: ProducerRecord<'_>,
        value: &T,
    ) -> Result<Delivery> {
        wait(self.inner.send_json(record, value))
    }

    /// See [`Producer::try_send`](crate::Producer::try_send).
    pub fn try_send(&self, record: &ProducerRecord<'_>) -> Result<Option<Delivery>> {
        self.inner.try_send(record)
    }

    /// See [`Producer::config`](crate::Producer::config).
    pub fn config(&self) -> &ProducerConfig {
        self.inner.config()
    }

    /// See [`Producer::send`](crate::Producer::send). What becomes of the record is told by
    /// [`Delivery::wait`].
    pub fn send(&self, record: ProducerRecord<'_>) -> Result<Delivery> {
        match self.inner.try_send(&record)? {
            Some(delivery) => Ok(delivery),
            None => wait(self.inner.send(record)),
        }
    }

    /// See [`Producer::close`](crate::Producer::close).
    pub fn close(self) {
        wait(self.inner.close());
    }

    /// See [`Producer::close_within`](crate::Producer::close_within).
    pub fn close_within(self, timeout: Duration) -> Result<()> {
        wait(self.inner.close_within(timeout))
    }
}

impl From<crate::Producer> for Producer {
    fn from(inner: crate::Producer) -> Producer {
        Producer { inner }
    }
}

forward! { Producer:
    /// See [`Producer::flush`](crate::Producer::flush).
    fn flush(&self) -> ();
    /// See [`Producer::flush_within`](crate::Producer::flush_within).
    fn flush_within(&self, timeout: Duration) -> Result<()>;
    /// See [`Producer::partitions`](crate::Producer::partitions).
    fn partitions(&self, topic: &str) -> Result<usize>;
}

impl Delivery {
    /// Waits for what becomes of the record, in programs without a runtime.
    pub fn wait(self) -> Result<RecordMetadata> {
        wait(self)
    }
}

/// [`kohort::Consumer`](crate::Consumer), waiting. What does not wait anyway is called on it as on
/// that one: assigning, pausing, seeking, positions, [`finish`](crate::Consumer::finish). A clone is
/// another handle of the same consumer, for another thread.
#[derive(Debug, Clone)]
pub struct Consumer {
    inner: crate::Consumer,
}

impl Deref for Consumer {
    type Target = crate::Consumer;

    fn deref(&self) -> &crate::Consumer {
        &self.inner
    }
}

impl Consumer {
    /// See [`Consumer::connect`](crate::Consumer::connect).
    pub fn connect(config: ConsumerConfig) -> Result<Consumer> {
        wait_for(crate::Consumer::connect(config)).map(Consumer::from)
    }

    /// A builder, with the defaults; in the end comes
    /// [`build_blocking`](ConsumerBuilder::build_blocking).
    pub fn builder() -> ConsumerBuilder {
        crate::Consumer::builder()
    }

    /// See [`Consumer::commit_later`](crate::Consumer::commit_later). The outcome may be waited for
    /// by [`wait`].
    pub fn commit_later(&self) -> Result<CommitLater> {
        let _entered = runtime()?.enter();
        Ok(self.inner.commit_later())
    }

    /// See [`Consumer::subscribe`](crate::Consumer::subscribe).
    pub fn subscribe<T: Into<ByteString>>(
        &self,
        topics: impl IntoIterator<Item = T>,
    ) -> Result<()> {
        let _entered = runtime()?.enter();
        self.inner.subscribe(topics)
    }

    /// See [`Consumer::subscribe_regex`](crate::Consumer::subscribe_regex).
    pub fn subscribe_regex(&self, regex: impl Into<ByteString>) -> Result<()> {
        let _entered = runtime()?.enter();
        self.inner.subscribe_regex(regex)
    }

    /// Owned records, one after the other, without end. Asking for the next one finishes the one
    /// before. See [`Consumer::stream`](crate::Consumer::stream).
    pub fn records(&mut self) -> impl Iterator<Item = Result<OwnedRecord>> + '_ {
        let mut stream = self.inner.stream();
        std::iter::from_fn(move || wait(futures_util::StreamExt::next(&mut stream)))
    }

    /// See [`Consumer::close`](crate::Consumer::close).
    pub fn close(self) -> Result<()> {
        wait(self.inner.close())
    }

    /// See [`Consumer::close_within`](crate::Consumer::close_within).
    pub fn close_within(self, timeout: Duration) -> Result<()> {
        wait(self.inner.close_within(timeout))
    }
}

impl From<crate::Consumer> for Consumer {
    fn from(inner: crate::Consumer) -> Consumer {
        Consumer { inner }
    }
}

forward! { mut Consumer:
    /// See [`Consumer::poll`](crate::Consumer::poll).
    fn poll(&mut self) -> Result<Records>;
    /// See [`Consumer::poll_for`](crate::Consumer::poll_for).
    fn poll_for(&mut self, timeout: Duration) -> Result<Records>;
    /// See [`Consumer::rewind`](crate::Consumer::rewind).
    fn rewind(&mut self, partitions: &[(TopicPartition, RewindTo)]) -> Result<Vec<RewindStep>>;
}

forward! { Consumer:
    /// See [`Consumer::unsubscribe`](crate::Consumer::unsubscribe).
    fn unsubscribe(&self) -> Result<()>;
    /// See [`Consumer::list_offsets`](crate::Consumer::list_offsets).
    fn list_offsets(&self, partitions: &[(TopicPartition, OffsetSpec)]) -> Each<TopicPartition, Option<i64>>;
    /// See [`Consumer::committed`](crate::Consumer::committed).
    fn committed(&self, partitions: &[TopicPartition]) -> Result<Each<TopicPartition, Option<CommittedOffset>>>;
    /// See [`Consumer::commit`](crate::Consumer::commit).
    fn commit(&self) -> Result<()>;
    /// See [`Consumer::commit_offsets`](crate::Consumer::commit_offsets).
    fn commit_offsets(&self, offsets: &[(TopicPartition, CommittedOffset)]) -> Result<()>;
}
