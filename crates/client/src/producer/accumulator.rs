//! Where records wait, batch by batch, until they are sent.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use kohort_member::BufferPool;
use kohort_wire::records::{BatchBuilder, BuildError};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::{
    sync::{Notify, Semaphore, SemaphorePermit},
    time::Instant,
};

use super::{
    Delivery, ProducerConfig, ProducerRecord,
    batch::Batch,
    delivery::{Outcome, Written},
    queue::{Open, Queue},
};
use crate::{ByteString, Error, Result, TopicPartition, measure::Produced, rpc::TopicMetadata};

/// How many builders are kept for reuse.
const BUILDERS_KEPT: usize = 64;

/// Of how many batches the memory is kept for reuse.
const BATCHES_KEPT_MAX: usize = 256;

/// Where records wait.
#[derive(Debug)]
pub(super) struct Accumulator {
    pub(super) config: ProducerConfig,
    state: Mutex<State>,
    pub(super) batches: Arc<BufferPool>,
    /// There is something to send.
    pub(super) work: Notify,
    /// What is left of `buffer.memory`, in bytes. Those who wait for it get it in the order in which
    /// they came: a large record isn't passed by small ones.
    memory: Semaphore,
    /// How many wait for memory.
    waiting: AtomicUsize,
    /// A batch is done with.
    done: Notify,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) topics: FxHashMap<ByteString, Topic>,
    /// The partitions that may have something to send.
    pub(super) listed: Vec<TopicPartition>,
    /// The batches that are not done with, and in how many parts they are.
    unfinished: BTreeMap<u64, u32>,
    next_number: u64,
    // Boxed, for they are large, and move from here to batches and back.
    #[allow(clippy::vec_box)]
    builders: Vec<Box<BatchBuilder>>,
    /// Batches up to this number do not wait for more records.
    pub(super) flush_to: u64,
    pub(super) closed: bool,
    /// Why nothing can be sent any more.
    broken: Option<Error>,
}

#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: ByteString,
    /// By number; those that are not there any more too, for what is still to be sent to them.
    pub(super) partitions: Vec<Queue>,
    /// How many there are.
    count: usize,
    /// A record has been sent to it since it was last asked what there is of it.
    pub(super) used: bool,
    /// Where records go that may go anywhere, and how many bytes have gone there.
    sticky: Option<usize>,
    sticky_bytes: usize,
    measures: Produced,
}

/// What came of the attempt to append a record.
pub(super) enum Appended {
    Done(Delivery),
    /// There is no memory.
    Full,
    /// Nothing is known of the topic.
    UnknownTopic,
}

impl Accumulator {
    pub(super) fn new(config: ProducerConfig) -> Accumulator {
        // No more than a fourth of what may be waiting.
        let kept = config.buffer_bytes_max / 4 / config.batch_bytes.max(1);
        Accumulator {
            batches: BufferPool::new(kept.clamp(1, BATCHES_KEPT_MAX), config.batch_bytes),
            memory: Semaphore::new(config.buffer_bytes_max.min(Semaphore::MAX_PERMITS)),
            config,
            state: Mutex::default(),
            work: Notify::new(),
            waiting: AtomicUsize::new(0),
            done: Notify::new(),
        }
    }

