//! The coordinator's shards: each a task that owns one partition of `__consumer_offsets`.

mod append;
mod connections;
mod history;
#[cfg(test)]
mod huge_groups;
mod load;
mod pacing;
mod shard;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kohort_coordinator::{Caller, Connection, Reply, Request, WorkDone, partition_of};
use kohort_wire::{ByteString, ErrorCode};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    connections::{Connections, GroupMember, Noted},
    pacing::Pacing,
};
use crate::{
    node::Node,
    topics::{OFFSETS_TOPIC, Partition, Topic},
};

/// How long a request that the coordinator answers at once may take. As Kafka's
/// `offsets.commit.timeout.ms`; then the client is told to try again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// All shards that have been needed so far.
#[derive(Debug)]
pub(crate) struct Groups {
    shards: Mutex<BTreeMap<i32, Handle>>,
    tasks: TaskTracker,
    history: history::History,
    stopping: CancellationToken,
    pacing: Pacing,
    connections: Connections,
}

/// Where a shard takes its requests.
#[derive(Debug, Clone)]
struct Handle {
    inputs: mpsc::UnboundedSender<Input>,
    is_loading: Arc<AtomicBool>,
}

/// What comes to a shard.
#[derive(Debug)]
enum Input {
    Request {
        caller: Caller,
        request: Box<Request>,
        reply: oneshot::Sender<Result<Reply, ErrorCode>>,
    },
    Done(WorkDone),
    Closed {
        connection: Connection,
        members: Vec<GroupMember>,
    },
}

/// Whether a reply may take as long as it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The reply waits for other members: joins and syncs.
    Parked,
    /// The reply comes at once, or something is wrong.
    Prompt,
}

impl Groups {
    pub(crate) fn new() -> Groups {
        Groups {
            shards: Mutex::new(BTreeMap::new()),
            tasks: TaskTracker::new(),
            history: history::History::new(),
            stopping: CancellationToken::new(),
            pacing: Pacing::new(),
            connections: Connections::default(),
        }
    }

    /// Asks the shard of a group.
    ///
    /// Once `__consumer_offsets` exists, the request is in the shard's queue when this has been
    /// polled once: requests of one connection reach it in their order.
    pub(crate) async fn ask(
        &self,
        node: &Arc<Node>,
        group_id: &str,
        caller: Caller,
        request: Request,
        patience: Patience,
    ) -> Result<Reply, ErrorCode> {
        self.connections.note(caller.connection, &request);
        let topic = offsets_topic(node).await?;
        let index = partition_of(group_id, topic.partitions.len() as i32);
        self.connections
            .note_join(caller.connection, &request, index);
        self.ask_shard(node, &topic, index, caller, request, patience)?
            .await
    }

    /// Asks several groups at once, each shard for those that are its own. `request` makes the
    /// request for some of them.
    pub(crate) async fn ask_many(
        &self,
        node: &Arc<Node>,
        group_ids: Vec<ByteString>,
        caller: &Caller,
        request: impl Fn(Vec<ByteString>) -> Request,
    ) -> Vec<(Vec<ByteString>, Result<Reply, ErrorCode>)> {
        let topic = match offsets_topic(node).await {
            Ok(topic) => topic,
            Err(code) => return vec![(group_ids, Err(code))],
        };
        let mut by_shard: BTreeMap<i32, Vec<ByteString>> = BTreeMap::new();
        for group_id in group_ids {
            let index = partition_of(&group_id, topic.partitions.len() as i32);
            by_shard.entry(index).or_default().push(group_id);
        }
        let asked: Vec<_> = by_shard
            .into_iter()
            .map(|(index, group_ids)| {
                let request = request(group_ids.clone());
                let caller = caller.clone();
                let reply = self.ask_shard(node, &topic, index, caller, request, Patience::Prompt);
                (group_ids, reply)
            })
            .collect();
        let mut replies = Vec::with_capacity(asked.len());
        for (group_ids, reply) in asked {
            let reply = match reply {
                Ok(reply) => reply.await,
                Err(code) => Err(code),
            };
            replies.push((group_ids, reply));
        }
        replies
    }

    /// Asks every shard that has ever been used.
    pub(crate) async fn ask_all(
        &self,
        node: &Arc<Node>,
        caller: &Caller,
        request: impl Fn() -> Request,
    ) -> Vec<Result<Reply, ErrorCode>> {
        let Some(topic) = node.snapshot().topic(OFFSETS_TOPIC).cloned() else {
            return Vec::new();
        };
        let asked: Vec<_> = topic
            .partitions
            .iter()
            .filter(|partition| partition.is_begun())
            .map(|partition| {
                let caller = caller.clone();
                let index = partition.index;
                self.ask_shard(node, &topic, index, caller, request(), Patience::Prompt)
            })
            .collect();
        let mut replies = Vec::with_capacity(asked.len());
        for reply in asked {
            replies.push(match reply {
                Ok(reply) => reply.await,
                Err(code) => Err(code),
            });
        }
        replies
    }

