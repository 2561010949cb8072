//! Records one after the other.

use std::collections::VecDeque;

use futures_core::Stream;
use futures_util::stream::unfold;

use super::{
    Consumer, OwnedRecord, Polling,
    partition::Position,
    records::{ChunkIter, Records},
};
use crate::{Error, Result};

struct Streaming<'a> {
    consumer: &'a Consumer,
    /// Taken, and not yet given to the application.
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
            state.give_back(&pending.record.topic_partition(), pending.lease);
        }
        drop(state);
        self.consumer.shared.work.notify_one();
    }
}

pub(super) fn stream(consumer: &Consumer) -> impl Stream<Item = Result<OwnedRecord>> + Send + '_ {
    let streaming = Streaming {
        consumer,
        pending: VecDeque::new(),
    };
    unfold(streaming, async |mut streaming| {
        match streaming.next().await {
            Err(Error::Closed) => None,
            next => Some((next, streaming)),
        }
    })
}

impl Streaming<'_> {
    async fn next(&mut self) -> Result<OwnedRecord> {
        let consumer = self.consumer;
        let _turn = consumer.turn.lock().await;
        let _polling = Polling::begin(&consumer.shared);
        loop {
            while let Some(pending) = self.pending.pop_front() {
                let record = pending.record;
                let position = Position {
                    offset: pending.next,
                    leader_epoch: (record.leader_epoch >= 0).then_some(record.leader_epoch),
                };
                let name = record.topic_partition();
                if consumer.shared.lock().give(&name, pending.lease, position) {
                    return Ok(record);
                }
                // Taken away, sought elsewhere, or paused: the last comes again.
                consumer.shared.lock().give_back(&name, pending.lease);
                consumer.shared.work.notify_one();
            }
            let records = consumer.take(true).await?;
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
