//! The task of a shard: takes what has come in, lets the shard decide, makes it durable, answers.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use kohort_coordinator::{Config, Outbox, Record, Reply, Shard, Token};
use kohort_group::{history::What, text::printable_name};
use kohort_wire::ErrorCode;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info};

use super::{Handle, Input, append::append, load::load};
use crate::{node::Node, settings::coordinator_config, topics::Partition};

/// How many inputs are decided before their records are written.
const INPUTS_MAX: usize = 10_000;

/// A shard that could not write is loaded again at once, but no more often than this: it may have
/// something to write as soon as it is loaded, and the disk may be full for hours.
const WRITE_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// How long requests wait for a shard that is being loaded, before they are told to come again.
const LOAD_PATIENCE: Duration = Duration::from_secs(1);

/// How long a shard that could not be loaded is left alone.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// How long members come and go before the other shards are told.
const LOAD_INTERVAL: Duration = Duration::from_millis(500);

type Waiting = oneshot::Sender<Result<Reply, ErrorCode>>;

pub(super) struct ShardTask {
    node: Arc<Node>,
    partition: Arc<Partition>,
    inputs: mpsc::UnboundedReceiver<Input>,
    handle: Handle,
    stopping: CancellationToken,
    changes: watch::Receiver<i64>,
    /// Those whose replies the shard still owes.
    waiting: HashMap<Token, Waiting>,
    waiting_checked: usize,
    /// Replies to commits whose connections had closed.
    lost: Vec<Token>,
    next_token: u64,
    /// The version of the topics and settings that the shard has.
    topics_version: i64,
    /// When to tell the other shards how many heartbeats come to this one.
    load_due: Option<Instant>,
}

/// From when on, and how, requests are sent away while there is no shard.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    from: Instant,
    code: ErrorCode,
}

/// Why a shard stopped serving.
enum End {
    Stopped,
    /// Its records could not be written: what it knows is not what its log says.
    Lost,
}

impl ShardTask {
    pub(super) fn new(
        node: Arc<Node>,
        partition: Arc<Partition>,
        inputs: mpsc::UnboundedReceiver<Input>,
        handle: Handle,
        stopping: CancellationToken,
    ) -> ShardTask {
        let changes = node.catalog.changes();
        ShardTask {
            node,
            partition,
            inputs,
            handle,
            stopping,
            changes,
            waiting: HashMap::new(),
            waiting_checked: 0,
            lost: Vec::new(),
            next_token: 0,
            topics_version: 0,
            load_due: None,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.handle.is_loading.store(true, Ordering::Relaxed);
            let Some(shard) = self.load().await else {
                return;
            };
            self.handle.is_loading.store(false, Ordering::Relaxed);
            let served_from = Instant::now();
            match self.serve(shard).await {
                End::Stopped => return,
                // Decisions that were not written are not sent. Clients that wait retry.
                End::Lost => self.refuse_waiting(ErrorCode::COORDINATOR_NOT_AVAILABLE),
            }
            if served_from.elapsed() < WRITE_AGAIN_AFTER {
                let refusal = Refusal {
                    from: Instant::now(),
                    code: ErrorCode::COORDINATOR_NOT_AVAILABLE,
                };
                let pause = tokio::time::sleep(WRITE_AGAIN_AFTER);
                if self.meanwhile(pause, refusal).await.is_none() {
                    return;
                }
            }
        }
    }

    fn refuse_waiting(&mut self, code: ErrorCode) {
        for (_, waiting) in self.waiting.drain() {
            let _ = waiting.send(Err(code));
        }
    }

    /// The shard as its log has it; `None` when the broker stops.
    async fn load(&mut self) -> Option<Shard> {
        let mut refusal = Refusal {
            from: Instant::now() + LOAD_PATIENCE,
            code: ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        };
        loop {
            let partition = Arc::clone(&self.partition);
            let (config, topics) = (self.config(), self.node.snapshot());
            let topics = Arc::clone(&topics.coordinator);
            let started_at = Instant::now();
            let loading = tokio::task::spawn_blocking(move || load(&partition, config, topics));
            match self.meanwhile(loading, refusal).await? {
                Ok(Ok((shard, records))) => {
                    if records > 0 {
                        info!(
                            "{} loaded: {} groups from {records} records in {:?}",
                            self.partition,
                            shard.group_count(),
                            started_at.elapsed()
                        );
                    }
                    return Some(shard);
                }
                Ok(Err(error)) => {
                    if self.node.log_limits.groups.admit() {
                        error!(
                            "the groups of {} are not available: {error}",
                            self.partition
                        );
                    }
                }
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }
            refusal = Refusal {
                from: Instant::now(),
                code: ErrorCode::COORDINATOR_NOT_AVAILABLE,
            };
            let pause = tokio::time::sleep(RELOAD_INTERVAL);
            self.meanwhile(pause, refusal).await?;
        }
    }