    /// Tells the shards which members have sent heartbeats over a connection that has closed. When
    /// the broker stops, all close: that says nothing of the members.
    pub(crate) fn connection_closed(&self, node: &Node, connection: Connection) {
        let noted = self.connections.closed(connection);
        if noted == Noted::default() || node.stopping.is_cancelled() {
            return;
        }
        let Some(topic) = node.snapshot().topic(OFFSETS_TOPIC).cloned() else {
            return;
        };
        let mut by_shard: BTreeMap<i32, Vec<GroupMember>> = BTreeMap::new();
        by_shard.extend(noted.shards.into_iter().map(|index| (index, Vec::new())));
        for member in noted.members {
            let index = partition_of(&member.0, topic.partitions.len() as i32);
            by_shard.entry(index).or_default().push(member);
        }
        let shards = self.shards.lock();
        for (index, members) in by_shard {
            if let Some(handle) = shards.get(&index) {
                let _ = handle.inputs.send(Input::Closed {
                    connection,
                    members,
                });
            }
        }
    }

    /// Lets all shards forget what was committed for topics that are gone.
    pub(crate) fn topics_deleted(&self, node: &Arc<Node>, topics: Vec<ByteString>) {
        if topics.is_empty() {
            return;
        }
        let node = Arc::clone(node);
        self.tasks.spawn(async move {
            let request = || Request::TopicsDeleted {
                topics: topics.clone(),
            };
            node.groups
                .ask_all(&node, &Caller::default(), request)
                .await;
        });
    }

    fn ask_shard(
        &self,
        node: &Arc<Node>,
        topic: &Topic,
        index: i32,
        caller: Caller,
        request: Request,
        patience: Patience,
    ) -> Result<impl Future<Output = Result<Reply, ErrorCode>> + use<>, ErrorCode> {
        let partition = topic.partition(index)?;
        let handle = self.shard(node, partition)?;
        let (reply, answer) = oneshot::channel();
        let input = Input::Request {
            caller,
            request: Box::new(request),
            reply,
        };
        handle
            .inputs
            .send(input)
            .map_err(|_| ErrorCode::NOT_COORDINATOR)?;
        Ok(wait(answer, patience, handle.is_loading))
    }

    /// The shard of a partition, started at its first use.
    fn shard(&self, node: &Arc<Node>, partition: &Arc<Partition>) -> Result<Handle, ErrorCode> {
        let mut shards = self.shards.lock();
        if self.stopping.is_cancelled() {
            return Err(ErrorCode::NOT_COORDINATOR);
        }
        if let Some(handle) = shards.get(&partition.index)
            && !handle.inputs.is_closed()
        {
            return Ok(handle.clone());
        }
        let (inputs, queue) = mpsc::unbounded_channel();
        let handle = Handle {
            inputs,
            is_loading: Arc::new(AtomicBool::new(true)),
        };
        shards.insert(partition.index, handle.clone());
        let task = shard::ShardTask::new(
            Arc::clone(node),
            Arc::clone(partition),
            queue,
            handle.clone(),
            self.stopping.clone(),
        );
        self.tasks.spawn(task.run());
        Ok(handle)
    }

    /// Lets every shard finish what it is at, and answer.
    pub(crate) async fn stop(&self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.history.close();
        self.history.written().await;
    }

    /// Stops without waiting.
    pub(crate) fn abandon(&self) {
        self.stopping.cancel();
        self.history.close();
    }
}

/// Waits for a shard's answer, with patience or not so much. What goes wrong meanwhile is an error
/// that clients try again after.
async fn wait(
    answer: oneshot::Receiver<Result<Reply, ErrorCode>>,
    patience: Patience,
    is_loading: Arc<AtomicBool>,
) -> Result<Reply, ErrorCode> {
    let answer = async { answer.await.unwrap_or(Err(ErrorCode::NOT_COORDINATOR)) };
    if patience == Patience::Parked {
        return answer.await;
    }
    match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answer) => answer,
        Err(_) if is_loading.load(Ordering::Relaxed) => {
            Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)
        }
        // KAFKA-17267: not REQUEST_TIMED_OUT, which consumers do not try again.
        Err(_) => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
    }
}

async fn offsets_topic(node: &Arc<Node>) -> Result<Arc<Topic>, ErrorCode> {
    let fixed = &node.fixed;
    node.catalog
        .offsets_topic(fixed.offsets_partitions, fixed.offsets_segment_bytes)
        .await
        .map_err(|_| ErrorCode::COORDINATOR_NOT_AVAILABLE)
}

#[cfg(test)]
mod tests {
    use kohort_log::LogError;
    use kohort_wire::messages::*;

    use super::*;
    use crate::{Broker, lines::Lines, settings::Values, topics::NewTopic};

