//! The topic `__kohort_group_events`: what happened to groups, for any client to read.
//!
//! Shards hand their events over once what they tell of is durable, and never wait: events go through
//! a bounded queue to a task of their own, which makes JSON of them and appends it. If that is not
//! possible, groups go on, and a line in the log says that their history has a hole.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kohort_group::history::Event;
use kohort_log::Origin;
use kohort_wire::records::{BatchBuilder, Compression};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::append::{AppendError, BATCH_BYTES, together};
use crate::{node::Node, topics::ChangeError};

/// How many events wait to be written. Beyond it they are lost to the topic, not to the log lines.
const QUEUE_MAX: usize = 10_000;

/// How many events are written as one batch.
const BATCH_MAX: usize = 500;

/// How long to wait after a failure before the next attempt.
const PAUSE: Duration = Duration::from_secs(1);

/// Where shards leave their events.
#[derive(Debug)]
pub(super) struct History {
    queue: Mutex<Queue>,
    lost: Arc<AtomicU64>,
    tasks: TaskTracker,
}

#[derive(Debug)]
enum Queue {
    /// Nothing has happened yet.
    Unused,
    Open(mpsc::Sender<Event>),
    Closed,
}

/// Why events were not written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error("{}", .0.message)]
    Topic(ChangeError),
    #[error("{0}")]
    Append(#[from] AppendError),
}

