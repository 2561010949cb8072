//! A record to be written.

use crate::{ByteString, Uuid};

/// A record to be written. It borrows what it is made of: sending copies it into its batch.
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
    /// Headers: name and value, in their order.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
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

    /// Sets the headers.
    pub fn headers(mut self, headers: &'a [(&'a str, Option<&'a [u8]>)]) -> ProducerRecord<'a> {
        self.headers = headers;
        self
    }

    /// Sets the timestamp, in milliseconds since 1970.
    pub fn timestamp(mut self, timestamp: i64) -> ProducerRecord<'a> {
        self.timestamp = Some(timestamp);
        self
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
    /// The offset; `None` if it is not known (`acks=0`, or written by an earlier attempt of which
    /// the broker remembers only that).
    pub offset: Option<i64>,
    /// The record's timestamp in the log, in ms.
    pub timestamp: i64,
}
