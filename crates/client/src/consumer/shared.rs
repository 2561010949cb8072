//! What the application's handles and the tasks of a consumer share: the reader, and the shell's own
//! state.

use std::{collections::VecDeque, time::Duration};

use kohort_member::{
    BufferPool, Millis,
    reader::{
        Chunks, Decoding, Delivered, Delivery, HandleId, Reader, ReaderConfig, ReaderError, Target,
    },
};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{ConsumerConfig, records::Records};
use crate::{
    ByteString, Error, IsolationLevel, OffsetSpec, Result, Subject, TopicPartition,
    measure::Consumed, rpc::Cluster,
};

/// Limits of the buffer pool: how many decompression buffers to keep, and the largest worth keeping.
const BATCHES_KEPT_MAX: usize = 16;
const BATCH_BYTES_KEPT_MAX: usize = 512 << 10;

/// What the application's handles and the consumer's tasks share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: ConsumerConfig,
    pub(super) cluster: Cluster,
    decoding: Decoding,
    started: Instant,
    state: Mutex<State>,
    /// Notified when there may be records or an error for the application.
    pub(super) ready: Notify,
    /// Notified when there may be something to fetch or to look up.
    pub(super) work: Notify,
    /// Notified when a handle has finished the records that it held, or was dropped.
    pub(super) released: Notify,
    /// Notified when the application polls again after it exceeded `max.poll.interval.ms`.
    pub(super) away_no_more: Notify,
    pub(super) closed: CancellationToken,
    /// Held by the handle that polls: one takes records at a time.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// In which the consumer's tasks run.
    pub(super) span: tracing::Span,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) reader: Reader,
    errors: VecDeque<Error>,
    measures: FxHashMap<TopicPartition, Consumed>,
    /// How many handles wait for records.
    pub(super) polling: usize,
    /// When a handle last stopped waiting for records.
    pub(super) polled: Instant,
    /// Set once no handle has polled for longer than `max.poll.interval.ms`.
    pub(super) away: bool,
    /// Why the last automatic commit of revoked partitions failed.
    pub(super) commit_failure: Option<Error>,
    /// Why the member gave up; until the application subscribes again.
    pub(super) broken: Option<Error>,
    /// Why a task of the consumer ended; for good.
    pub(super) stopped: Option<Error>,
    /// When a final error was last returned.
    final_error_at: Option<Instant>,
    /// When a refusal that may pass was last reported.
    refused_at: Option<Instant>,
}

/// An error after which nothing more can come.
pub(super) enum FinalError {
    /// To be returned now.
    Now(Error),
    /// It has been returned: again at this time.
    At(Instant),
}

/// How long a poll waits before it returns a final error again.
const FINAL_ERROR_INTERVAL: Duration = Duration::from_secs(1);

/// How often a refusal that may pass is reported while it lasts.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(60);

impl Shared {
    pub(super) fn new(config: ConsumerConfig, cluster: Cluster) -> Shared {
        let reader = Reader::new(reader_config(&config));
        Shared {
            decoding: Decoding {
                check_crcs: config.check_crcs,
                decompressed_bytes_max: config.decompressed_bytes_max,
                buffers: BufferPool::new(BATCHES_KEPT_MAX, BATCH_BYTES_KEPT_MAX),
            },
            cluster,
            started: Instant::now(),
            state: Mutex::new(State {
                reader,
                errors: VecDeque::new(),
                measures: FxHashMap::default(),
                polling: 0,
                polled: Instant::now(),
                away: false,
                commit_failure: None,
                broken: None,
                stopped: None,
                final_error_at: None,
                refused_at: None,
            }),
            ready: Notify::new(),
            work: Notify::new(),
            released: Notify::new(),
            away_no_more: Notify::new(),
            closed: CancellationToken::new(),
            turn: tokio::sync::Mutex::default(),
            span: tracing::info_span!(
                parent: None,
                "consumer",
                client_id = config.client.client_id,
                group_id = config.group_id.as_deref()
            ),
            config,
        }
    }

    /// The time on the reader's clock.
    pub(super) fn now(&self) -> Millis {
        self.started.elapsed().as_millis() as Millis
    }

