//! A batch on its way from the application to the broker.

use std::sync::Arc;

use bytes::Bytes;
use kohort_wire::records::{
    self, BatchBuilder, BatchHeader, BatchMut, HEADER_LENGTH, Level, increment_sequence,
};
use tokio::time::Instant;

use super::{delivery::Outcome, identity::Identity};
use kohort_member::BufferPool;

/// Where a batch is in the order of its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// In the order in which batches were begun.
    pub(super) number: u64,
    /// The first record of a part, counted in the batch as it was begun.
    pub(super) record: i32,
}

/// A batch that takes no more records.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) place: Place,
    pub(super) outcome: Arc<Outcome>,
    pub(super) count: i32,
    /// How much of the buffer's memory it takes.
    pub(super) memory: usize,
    pub(super) created: Instant,
    content: Content,
    /// Under whose name, and with which first sequence number, it was last sent.
    pub(super) sent_as: Option<(Identity, i32)>,
}

#[derive(Debug)]
enum Content {
    /// Records, to be compressed when it is sent.
    Records(Box<BatchBuilder>),
    /// As it is sent.
    Bytes(Bytes),
}

impl Batch {
    pub(super) fn new(
        number: u64,
        outcome: Arc<Outcome>,
        builder: Box<BatchBuilder>,
        memory: usize,
        created: Instant,
    ) -> Batch {
        Batch {
            place: Place { number, record: 0 },
            outcome,
            count: builder.count() as i32,
            memory,
            created,
            content: Content::Records(builder),
            sent_as: None,
        }
    }

    /// About how many bytes it has on the wire, at most.
    pub(super) fn size(&self) -> usize {
        match &self.content {
            Content::Records(builder) => builder.size(),
            Content::Bytes(bytes) => bytes.len(),
        }
    }

    /// The batch as it is to be sent, with the producer's identity and the sequence number of its
    /// first record. A builder that is not needed any more is given back.
    pub(super) fn bytes(
        &mut self,
        identity: Option<(Identity, i32)>,
        memory: &Arc<BufferPool>,
    ) -> (Bytes, Option<Box<BatchBuilder>>) {
        let changed = self.sent_as != identity;
        self.sent_as = identity;
        match &mut self.content {
            Content::Records(builder) => {
                if let Some((identity, sequence)) = identity {
                    builder.set_producer(identity.id, identity.epoch, sequence);
                }
                let bytes = memory.share(builder.finish_in(memory.acquire()));
                let content = Content::Bytes(bytes.clone());
                match std::mem::replace(&mut self.content, content) {
                    Content::Records(builder) => (bytes, Some(builder)),
                    Content::Bytes(_) => (bytes, None),
                }
            }
            Content::Bytes(bytes) => {
                if changed && let Some((identity, sequence)) = identity {
                    *bytes = renamed(bytes, identity, sequence);
                }
                (bytes.clone(), None)
            }
        }
    }
}

impl Batch {
    /// Two batches with the records of one that was sent, about as long as each other, in their
    /// order and under the same sequence numbers. `None` if there is only one record.
    pub(super) fn split(&self, level: Option<Level>) -> Option<[Batch; 2]> {
        let Content::Bytes(bytes) = &self.content else {
            return None;
        };
        let batch = records::Batch::parse(bytes.clone()).ok()?;
        let compression = batch.header().compression().ok()?;
        let all = batch.records(usize::MAX).ok()?;
        let total = all.bytes().len();
        let mut builders = [(); 2].map(|()| Box::new(BatchBuilder::new(compression, level)));
        let (mut length, mut cut) = (0, None);
        for record in &all {
            let record = record.ok()?;
            let end = length + record.bytes.len();
            if cut.is_none() && end > total / 2 && !builders[0].is_empty() {
                cut = Some(length);
            }
            let builder = &mut builders[usize::from(cut.is_some())];
            let appended =
                builder.append(record.timestamp, record.key, record.value, record.headers);
            appended.ok()?;
            length = end;
        }
        // So much of the memory belongs to the first.
        let memory = (self.memory as f64 * (cut? as f64 / total as f64)) as usize;
        let first = builders[0].count() as i32;
        let outcomes = self.outcome.split(first as u32);
        let mut parts = builders.into_iter().zip(outcomes);
        let mut part = |begin: i32, memory| {
            let (builder, outcome) = parts.next()?;
            let number = self.place.number;
            let mut batch = Batch::new(number, outcome, builder, memory, self.created);
            batch.place.record = self.place.record + begin;
            let renumbered = |(name, sequence)| (name, increment_sequence(sequence, begin));
            batch.sent_as = self.sent_as.map(renumbered);
            Some(batch)
        };
        Some([part(0, memory)?, part(first, self.memory - memory)?])
    }
}

/// The same batch under another name.
fn renamed(bytes: &Bytes, identity: Identity, sequence: i32) -> Bytes {
    let Ok(mut header) = BatchHeader::parse(bytes) else {
        return bytes.clone();
    };
    header.producer_id = identity.id;
    header.producer_epoch = identity.epoch;
    header.base_sequence = sequence;
    let mut bytes = bytes.to_vec();
    bytes[..HEADER_LENGTH].copy_from_slice(&header.to_bytes());
    BatchMut::new(&mut bytes).set_crc();
    bytes.into()
}

#[cfg(test)]
mod tests {
    use kohort_wire::records::Compression;

    use super::*;
    use crate::TopicPartition;

    fn sent(values: &[usize]) -> Batch {
        let mut builder = Box::new(BatchBuilder::new(Compression::Lz4, None));
        for (at, length) in values.iter().enumerate() {
            let value = vec![at as u8; *length];
            let appended = builder.append(at as i64, Some(b"key"), Some(&value), []);
            appended.unwrap();
        }
        let outcome = Arc::new(Outcome::new(TopicPartition::new("topic", 0)));
        let mut batch = Batch::new(7, outcome, builder, 1000, Instant::now());
        let identity = Identity { id: 3, epoch: 1 };
        batch.bytes(Some((identity, i32::MAX)), &BufferPool::new(1, 1000));
        batch
    }

    fn timestamps(batch: &mut Batch) -> Vec<i64> {
        let (bytes, _) = batch.bytes(batch.sent_as, &BufferPool::new(1, 1000));
        let batch = records::Batch::parse(bytes).unwrap();
        let records = batch.records(1 << 20).unwrap();
        records
            .iter()
            .map(|record| record.unwrap().timestamp)
            .collect()
    }

    #[test]
    fn a_batch_is_split_in_the_middle_and_keeps_order_and_sequence_numbers() {
        let batch = sent(&[100, 100, 100, 100]);
        let [mut first, mut second] = batch.split(None).unwrap();
        assert_eq!(timestamps(&mut first), [0, 1]);
        assert_eq!(timestamps(&mut second), [2, 3]);
        assert_eq!(first.sent_as.unwrap().1, i32::MAX);
        assert_eq!(second.sent_as.unwrap().1, 1);
        assert!(first.place < second.place);
        assert_eq!(first.memory + second.memory, 1000);
    }

    #[test]
    fn both_parts_have_records_however_long_one_is_and_one_record_is_not_split() {
        for values in [&[1000, 1][..], &[1, 1000], &[1, 1, 1, 1000], &[0, 0]] {
            let [mut first, mut second] = sent(values).split(None).unwrap();
            let count = timestamps(&mut first).len() + timestamps(&mut second).len();
            assert_eq!(count, values.len());
            assert!(first.count > 0 && second.count > 0);
        }
        assert!(sent(&[1000]).split(None).is_none());
    }
}
