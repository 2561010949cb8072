//! Records one after the other.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;
use futures_util::stream::unfold;

use super::{Consumer, OwnedRecord};
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
        // The handle stays borrowed mutably, so that nothing else reads through it.
        let consumer = &*consumer;
        let records = unfold(consumer, async |consumer| match consumer.next().await {
            Err(Error::Closed) => None,
            next => Some((next, consumer)),
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