    /// Waits for something while there is no shard, and from some time on sends requests away.
    async fn meanwhile<T>(&mut self, work: impl Future<Output = T>, refusal: Refusal) -> Option<T> {
        tokio::pin!(work);
        loop {
            let refuses = Instant::now() >= refusal.from;
            tokio::select! {
                done = &mut work => return Some(done),
                () = self.stopping.cancelled() => return None,
                () = tokio::time::sleep_until(refusal.from), if !refuses => {}
                input = self.inputs.recv(), if refuses => match input? {
                    Input::Request { reply, .. } => {
                        let _ = reply.send(Err(refusal.code));
                    }
                    Input::Done(_) | Input::Closed { .. } => {}
                },
            }
        }
    }

    fn config(&self) -> Arc<Config> {
        let snapshot = self.node.snapshot();
        Arc::new(coordinator_config(&snapshot.effective, &snapshot.groups))
    }

    async fn serve(&mut self, mut shard: Shard) -> End {
        let mut out = Outbox::default();
        let stopping = self.stopping.clone();
        self.changes.mark_changed();
        let now = self.now(&mut shard);
        shard.loaded(now, &mut out);
        let mut alarms_from = None;
        loop {
            if self.settle(&mut out).await.is_err() {
                return End::Lost;
            }
            for token in self.lost.drain(..) {
                shard.reply_lost(token);
            }
            self.report_load(&shard);
            shard.set_pace(self.node.groups.pacing.pace());
            let alarm = shard.next_alarm().map(|at| self.node.clock.instant(at));
            let alarm = alarm.map(|at| alarms_from.map_or(at, |from| at.max(from)));
            let alarm = alarm.into_iter().chain(self.load_due).min();
            tokio::select! {
                input = self.inputs.recv() => match input {
                    Some(input) => self.take(&mut shard, input, &mut out),
                    None => return End::Stopped,
                },
                () = sleep_until(alarm) => {}
                changed = self.changes.changed() => {
                    if changed.is_ok() {
                        self.take_news(&mut shard, &mut out);
                    }
                }
                () = stopping.cancelled() => {
                    self.take_queued(&mut shard, &mut out);
                    let _ = self.settle(&mut out).await;
                    self.refuse_waiting(ErrorCode::NOT_COORDINATOR);
                    return End::Stopped;
                }
            }
            self.take_queued(&mut shard, &mut out);
            let now = self.now(&mut shard);
            if shard.next_alarm().is_some_and(|at| at <= now) {
                // After a pause of the process heartbeats that came in time are yet to be read.
                alarms_from = self.node.pauses.grace();
                if alarms_from.is_none() {
                    shard.on_alarm(now, &mut out);
                }
            }
        }
    }

    /// Takes what has queued up: all of it is written together.
    fn take_queued(&mut self, shard: &mut Shard, out: &mut Outbox) {
        for _ in 0..INPUTS_MAX {
            match self.inputs.try_recv() {
                Ok(input) => self.take(shard, input, out),
                Err(_) => return,
            }
        }
    }

    /// The time of a step; the shard learns what date that is.
    fn now(&self, shard: &mut Shard) -> i64 {
        shard.set_date_offset(self.node.clock.date_offset_ms());
        self.node.clock.steady_ms()
    }