    pub(super) fn lock(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waits for the memory of a record, with which it can then be appended. Returns `None` if the
    /// producer has been closed.
    pub(super) async fn reserve(&self, record: &ProducerRecord<'_>) -> Option<SemaphorePermit<'_>> {
        struct Waiting<'a>(&'a AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        // Batches that hold memory no longer wait for more records.
        self.work.notify_one();
        self.memory.acquire_many(self.cost(record)).await.ok()
    }

    /// Whether a record waits for memory.
    pub(super) fn is_exhausted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// How much memory a record takes. One that is larger than all there is takes all there is.
    fn cost(&self, record: &ProducerRecord<'_>) -> u32 {
        let headers = record.headers.iter();
        let size = BatchBuilder::record_size_max(record.key, record.value, headers.clone());
        let most = self.config.buffer_bytes_max.min(Semaphore::MAX_PERMITS);
        u32::try_from(size.min(most)).unwrap_or(u32::MAX)
    }

    /// Takes over how many partitions a topic has.
    pub(super) fn learn(&self, topic: &TopicMetadata) {
        let mut state = self.state.lock();
        let entry = state.topics.entry(topic.name.clone());
        let known = entry.or_insert_with(|| Topic {
            name: topic.name.clone(),
            partitions: Vec::new(),
            count: 0,
            used: false,
            sticky: None,
            sticky_bytes: 0,
            measures: Produced::new(&topic.name),
        });
        let count = topic.partitions.len();
        if known.count != count {
            known.count = count;
            let queues = count.max(known.partitions.len());
            known.partitions.resize_with(queues, Queue::default);
            // So that a new partition gets its share soon, and one that is gone gets nothing.
            known.sticky = None;
        }
    }

    /// Adds a record to a batch, with the memory that was reserved for it, or what there is.
    pub(super) fn append(
        &self,
        record: &ProducerRecord<'_>,
        timestamp: i64,
        reserved: Option<SemaphorePermit<'_>>,
    ) -> Result<Appended> {
        let headers = record.headers.iter();
        let size = BatchBuilder::record_size_max(record.key, record.value, headers.clone());
        if size > self.config.request_bytes_max {
            let problem = format!(
                "a record of {size} bytes to topic {} is longer than the {} that are allowed",
                record.topic, self.config.request_bytes_max
            );
            return Err(Error::config("max.request.size", problem));
        }
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if state.closed {
            return Err(state.broken.clone().unwrap_or(Error::Closed));
        }
        let Some(topic) = state.topics.get_mut(record.topic) else {
            return Ok(Appended::UnknownTopic);
        };
        let count = topic.count;
        if count == 0 {
            return Ok(Appended::UnknownTopic);
        }
        let cost = self.cost(record);
        let memory = match reserved.map_or_else(|| self.memory.try_acquire_many(cost), Ok) {
            Ok(memory) => memory,
            Err(_) => return Ok(Appended::Full),
        };
        topic.used = true;
        let chosen = record.partition.or_else(|| {
            let partitioner = &self.config.partitioner;
            partitioner.partition(record.topic, record.key, record.value, count as i32)
        });
        let mut wake = false;
        let index = match chosen {
            Some(partition) => usize::try_from(partition)
                .ok()
                .filter(|index| *index < count)
                .ok_or_else(|| {
                    let partition = TopicPartition::new(record.topic, partition);
                    Error::State(format!("{partition} does not exist: {count} partitions do"))
                })?,
            None => {
                let index = *topic.sticky.get_or_insert_with(|| fastrand::usize(..count));
                let full = |open: &Open| open.builder.size() + size > self.config.batch_bytes;
                let done = match &topic.partitions[index].open {
                    Some(open) => full(open),
                    // Where batches are sent before they are full (KIP-794).
                    None => topic.sticky_bytes >= self.config.batch_bytes,
                };
                let index = if done {
                    topic.partitions[index].seal();
                    wake = true;
                    topic.sticky_bytes = 0;
                    // Another one, if there is one.
                    (index + 1 + fastrand::usize(..(count - 1).max(1))) % count
                } else {
                    index
                };
                topic.sticky = Some(index);
                topic.sticky_bytes += size;
                index
            }
        };
        let queue = &mut topic.partitions[index];
        let full = |open: &Open| {
            !open.builder.is_empty() && open.builder.size() + size > self.config.batch_bytes
        };
        if queue.open.as_ref().is_some_and(full) {
            queue.seal();
            wake = true;
        }
        let open = match &mut queue.open {
            Some(open) => open,
            none => {
                wake = true;
                let number = state.next_number;
                state.next_number += 1;
                state.unfinished.insert(number, 1);
                let partition = TopicPartition::new(topic.name.clone(), index as i32);
                if !std::mem::replace(&mut queue.listed, true) {
                    state.listed.push(partition.clone());
                }
                none.insert(Open {
                    number,
                    outcome: Arc::new(Outcome::new(partition)),
                    builder: state.builders.pop().unwrap_or_else(|| {
                        let config = &self.config;
                        let level = config.compression_level;
                        Box::new(BatchBuilder::new(config.compression, level))
                    }),
                    memory: 0,
                    created: Instant::now(),
                })
            }
        };
        let at = open.builder.count() as u32;
        open.builder
            .append(timestamp, record.key, record.value, headers)
            .map_err(|error: BuildError| Error::State(error.to_string()))?;
        open.memory += memory.num_permits();
        memory.forget();
        let delivery = Delivery::new(open.outcome.clone(), at, timestamp);
        drop(guard);
        if wake {
            self.work.notify_one();
        }
        Ok(Appended::Done(delivery))
    }

    /// A batch has been written, or cannot be.
    pub(super) fn finish(&self, batch: &Batch, result: Result<Written>) {
        let partition = &batch.outcome.partition;
        match &result {
            Ok(written) => tracing::trace!(%partition, records = batch.count,
                offset = written.base_offset, "a batch is written"),
            Err(error) => tracing::debug!(%partition, records = batch.count, %error,
                "a batch cannot be written"),
        }
        let state = self.state.lock();
        if let Some(topic) = state.topics.get(&partition.topic) {
            let (count, size) = (batch.count, batch.size());
            topic
                .measures
                .batch(count, size, result.is_ok(), batch.created);
        }
        drop(state);
        batch.outcome.complete(result);
        let mut state = self.state.lock();
        let number = batch.place.number;
        match state.unfinished.get_mut(&number) {
            Some(parts) if *parts > 1 => *parts -= 1,
            _ => {
                state.unfinished.remove(&number);
            }
        }
        drop(state);
        self.memory.add_permits(batch.memory);
        self.done.notify_waiters();
    }

    /// The two halves of a batch; `None` if it cannot be split.
    pub(super) fn split(&self, batch: &Batch) -> Option<[Batch; 2]> {
        let halves = batch.split(self.config.compression_level)?;
        let mut state = self.state.lock();
        *state.unfinished.entry(batch.place.number).or_insert(1) += 1;
        Some(halves)
    }

    /// Keeps a builder for the next batch.
    pub(super) fn reuse(&self, builder: Box<BatchBuilder>) {
        let mut state = self.state.lock();
        if state.builders.len() < BUILDERS_KEPT {
            state.builders.push(builder);
        }
    }

    /// Returns when everything appended so far is done with.
    pub(super) async fn flushed(&self) {
        let last = {
            let mut state = self.state.lock();
            let last = state.next_number;
            state.flush_to = state.flush_to.max(last);
            last
        };
        self.work.notify_one();
        loop {
            let done = self.done.notified();
            let mut done = std::pin::pin!(done);
            done.as_mut().enable();
            let first = self.state.lock().unfinished.keys().next().copied();
            if first.is_none_or(|first| first >= last) {
                return;
            }
            done.await;
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        let state = self.state.lock();
        state.closed && state.unfinished.is_empty()
    }

    /// Takes no more records; what is there does not wait for more.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.flush_to = u64::MAX;
        drop(state);
        self.work.notify_one();
        self.memory.close();
    }

    /// Takes out all batches that wait to be sent.
    pub(super) fn take_waiting(&self) -> Vec<Batch> {
        let mut batches = Vec::new();
        let mut state = self.state.lock();
        let topics = state.topics.values_mut();
        for queue in topics.flat_map(|topic| &mut topic.partitions) {
            queue.seal();
            batches.extend(queue.again.drain(..));
            batches.extend(queue.sealed.drain(..));
        }
        batches
    }

    /// The sender has gone, with the batches that were under way: every record fails.
    pub(super) fn stop(&self, error: &Error) {
        let mut outcomes = Vec::new();
        let mut state = self.state.lock();
        state.closed = true;
        state.broken = Some(error.clone());
        state.unfinished.clear();
        let topics = state.topics.values_mut();
        for queue in topics.flat_map(|topic| &mut topic.partitions) {
            outcomes.extend(queue.abandon());
        }
        drop(state);
        for outcome in outcomes {
            outcome.complete(Err(error.clone()));
        }
        self.memory.close();
        self.done.notify_waiters();
    }
}
