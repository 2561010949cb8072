//! What became of records: one answer for all of a batch, which each of them can wait for.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;

use super::RecordMetadata;
use crate::{Result, TopicPartition, Uuid};

/// How a batch ended.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) topic_id: Uuid,
    pub(super) base_offset: Option<i64>,
    /// If the broker sets timestamps.
    pub(super) append_time: Option<i64>,
}

/// What the records of one batch have in common.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) partition: TopicPartition,
    ended: OnceLock<Ended>,
    wakers: Mutex<Vec<Waker>>,
}

#[derive(Debug)]
enum Ended {
    Done(Result<Written>),
    /// Each part has an outcome of its own; the second begins with the record of this index.
    Split(Arc<Outcome>, u32, Arc<Outcome>),
}

impl Outcome {
    pub(super) fn new(partition: TopicPartition) -> Outcome {
        Outcome {
            partition,
            ended: OnceLock::new(),
            wakers: Mutex::default(),
        }
    }

    /// Whether the result is known.
    pub(super) fn is_known(&self) -> bool {
        self.ended.get().is_some()
    }

    /// Completes the delivery. The first result counts.
    pub(super) fn complete(&self, result: Result<Written>) {
        self.end(Ended::Done(result));
    }

    /// The batch was split. Returns the outcomes of its parts, the second of which begins with
    /// the record of index `second`.
    pub(super) fn split(&self, second: u32) -> [Arc<Outcome>; 2] {
        let parts = [(); 2].map(|()| Arc::new(Outcome::new(self.partition.clone())));
        let [first, other] = parts.clone();
        self.end(Ended::Split(first, second, other));
        parts
    }

    fn end(&self, ended: Ended) {
        let _ = self.ended.set(ended);
        let wakers = std::mem::take(&mut *self.wakers.lock());
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// What will become of a record: resolves when it is written, or cannot be.
///
/// Dropping it changes nothing for the record.
#[derive(Debug)]
#[must_use = "a record that cannot be written is noticed only by its delivery"]
pub struct Delivery {
    outcome: Arc<Outcome>,
    index: u32,
    timestamp: i64,
    /// Where among the wakers ours is.
    slot: Option<usize>,
}

impl Delivery {
    pub(super) fn new(outcome: Arc<Outcome>, index: u32, timestamp: i64) -> Delivery {
        Delivery {
            outcome,
            index,
            timestamp,
            slot: None,
        }
    }

    /// The partition to which the record goes.
    pub fn partition(&self) -> &TopicPartition {
        &self.outcome.partition
    }

    fn now(&mut self) -> Option<Result<RecordMetadata>> {
        let result = loop {
            let (part, begin) = match self.outcome.ended.get()? {
                Ended::Done(result) => break result,
                Ended::Split(_, second, part) if self.index >= *second => (part, *second),
                Ended::Split(part, ..) => (part, 0),
            };
            self.index -= begin;
            self.slot = None;
            self.outcome = part.clone();
        };
        Some(result.as_ref().map_err(Clone::clone).map(|written| {
            let partition = &self.outcome.partition;
            RecordMetadata {
                topic: partition.topic.clone(),
                topic_id: written.topic_id,
                partition: partition.partition,
                offset: written.base_offset.map(|base| base + i64::from(self.index)),
                timestamp: written.append_time.unwrap_or(self.timestamp),
            }
        }))
    }
}

impl Future for Delivery {
    type Output = Result<RecordMetadata>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(result) = self.now() {
            return Poll::Ready(result);
        }
        let this = &mut *self;
        loop {
            let outcome = this.outcome.clone();
            let mut wakers = outcome.wakers.lock();
            match this.slot.and_then(|slot| wakers.get_mut(slot)) {
                Some(waker) => waker.clone_from(cx.waker()),
                None => {
                    this.slot = Some(wakers.len());
                    wakers.push(cx.waker().clone());
                }
            }
            drop(wakers);
            // It may have been completed in between, or split.
            if let Some(result) = this.now() {
                return Poll::Ready(result);
            }
            if Arc::ptr_eq(&outcome, &this.outcome) {
                return Poll::Pending;
            }
        }
    }
}
