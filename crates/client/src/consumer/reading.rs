//! Asking a handle for records: many at once, one at a time, or as a stream.

use std::time::Duration;

use kohort_member::reader::HandleId;
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    Consumer, OwnedRecord, RecordStream, Records,
    shared::{FinalError, Shared},
};
use crate::{Error, Result};

/// While it lives, a handle waits for records.
pub(super) struct Polling<'a>(&'a Shared);

impl<'a> Polling<'a> {
    /// A handle asks for the next records, which finishes those that it holds.
    pub(super) fn begin(shared: &'a Shared, handle: HandleId) -> Polling<'a> {
        shared.finish(handle);
        let mut state = shared.lock();
        if shared.config.auto_commit {
            state.reader.forget_lost(handle);
        }
        state.polling += 1;
        if std::mem::take(&mut state.away) {
            shared.away_no_more.notify_one();
        }
        drop(state);
        Polling(shared)
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.polling -= 1;
        state.polled = Instant::now();
    }
}

impl Consumer {
    /// Waits for records and returns them, at most [`poll_records_max`](super::ConsumerConfig::poll_records_max).
    ///
    /// Finishes the records of this handle's poll before. The future may be dropped at any time;
    /// nothing is lost by that.
    ///
    /// # Errors
    ///
    /// Most errors concern one partition or one moment, are returned once, and the consumer goes on:
    /// a partition that cannot be read, credentials that the cluster refuses for a while. These
    /// end what the consumer does, and [`failure`](Consumer::failure) returns them too:
    ///
    /// - The group refused the member for good ([`Error::Kafka`], [`Error::Authentication`],
    ///   [`Error::UnsupportedVersion`], or [`Error::State`] from an assignor): another member has
    ///   its instance id, the group is full or has no assignor in common, the client may not read
    ///   it. [`subscribe`](Consumer::subscribe) again to join as a new member.
    /// - A task of the consumer panicked ([`Error::State`]), or the runtime has ended
    ///   ([`Error::RuntimeEnded`]). Build another consumer.
    /// - Nothing is subscribed to or assigned ([`Error::State`]). Do so.
    ///
    /// A final error is returned at once the first time. Later polls wait for a second before they
    /// return it again, so that a loop that goes on after errors doesn't spin, and return earlier
    /// if the application has subscribed meanwhile. After [`close`](Consumer::close) the error is
    /// [`Error::Closed`], and streams end.
    pub async fn poll(&mut self) -> Result<Records> {
        let _polling = Polling::begin(&self.shared, self.handle);
        let _turn = self.shared.turn.lock().await;
        self.take(self.shared.config.poll_records_max).await
    }

    /// Waits for the next record and returns it. The record is finished when this handle is asked
    /// for the next one, by this or any other method, or by [`finish`](Consumer::finish) or
    /// [`commit`](Consumer::commit).
    ///
    /// The future may be dropped at any time, so it can be a branch of `select!`; nothing is lost by
    /// that:
    ///
    /// ```no_run
    /// # async fn example(mut consumer: kohort::Consumer) -> kohort::Result<()> {
    /// let mut every_minute = tokio::time::interval(std::time::Duration::from_secs(60));
    /// loop {
    ///     tokio::select! {
    ///         record = consumer.recv() => println!("{:?}", record?.value),
    ///         _ = every_minute.tick() => println!("still here"),
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// The record keeps the memory of its batch as long as it lives. [`poll`](Consumer::poll) costs
    /// less for each record.
    ///
    /// # Errors
    ///
    /// Those of [`poll`](Consumer::poll).
    pub async fn recv(&mut self) -> Result<OwnedRecord> {
        self.next().await
    }

    /// [`recv`](Consumer::recv). Two of these at a time would finish each other's records.
    pub(super) async fn next(&self) -> Result<OwnedRecord> {
        let _polling = Polling::begin(&self.shared, self.handle);
        let _turn = self.shared.turn.lock().await;
        loop {
            let records = self.take(1).await?;
            if let Some(record) = records.iter().next() {
                return Ok(record.to_owned());
            }
        }
    }

    async fn take(&self, most: usize) -> Result<Records> {
        loop {
            let mut ready = std::pin::pin!(self.shared.ready.notified());
            ready.as_mut().enable();
            if self.shared.closed.is_cancelled() {
                return Err(Error::Closed);
            }
            if let Some(records) = self.shared.take(most, self.handle)? {
                return Ok(records);
            }
            let again = match self.shared.lock().final_error(Instant::now()) {
                Some(FinalError::Now(error)) => return Err(error),
                Some(FinalError::At(time)) => Some(time),
                None => None,
            };
            tokio::select! {
                () = ready => {}
                () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {}
                () = self.shared.closed.cancelled() => return Err(Error::Closed),
            }
        }
    }

    /// The error that ended what the consumer does, until the application subscribes again: see the
    /// errors of [`poll`](Consumer::poll).
    pub fn failure(&self) -> Option<Error> {
        let state = self.shared.lock();
        state.stopped.clone().or_else(|| state.broken.clone())
    }

    /// Owned records, one after the other. The stream ends when the consumer is closed; it goes on
    /// after errors.
    ///
    /// Asking for the next record finishes the one before; asking for the first one finishes what
    /// the handle holds from a poll. The last record stays unfinished when the stream is dropped,
    /// until the handle is asked for the next one or [`finish`](Consumer::finish) is called.
    ///
    /// Once it is asked for a record, and until it delivers one, the stream counts as polling, even
    /// if the caller has stopped waiting. Drop it to be noticed by
    /// [`poll_interval_max`](super::ConsumerConfig::poll_interval_max).
    pub fn stream(&mut self) -> RecordStream<'_> {
        RecordStream::new(self)
    }

    /// Finishes the records that this handle holds: they may be committed. Commits nothing by
    /// itself.
    ///
    /// Not needed by a program that goes on reading, as asking for the next record does the same.
    /// Call it before [`close`](Consumer::close), after processing the last records:
    ///
    /// ```no_run
    /// # async fn example(mut consumer: kohort::Consumer) -> kohort::Result<()> {
    /// for record in &consumer.poll().await? {
    ///     println!("{:?}", record.value);
    /// }
    /// consumer.finish();
    /// consumer.close().await
    /// # }
    /// ```
    pub fn finish(&self) {
        self.shared.finish(self.handle);
    }

    /// [`poll`](Consumer::poll) for no longer than `wait`; returns no records if there are none.
    pub async fn poll_for(&mut self, wait: Duration) -> Result<Records> {
        timeout(wait, self.poll())
            .await
            .unwrap_or_else(|_| Ok(Records::default()))
    }
}
