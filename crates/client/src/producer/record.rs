//! A record to be written.

use super::RecordHeaders;
use crate::{
    ByteString, Uuid,
    consumer::{ConsumerRecord, OwnedRecord},
};

/// A record to be written. It borrows its parts: sending copies them into a batch.
///
/// A consumed record converts into one with the same topic, key, value, headers and timestamp, for
/// a program that forwards records. The partitioner chooses the partition again.
///
/// ```no_run
/// # async fn example(mut consumer: kohort::Consumer, producer: kohort::Producer) -> kohort::Result<()> {
/// use kohort::ProducerRecord;
///
/// for record in &consumer.poll().await? {
///     let copy = ProducerRecord::from(record).topic("orders-copy");
///     drop(producer.send(copy).await?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ProducerRecord<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition; `None`, the default, lets the partitioner choose.
    pub partition: Option<i32>,
    /// The key; none is not the empty key.
    pub key: Option<&'a [u8]>,
    /// The value; none, in a compacted topic, deletes the key.
    pub value: Option<&'a [u8]>,
    /// Headers: names and values, in their order.
    pub headers: RecordHeaders<'a>,
    /// The timestamp in milliseconds since 1970; `None` for now.
    pub timestamp: Option<i64>,
}

impl<'a> ProducerRecord<'a> {
    /// A record without key or value.
    pub fn new(topic: &'a str) -> ProducerRecord<'a> {
        ProducerRecord {
            topic,
            ..ProducerRecord::default()
        }
    }

    /// Sets the topic.
    pub fn topic(mut self, topic: &'a str) -> ProducerRecord<'a> {
        self.topic = topic;
        self
    }

    /// Sets the partition.
    pub fn partition(mut self, partition: i32) -> ProducerRecord<'a> {
        self.partition = Some(partition);
        self
    }

    /// Sets the key.
    pub fn key(mut self, key: &'a (impl AsRef<[u8]> + ?Sized)) -> ProducerRecord<'a> {
        self.key = Some(key.as_ref());
        self
    }

    /// Sets the value.
    pub fn value(mut self, value: &'a (impl AsRef<[u8]> + ?Sized)) -> ProducerRecord<'a> {
        self.value = Some(value.as_ref());
        self
    }

    /// Sets the headers: a slice of names and values, or the headers of a consumed record.
    pub fn headers(mut self, headers: impl Into<RecordHeaders<'a>>) -> ProducerRecord<'a> {
        self.headers = headers.into();
        self
    }

    /// Sets the timestamp, in milliseconds since 1970.
    pub fn timestamp(mut self, timestamp: i64) -> ProducerRecord<'a> {
        self.timestamp = Some(timestamp);
        self
    }
}

impl<'a> From<ConsumerRecord<'a>> for ProducerRecord<'a> {
    fn from(record: ConsumerRecord<'a>) -> ProducerRecord<'a> {
        ProducerRecord {
            topic: record.topic,
            partition: None,
            key: record.key,
            value: record.value,
            headers: record.headers.into(),
            timestamp: (record.timestamp >= 0).then_some(record.timestamp),
        }
    }
}

impl<'a> From<&'a OwnedRecord> for ProducerRecord<'a> {
    fn from(record: &'a OwnedRecord) -> ProducerRecord<'a> {
        ProducerRecord {
            topic: &record.topic,
            partition: None,
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: record.into(),
            timestamp: (record.timestamp >= 0).then_some(record.timestamp),
        }
    }
}

/// Where a record was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordMetadata {
    /// The topic.
    pub topic: ByteString,
    /// The topic's id; zero if the cluster has none.
    pub topic_id: Uuid,
    /// The partition.
    pub partition: i32,
    /// The offset; `None` if it is unknown: with `acks=0`, or if an earlier attempt wrote the record
    /// and the broker no longer remembers where.
    pub offset: Option<i64>,
    /// The record's timestamp in the log, in ms.
    pub timestamp: i64,
}