    /// The instant of a time on the reader's clock.
    pub(super) fn at(&self, time: Millis) -> Instant {
        self.started + Duration::from_millis(time.max(0) as u64)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Whether what is finished is committed without being asked for.
    pub(super) fn commits_automatically(&self) -> bool {
        self.config.auto_commit && self.config.group_id.is_some()
    }

    /// The offsets of these partitions cannot be committed any more.
    pub(super) fn not_committed(&self, mut partitions: Vec<TopicPartition>) -> Error {
        partitions.sort();
        partitions.dedup();
        Error::NotCommitted {
            group: self.config.group_id.clone().unwrap_or_default(),
            partitions,
        }
    }

    /// Tells the application of an error at its next poll.
    pub(super) fn report(&self, error: Error) {
        self.lock().report(error);
        self.ready.notify_waiters();
    }

    /// Reports a failure that is a refusal, and not an outage: now and then while it lasts.
    pub(super) fn report_refusal(&self, error: &Error) {
        let refusal = error.refusal().or((!error.is_retriable()).then_some(error));
        let Some(refusal) = refusal else { return };
        let mut state = self.lock();
        let now = Instant::now();
        if state
            .refused_at
            .is_none_or(|at| at + REFUSAL_INTERVAL <= now)
        {
            state.refused_at = Some(now);
            state.report(refusal.clone());
            drop(state);
            self.ready.notify_waiters();
        }
    }

    /// A request was answered: the next refusal is another one.
    pub(super) fn answered(&self) {
        self.lock().refused_at = None;
    }

    /// A task of the consumer has ended: nothing works any more.
    pub(super) fn stop(&self, error: Error) {
        self.lock().stopped.get_or_insert(error);
        self.ready.notify_waiters();
        self.released.notify_waiters();
    }

    /// Delivers at most `most` fetched records to `handle`. `None` if there are none.
    ///
    /// Batches are decoded outside of the lock. Only one call at a time: see [`Shared::turn`].
    pub(super) fn take(&self, most: usize, handle: HandleId) -> Result<Option<Records>> {
        let mut chunks = Chunks::default();
        while chunks.count < most {
            let mut state = self.lock();
            if chunks.count == 0
                && let Some(error) = state.next_error()
            {
                return Err(error);
            }
            let Some(mut delivery) = state.reader.begin_delivery() else {
                break;
            };
            drop(state);
            delivery.decode(&mut chunks, most, &self.decoding);
            let delivered = self.lock().end_delivery(delivery, &mut chunks, handle);
            if delivered.is_some_and(|delivered| delivered.has_room) {
                self.work.notify_one();
            }
        }
        Ok((chunks.count > 0).then_some(Records(chunks)))
    }

    /// A handle has finished the records that it holds.
    pub(super) fn finish(&self, handle: HandleId) {
        if self.lock().reader.finish(handle) {
            self.released.notify_waiters();
        }
    }
}

impl State {
    /// The error after which nothing more can come, if there is one.
    pub(super) fn final_error(&mut self, now: Instant) -> Option<FinalError> {
        let idle = self.reader.assigned().next().is_none() && !self.reader.is_subscribed();
        let error = match self.stopped.as_ref().or(self.broken.as_ref()) {
            Some(error) => error.clone(),
            None if idle => {
                let problem = "nothing to read: subscribe or assign partitions first";
                Error::State(problem.to_owned())
            }
            None => return None,
        };
        let again = self.final_error_at.map(|at| at + FINAL_ERROR_INTERVAL);
        Some(match again.filter(|again| *again > now) {
            Some(again) => FinalError::At(again),
            None => {
                self.final_error_at = Some(now);
                FinalError::Now(error)
            }
        })
    }

    pub(super) fn report(&mut self, error: Error) {
        // An application that does not poll for a long time does not need all of them.
        if self.errors.len() < 100 {
            self.errors.push_back(error);
        }
    }

    fn next_error(&mut self) -> Option<Error> {
        let own = self.errors.pop_front();
        own.or_else(|| self.reader.next_error().map(Error::from))
    }

    fn end_delivery(
        &mut self,
        delivery: Delivery,
        chunks: &mut Chunks,
        handle: HandleId,
    ) -> Option<Delivered> {
        let delivered = self.reader.end_delivery(delivery, chunks, handle)?;
        if let Some(measures) = self.measures.get(&delivered.partition)
            && delivered.count > 0
        {
            measures.polled(delivered.count);
            measures.lag(delivered.lag);
        }
        Some(delivered)
    }

    /// Counts what was fetched of a partition.
    pub(super) fn note_fetched(
        &mut self,
        group_id: &ByteString,
        name: TopicPartition,
        bytes: usize,
    ) {
        let lag = self.reader.lag(&name).flatten();
        let measures = self.measures.entry(name);
        let measures = measures.or_insert_with_key(|name| Consumed::new(group_id, name));
        measures.fetched(bytes);
        measures.lag(lag);
    }

    /// Removes partitions. With `commit_later`, what is finished of them is committed with the next
    /// automatic commit.
    pub(super) fn unassign(&mut self, names: &[TopicPartition], commit_later: bool) {
        for name in names {
            self.reader.unassign(name, commit_later);
            self.measures.remove(name);
        }
    }
}

fn reader_config(config: &ConsumerConfig) -> ReaderConfig {
    let backoff = config.client.retry_backoff;
    ReaderConfig {
        has_group: config.group_id.is_some(),
        committed_only: config.isolation_level == IsolationLevel::ReadCommitted,
        offset_reset: config.offset_reset,
        rack: config.rack.clone().unwrap_or_default(),
        fetch_bytes_min: config.fetch_bytes_min,
        fetch_wait_max: config.fetch_wait_max,
        fetch_bytes_max: config.fetch_bytes_max,
        partition_fetch_bytes_max: config.partition_fetch_bytes_max,
        prefetch_bytes_max: config.prefetch_bytes_max,
        metadata_max_age: config.client.metadata_max_age,
        backoff: Box::new(move |failures| backoff.after(failures)),
    }
}

/// The offset to ask for.
pub(super) fn offset_spec(target: Target) -> OffsetSpec {
    match target {
        Target::Earliest => OffsetSpec::Earliest,
        Target::Latest => OffsetSpec::Latest,
        Target::Timestamp(timestamp) => OffsetSpec::Timestamp(timestamp),
        Target::MaxAge(age) => {
            let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            let time = crate::time::now_ms().saturating_sub(age);
            OffsetSpec::Timestamp(time.max(0))
        }
    }
}

impl From<ReaderError> for Error {
    fn from(error: ReaderError) -> Error {
        match error {
            ReaderError::Refused {
                api,
                partition,
                code,
                message,
            } => Error::Kafka {
                api,
                subject: Subject::Partition(partition),
                code,
                message: message.map(Into::into),
            },
            ReaderError::NothingCommitted(name) => {
                let problem =
                    format!("nothing was committed for {name}, and nothing says where to begin");
                Error::config("auto.offset.reset", problem)
            }
            ReaderError::Malformed {
                partition,
                offset,
                problem,
            } => Error::Records {
                partition,
                offset,
                problem,
            },
        }
    }
}