    fn take(&mut self, shard: &mut Shard, input: Input, out: &mut Outbox) {
        // The leader of a classic group assigns what it has read of topics: the shard must not know
        // less than any client when it takes a request.
        if self.node.snapshot().version() != self.topics_version {
            self.take_news(shard, out);
        }
        let now = self.now(shard);
        match input {
            // Whether anybody still waits for the reply does not matter: a member that leaves closes
            // its connection at once.
            Input::Request {
                caller,
                request,
                reply,
            } => {
                self.next_token += 1;
                let token = Token(self.next_token);
                self.waiting.insert(token, reply);
                shard.request(token, &caller, *request, now, out);
            }
            Input::Done(done) => shard.done(done, now, out),
            Input::Closed {
                connection,
                members,
            } => shard.connection_closed(connection, &members, now, out),
        }
    }

    fn take_news(&mut self, shard: &mut Shard, out: &mut Outbox) {
        let snapshot = self.node.snapshot();
        let config = coordinator_config(&snapshot.effective, &snapshot.groups);
        shard.config_changed(Arc::new(config));
        self.topics_version = snapshot.version();
        let topics = Arc::clone(&snapshot.coordinator);
        let now = self.now(shard);
        shard.topics_changed(topics, now, out);
        self.load_due = Some(Instant::now());
    }

    /// Tells how many heartbeats come to this shard, now and then after members have come or gone.
    fn report_load(&mut self, shard: &Shard) {
        if self.load_due.is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.load_due = None;
        let snapshot = self.node.snapshot();
        self.node.groups.pacing.report(
            self.partition.index,
            shard.load_of_heartbeats(),
            snapshot.live.heartbeats_per_second,
        );
    }

    /// Makes durable what was decided, then lets everybody know.
    async fn settle(&mut self, out: &mut Outbox) -> Result<(), ()> {
        if !out.records.is_empty() {
            if self.load_due.is_none() && out.records.iter().any(changes_load) {
                self.load_due = Some(Instant::now() + LOAD_INTERVAL);
            }
            if let Err(error) = self.write(out).await {
                if self.node.log_limits.groups.admit() {
                    error!("{}: {error}; its groups are loaded again", self.partition);
                }
                *out = Outbox::default();
                return Err(());
            }
            out.records.clear();
            // One huge batch must not hold its memory forever.
            out.records.shrink_to(1024);
        }
        self.tell(out);
        for (token, reply) in out.replies.drain(..) {
            if let Some(waiting) = self.waiting.remove(&token) {
                // Other replies don't matter.
                if let Err(Ok(Reply::OffsetCommit(_))) = waiting.send(Ok(reply)) {
                    self.lost.push(token);
                }
            }
        }
        for work in out.work.drain(..) {
            let inputs = self.handle.inputs.clone();
            tokio::task::spawn_blocking(move || {
                let _ = inputs.send(Input::Done(work.run()));
            });
        }
        self.forget_gone();
        Ok(())
    }

    /// Says what has happened, now that it is durable.
    fn tell(&self, out: &mut Outbox) {
        if out.events.is_empty() {
            return;
        }
        let keeps_history = self.node.live().keeps_group_events;
        for event in out.events.drain(..) {
            // A line of the log is one, whatever a client calls its group.
            let group_id = printable_name(&event.group_id);
            match event.what {
                // There may be thousands after a start, and as many as a client makes up groups.
                What::Loaded { .. } => debug!("group {group_id}: {}", event.what),
                _ if !self.node.log_limits.groups.admit() => {
                    debug!("group {group_id}: {}", event.what);
                }
                _ => info!("group {group_id}: {}", event.what),
            }
            if keeps_history {
                self.node.groups.history.tell(&self.node, event);
            }
        }
    }

    async fn write(&self, out: &Outbox) -> Result<(), super::append::AppendError> {
        let (log, end) = append(&self.partition, &out.records, self.node.clock.date_ms())?;
        debug!(
            "{}: {} records up to {end}",
            self.partition,
            out.records.len()
        );
        Ok(self.partition.flushed(&log, end).await?)
    }

    /// Lets go of those who have hung up while they were parked, now and then.
    fn forget_gone(&mut self) {
        if self.waiting.len() > 2 * self.waiting_checked.max(512) {
            self.waiting.retain(|_, waiting| !waiting.is_closed());
            self.waiting_checked = self.waiting.len();
        }
        self.waiting_checked = self.waiting_checked.min(self.waiting.len().max(512));
    }
}

/// Whether a record may mean that a member comes or goes.
fn changes_load(record: &Record) -> bool {
    matches!(record, Record::ConsumerMemberMetadata(..))
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
