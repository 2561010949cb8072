//! Records one after the other.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;
use futures_util::stream::unfold;

use super::{
    Consumer, OwnedRecord, Polling,
    partition::Position,
    records::{ChunkIter, Records},
};
use crate::{Error, Result};

/// Owned records, one after the other: [`Consumer::stream`].
///
/// ```no_run
/// use futures_util::StreamExt;
///
/// # async fn example(mut consumer: kohort::Consumer) -> kohort::Result<()> {
/// let mut records = consumer.stream();
/// while let Some(record) = records.next().await {
///     let record = record?;
///     println!("{} {:?}", record.offset, record.value);
///     if record.offset % 100 == 0 {
///         // This record is processed too.
///         records.consumer().commit().await?;
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct RecordStream<'a> {
    consumer: &'a Consumer,
    records: Pin<Box<dyn Stream<Item = Result<OwnedRecord>> + Send + 'a>>,
}

impl<'a> RecordStream<'a> {
    pub(super) fn new(consumer: &'a mut Consumer) -> RecordStream<'a> {
        // The handle is borrowed mutably, so that nobody else reads through it.
        let consumer = &*consumer;
        let streaming = Streaming {
            consumer,
            pending: VecDeque::new(),
        };
        let records = unfold(streaming, async |mut streaming| {
            match streaming.next().await {
                Err(Error::Closed) => None,
                next => Some((next, streaming)),
            }
        });
        RecordStream {
            consumer,
            records: Box::pin(records),
        }
    }

    /// The consumer, to commit, seek or pause while the stream is in use.
    pub fn consumer(&self) -> &'a Consumer {
        self.consumer
    }

    /// Finishes the last record: [`Consumer::finish`].
    pub fn finish(&self) {
        self.consumer.finish();
    }
}

impl Stream for RecordStream<'_> {
    type Item = Result<OwnedRecord>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.records.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for RecordStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordStream").finish_non_exhaustive()
    }
}

struct Streaming<'a> {
    consumer: &'a Consumer,
    /// Taken and not delivered yet.
    pending: VecDeque<Pending>,
}

struct Pending {
    record: OwnedRecord,
    lease: u64,
    /// What comes after it.
    next: i64,
}

impl Drop for Streaming<'_> {
    fn drop(&mut self) {
        let mut state = self.consumer.shared.lock();
        for pending in &self.pending {
            // The first of a partition changes its lease; the others find nothing to do.
            state.return_undelivered(&pending.record.topic_partition(), pending.lease);
        }
        drop(state);
        self.consumer.shared.work.notify_one();
    }
}

impl Streaming<'_> {
    async fn next(&mut self) -> Result<OwnedRecord> {
        let Consumer { shared, handle, .. } = self.consumer;
        let _polling = Polling::begin(shared, *handle);
        let _turn = shared.turn.lock().await;
        loop {
            while let Some(pending) = self.pending.pop_front() {
                let record = pending.record;
                let end = Position {
                    offset: pending.next,
                    leader_epoch: (record.leader_epoch >= 0).then_some(record.leader_epoch),
                };
                let name = record.topic_partition();
                let mut state = shared.lock();
                if state.deliver_one(&name, pending.lease, *handle, end) {
                    return Ok(record);
                }
                // Taken away, sought elsewhere, or paused: the last comes again.
                state.return_undelivered(&name, pending.lease);
                drop(state);
                shared.work.notify_one();
            }
            let records = self.consumer.take(None).await?;
            self.pending.extend(pending(&records));
        }
    }
}

fn pending(records: &Records) -> impl Iterator<Item = Pending> + '_ {
    let chunks = records.chunks.iter().zip(&records.leases);
    chunks.flat_map(|((name, chunk), lease)| {
        let mut records = ChunkIter::new(name, chunk).peekable();
        std::iter::from_fn(move || {
            let record = records.next()?.to_owned();
            Some(Pending {
                next: match records.peek() {
                    Some(_) => record.offset + 1,
                    None => chunk.next,
                },
                lease: *lease,
                record,
            })
        })
    })
}