impl History {
    pub(super) fn new() -> History {
        History {
            queue: Mutex::new(Queue::Unused),
            lost: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Takes an event, unless too many wait already.
    pub(super) fn tell(&self, node: &Arc<Node>, event: Event) {
        let mut queue = self.queue.lock();
        if let Queue::Unused = *queue {
            let (sender, receiver) = mpsc::channel(QUEUE_MAX);
            *queue = Queue::Open(sender);
            let writer = Writer {
                node: Arc::clone(node),
                lost: Arc::clone(&self.lost),
            };
            self.tasks.spawn(writer.run(receiver));
        }
        if let Queue::Open(sender) = &*queue
            && sender.try_send(event).is_err()
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes no more events: what waits is written.
    pub(super) fn close(&self) {
        *self.queue.lock() = Queue::Closed;
        self.tasks.close();
    }

    /// Waits until everything is written.
    pub(super) async fn written(&self) {
        self.tasks.wait().await;
    }
}

struct Writer {
    node: Arc<Node>,
    /// Events that found the queue full.
    lost: Arc<AtomicU64>,
}

impl Writer {
    async fn run(self, mut queue: mpsc::Receiver<Event>) {
        let mut events = Vec::new();
        while queue.recv_many(&mut events, BATCH_MAX).await > 0 {
            let written = self.write(&events).await;
            let lost = self.lost.swap(0, Ordering::Relaxed);
            match written {
                Ok(()) if lost == 0 => {}
                // Counted on, and said with the next line that may be logged.
                Ok(()) if !self.node.log_limits.groups.admit() => {
                    self.lost.fetch_add(lost, Ordering::Relaxed);
                }
                Ok(()) => warn!(
                    "{lost} events of groups are missing from their history: more came than could \
                     be written"
                ),
                Err(error) => {
                    let count = events.len() as u64 + lost;
                    warn!("{count} events of groups are missing from their history: {error}");
                    let pause = tokio::time::sleep(PAUSE);
                    tokio::select! {
                        () = pause => {}
                        () = self.node.stopping.cancelled() => {}
                    }
                }
            }
            events.clear();
        }
    }

    async fn write(&self, events: &[Event]) -> Result<(), WriteError> {
        let node = &self.node;
        let topic = node.catalog.events_topic(node.fixed.events_retention_ms);
        let topic = topic.await.map_err(WriteError::Topic)?;
        let now_ms = node.clock.date_ms();
        let partition = topic.partition(0).map_err(|code| {
            WriteError::Topic(ChangeError::new(code, "its topic has no partition"))
        })?;
        let log = partition.log().map_err(AppendError::from)?;
        let mut builder = BatchBuilder::new(Compression::None, None);
        let mut batches = Vec::new();
        for event in events {
            if builder.size() >= BATCH_BYTES {
                batches.push(builder.finish());
            }
            let value = event.to_json().to_string();
            let key = event.group_id.as_bytes();
            builder
                .append(event.at, Some(key), Some(value.as_bytes()), [])
                .map_err(AppendError::from)?;
        }
        batches.push(builder.finish());
        for batches in together(batches, log.config().segment_bytes as usize) {
            let appended = log
                .append(&batches, Origin::Coordinator, crate::LEADER_EPOCH, now_ms)
                .inspect_err(|error| partition.failed(error))
                .map_err(AppendError::from)?;
            partition.appended(&log, appended.last_offset + 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kohort_coordinator::{Caller, Reply, Request};
    use kohort_log::LogError;
    use kohort_wire::{ErrorCode, messages::*};

    use super::*;
    use crate::{
        Broker,
        groups::Patience,
        topics::{EVENTS_TOPIC, Partition},
    };

    async fn join(node: &Arc<Node>, group_id: &str) -> ErrorCode {
        let request = JoinGroupRequest {
            group_id: group_id.into(),
            session_timeout_ms: 30_000,
            rebalance_timeout_ms: 30_000,
            protocol_type: "consumer".into(),
            protocols: vec![JoinGroupProtocol {
                name: "range".into(),
                ..JoinGroupProtocol::default()
            }],
            ..JoinGroupRequest::default()
        };
        // A version that does not have members come back with their ids.
        let request = Request::JoinGroup {
            version: 3,
            request,
        };
        let caller = Caller::default();
        let asked = node
            .groups
            .ask(node, group_id, caller, request, Patience::Parked);
        match asked.await {
            Ok(Reply::JoinGroup(response)) => response.error_code,
            other => panic!("{other:?}"),
        }
    }

    fn partition(node: &Node) -> Option<Arc<Partition>> {
        let topic = node.snapshot().topic(EVENTS_TOPIC).cloned()?;
        topic.partition(0).ok().cloned()
    }

    fn count(node: &Node) -> i64 {
        let log = partition(node).and_then(|partition| partition.log().ok());
        log.map_or(0, |log| log.end_offset())
    }

    async fn until(condition: impl AsyncFn() -> bool) {
        let wait = async {
            while !condition().await {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        let limit = Duration::from_secs(120);
        tokio::time::timeout(limit, wait).await.expect("in time");
    }

    #[tokio::test(start_paused = true)]
    async fn groups_go_on_when_their_history_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let broker = Broker::builder()
            .data_dir(folder.path())
            .start()
            .await
            .unwrap();
        let node = broker.node();
        assert_eq!(join(node, "a").await, ErrorCode::NONE);
        until(async || count(node) > 0).await;

        let written = count(node);
        partition(node).unwrap().failed(&LogError::FlushFailed);
        assert_eq!(join(node, "b").await, ErrorCode::NONE);
        // Once the topic is well again, history goes on.
        until(async || {
            assert_eq!(join(node, "c").await, ErrorCode::NONE);
            count(node) > written
        })
        .await;
        broker.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_topic_of_events_that_was_deleted_comes_back_with_the_next_event() {
        let broker = Broker::builder().start().await.unwrap();
        let node = broker.node();
        assert_eq!(join(node, "a").await, ErrorCode::NONE);
        until(async || count(node) > 0).await;
        let id = partition(node).unwrap().topic_id;
        node.catalog.delete_topics(&[id]).await.unwrap();
        assert_eq!(join(node, "b").await, ErrorCode::NONE);
        until(async || count(node) > 0).await;
        assert_ne!(partition(node).unwrap().topic_id, id);
        broker.shutdown().await;
    }
}