    async fn commit(node: &Arc<Node>, offset: i64) -> ErrorCode {
        let partition = OffsetCommitRequestPartition {
            committed_offset: offset,
            ..OffsetCommitRequestPartition::default()
        };
        let topic = OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![partition],
            ..OffsetCommitRequestTopic::default()
        };
        let request = OffsetCommitRequest {
            group_id: "g".into(),
            topics: vec![topic],
            ..OffsetCommitRequest::default()
        };
        let request = Request::OffsetCommit {
            version: 9,
            request,
        };
        let asked = node
            .groups
            .ask(node, "g", Caller::default(), request, Patience::Prompt);
        match asked.await {
            Ok(Reply::OffsetCommit(response)) => response.topics[0].partitions[0].error_code,
            Ok(other) => panic!("{other:?}"),
            Err(code) => code,
        }
    }

    async fn committed(node: &Arc<Node>) -> i64 {
        let topic = OffsetFetchRequestTopics {
            name: "t".into(),
            partition_indexes: vec![0],
            ..OffsetFetchRequestTopics::default()
        };
        let request = Request::OffsetFetch {
            request: OffsetFetchRequestGroup {
                group_id: "g".into(),
                topics: Some(vec![topic]),
                ..OffsetFetchRequestGroup::default()
            },
            require_stable: false,
        };
        let asked = node
            .groups
            .ask(node, "g", Caller::default(), request, Patience::Prompt);
        match asked.await {
            Ok(Reply::OffsetFetch(response)) => response.topics[0].partitions[0].committed_offset,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_shard_whose_log_fails_says_so_and_is_loaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let broker = Broker::builder()
            .data_dir(folder.path())
            .start()
            .await
            .unwrap();
        let node = broker.node();
        let topic = NewTopic {
            name: "t".to_owned(),
            partitions: 1,
            configs: Values::new(),
        };
        node.catalog.create_topics(vec![topic], 10, false).await;
        assert_eq!(commit(node, 5).await, ErrorCode::NONE);

        let topic = node.snapshot().topic(OFFSETS_TOPIC).cloned().unwrap();
        let partition = topic.partition(partition_of("g", 50)).unwrap();
        partition.failed(&LogError::FlushFailed);
        // What could not be written is not acknowledged, and not remembered.
        assert!(commit(node, 6).await.is_retriable());
        let recovered = async {
            loop {
                match commit(node, 7).await {
                    ErrorCode::NONE => return,
                    code => assert!(code.is_retriable(), "{code}"),
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), recovered)
            .await
            .unwrap();
        assert_eq!(committed(node).await, 7);
        broker.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_shard_that_has_something_to_write_and_no_room_for_it_is_not_loaded_without_a_pause()
    {
        let (lines, mut log) = mpsc::unbounded_channel();
        let writer = move || Lines(lines.clone());
        let subscriber = tracing_subscriber::fmt().with_writer(writer).finish();
        let _logging = tracing::subscriber::set_default(subscriber);
        let folder = tempfile::tempdir().unwrap();
        // A tenth of a second after it is loaded it has offsets to delete. The date is virtual too.
        let from = tokio::time::Instant::now();
        let broker = Broker::builder()
            .wall_clock(move || 1_700_000_000_000 + from.elapsed().as_millis() as i64)
            .data_dir(folder.path())
            .set("offsets.retention.minutes", "1")
            .set("offsets.retention.check.interval.ms", "100");
        let broker = broker.start().await.unwrap();
        let node = broker.node();
        let topic = NewTopic {
            name: "t".to_owned(),
            partitions: 1,
            configs: Values::new(),
        };
        node.catalog.create_topics(vec![topic], 100, false).await;
        assert_eq!(commit(node, 5).await, ErrorCode::NONE);
        // From now on nothing fits.
        append::DISK_IS_FULL.set(true);
        let mut loaded = async || while !log.recv().await.unwrap().contains("loaded: 1 groups") {};
        loaded().await;
        let from = tokio::time::Instant::now();
        for _ in 0..10 {
            loaded().await;
        }
        assert!(
            from.elapsed() >= Duration::from_secs(4),
            "{:?}",
            from.elapsed()
        );
        broker.shutdown().await;
    }

    /// KAFKA-17267.
    #[tokio::test(start_paused = true)]
    async fn a_request_that_times_out_inside_gets_an_error_that_clients_try_again_after() {
        for is_loading in [false, true] {
            let (_shard, answer) = oneshot::channel();
            let is_loading = Arc::new(AtomicBool::new(is_loading));
            let code = wait(answer, Patience::Prompt, is_loading)
                .await
                .unwrap_err();
            assert!(code.is_retriable(), "{code}");
            assert_ne!(code, ErrorCode::REQUEST_TIMED_OUT);
        }
        // A shard that is gone.
        let (shard, answer) = oneshot::channel();
        drop(shard);
        let code = wait(answer, Patience::Parked, Arc::default())
            .await
            .unwrap_err();
        assert_eq!(code, ErrorCode::NOT_COORDINATOR);
    }
}
