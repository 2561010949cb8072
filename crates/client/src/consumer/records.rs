//! Records as the application gets them.

use bytes::Bytes;
use kohort_member::reader::{Chunk, Chunks};
use kohort_wire::records::{Headers, Record, RecordIter, TimestampType};

use crate::{ByteString, TopicPartition};

/// The records that one poll returned, by partition, in the order of their offsets.
///
/// They are finished by the next poll of the same handle, not by going through them or dropping
/// them: see [`Consumer`](crate::Consumer).
///
/// Going through them copies nothing and allocates nothing:
///
/// ```no_run
/// # async fn example(mut consumer: kohort::Consumer) -> kohort::Result<()> {
/// let records = consumer.poll().await?;
/// for record in &records {
///     println!("{}-{} at {}: {:?}", record.topic, record.partition, record.offset, record.value);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Records(pub(super) Chunks);

impl Records {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.count == 0
    }

    /// All of them.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            chunks: self.0.chunks.iter(),
            current: None,
        }
    }

    /// Which partitions they are of.
    pub fn partitions(&self) -> Vec<TopicPartition> {
        let mut partitions: Vec<_> = self.0.chunks.iter().map(|(p, _)| p.clone()).collect();
        partitions.sort();
        partitions.dedup();
        partitions
    }

    /// Those of one partition.
    pub fn of<'a>(
        &'a self,
        partition: &TopicPartition,
    ) -> impl Iterator<Item = ConsumerRecord<'a>> {
        let chunks = self.0.chunks.iter().filter(move |(p, _)| p == partition);
        chunks.flat_map(|(partition, chunk)| ChunkIter::new(partition, chunk))
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = ConsumerRecord<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Goes through [`Records`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    chunks: std::slice::Iter<'a, (TopicPartition, Chunk)>,
    current: Option<ChunkIter<'a>>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = ConsumerRecord<'a>;

    #[inline]
    fn next(&mut self) -> Option<ConsumerRecord<'a>> {
        loop {
            if let Some(record) = self.current.as_mut().and_then(Iterator::next) {
                return Some(record);
            }
            let (partition, chunk) = self.chunks.next()?;
            self.current = Some(ChunkIter::new(partition, chunk));
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct ChunkIter<'a> {
    partition: &'a TopicPartition,
    chunk: &'a Chunk,
    records: RecordIter<'a>,
}

impl<'a> ChunkIter<'a> {
    pub(super) fn new(partition: &'a TopicPartition, chunk: &'a Chunk) -> ChunkIter<'a> {
        ChunkIter {
            partition,
            chunk,
            records: RecordIter::new(&chunk.header, &chunk.bytes),
        }
    }
}

impl<'a> Iterator for ChunkIter<'a> {
    type Item = ConsumerRecord<'a>;

    fn next(&mut self) -> Option<ConsumerRecord<'a>> {
        loop {
            // They were read once when the chunk was cut: there are no errors.
            let record = self.records.next()?.ok()?;
            if record.offset >= self.chunk.from {
                return Some(ConsumerRecord::new(self.partition, self.chunk, record));
            }
        }
    }
}

/// A record, borrowed from the [`Records`] that a poll returned.
#[derive(Debug, Clone, Copy)]
pub struct ConsumerRecord<'a> {
    /// The topic.
    pub topic: &'a ByteString,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The timestamp in ms since 1970, or −1.
    pub timestamp: i64,
    /// Whether the producer or the broker set the timestamp.
    pub timestamp_type: TimestampType,
    /// The key; none is not the empty key.
    pub key: Option<&'a [u8]>,
    /// The value; none, in a compacted topic, means that the key was deleted.
    pub value: Option<&'a [u8]>,
    /// The headers, in their order, read as they are asked for.
    pub headers: Headers<'a>,
    /// The epoch of the leader that wrote it, or −1.
    pub leader_epoch: i32,
    bytes: &'a Bytes,
}

impl<'a> ConsumerRecord<'a> {
    fn new(
        partition: &'a TopicPartition,
        chunk: &'a Chunk,
        record: Record<'a>,
    ) -> ConsumerRecord<'a> {
        ConsumerRecord {
            topic: &partition.topic,
            partition: partition.partition,
            offset: record.offset,
            timestamp: record.timestamp,
            timestamp_type: chunk.header.timestamp_type(),
            key: record.key,
            value: record.value,
            headers: record.headers,
            leader_epoch: chunk.header.partition_leader_epoch,
            bytes: &chunk.bytes,
        }
    }

    /// The value of the last header with this name, the one that counts by Kafka's convention.
    /// `None` if there is no such header, or if its value is null.
    pub fn header(&self, name: impl AsRef<[u8]>) -> Option<&'a [u8]> {
        self.headers.last_with_key(name.as_ref())?.value
    }

    /// The value, read as JSON; `None` if there is none.
    #[cfg(feature = "json")]
    pub fn json<T: serde::Deserialize<'a>>(&self) -> serde_json::Result<Option<T>> {
        self.value.map(serde_json::from_slice).transpose()
    }

    /// The record for keeps. Key and value are not copied: they keep the memory of their batch.
    pub fn to_owned(&self) -> OwnedRecord {
        let own = |bytes: &[u8]| self.bytes.slice_ref(bytes);
        OwnedRecord {
            topic: self.topic.clone(),
            partition: self.partition,
            offset: self.offset,
            timestamp: self.timestamp,
            timestamp_type: self.timestamp_type,
            key: self.key.map(own),
            value: self.value.map(own),
            headers: self
                .headers
                .map(|header| (own(header.key), header.value.map(own)))
                .collect(),
            leader_epoch: self.leader_epoch,
        }
    }
}

/// A record for keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRecord {
    /// The topic.
    pub topic: ByteString,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The timestamp in ms since 1970, or −1.
    pub timestamp: i64,
    /// Whether the producer or the broker set the timestamp.
    pub timestamp_type: TimestampType,
    /// The key; none is not the empty key.
    pub key: Option<Bytes>,
    /// The value; none, in a compacted topic, means that the key was deleted.
    pub value: Option<Bytes>,
    /// The headers, name and value, in their order.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
    /// The epoch of the leader that wrote it, or −1.
    pub leader_epoch: i32,
}

impl OwnedRecord {
    /// The value of the last header with this name, the one that counts by Kafka's convention.
    /// `None` if there is no such header, or if its value is null.
    pub fn header(&self, name: impl AsRef<[u8]>) -> Option<&[u8]> {
        let name = name.as_ref();
        let mut headers = self.headers.iter().rev();
        headers.find(|(key, _)| key == name)?.1.as_deref()
    }

    /// The value, read as JSON; `None` if there is none.
    #[cfg(feature = "json")]
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> serde_json::Result<Option<T>> {
        self.value
            .as_deref()
            .map(serde_json::from_slice)
            .transpose()
    }

    /// The partition by name.
    pub fn topic_partition(&self) -> TopicPartition {
        TopicPartition::new(self.topic.clone(), self.partition)
    }
}
