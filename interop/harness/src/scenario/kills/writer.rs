//! Who writes records to a partition of its own.
//!
//! An idempotent writer sends again what was not acknowledged, and so knows where each record is to
//! be: record n at offset n, once. A plain one never sends a record twice, and knows that each is
//! there once at most, and those that were acknowledged at the offset that it was told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use fastrand::Rng;
use kohort_wire::messages::*;
use kohort_wire::records::{Batch, BatchBuilder, Compression};

use super::witness::{Outcome, Witness, answer, ask, fault};
use crate::differential::Connection;
use crate::failure::Failure;

/// Batches under way at a time: as many as a broker remembers of a producer.
const IN_FLIGHT: usize = 5;
/// Records of a batch, at most.
const BATCH_MAX: u64 = 20;
/// How far behind the acknowledged end one begins to read after a kill.
const READ_BACK: i64 = 300;
/// After so many connections an idempotent writer takes another producer id.
const CONNECTIONS_EACH_ID: usize = 10;
const PRODUCE: i16 = 9;
const FETCH: i16 = 12;

/// All producer ids that were ever given out.
pub(super) type ProducerIds = Arc<Mutex<Vec<i64>>>;

pub(super) struct Writer {
    topic: &'static str,
    partition: i32,
    idempotent: bool,
    acks: i16,
    ids: ProducerIds,
    rng: Rng,
    producer_id: i64,
    next_sequence: i32,
    connections: usize,
    /// How many records were made so far; the next has this number.
    made: u64,
    in_flight: VecDeque<Sent>,
    /// Offset, number of the first record, and how many.
    acknowledged: Vec<(i64, u64, u64)>,
}

struct Sent {
    first: u64,
    count: u64,
    bytes: Bytes,
}

impl Writer {
    /// Writes with acks=all, if it is idempotent, or else with acks=1.
    pub(super) fn new(
        topic: &'static str,
        partition: i32,
        idempotent: bool,
        ids: &ProducerIds,
        seed: u64,
    ) -> Self {
        Self {
            topic,
            partition,
            idempotent,
            acks: if idempotent { -1 } else { 1 },
            ids: ids.clone(),
            rng: Rng::with_seed(seed),
            producer_id: -1,
            next_sequence: 0,
            connections: 0,
            made: 0,
            in_flight: VecDeque::new(),
            acknowledged: Vec::new(),
        }
    }

    /// Behind the last record that was acknowledged.
    fn acknowledged_end(&self) -> i64 {
        let last = self.acknowledged.last();
        last.map_or(0, |&(offset, _, count)| offset + count as i64)
    }

    fn take_producer_id(&mut self, connection: &mut Connection) -> Outcome<()> {
        let request = InitProducerIdRequest {
            transactional_id: None,
            producer_id: -1,
            producer_epoch: -1,
            transaction_timeout_ms: 60_000,
            ..Default::default()
        };
        let response = ask(connection, &request, 4)?;
        if response.error_code.is_error() {
            return fault(format!("no producer id: {}", response.error_code));
        }
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.contains(&response.producer_id) {
            return fault(format!(
                "producer id {} is given out twice",
                response.producer_id
            ));
        }
        ids.push(response.producer_id);
        drop(ids);
        (self.producer_id, self.next_sequence) = (response.producer_id, 0);
        Ok(())
    }

    fn next_batch(&mut self) -> Sent {
        let (first, count) = (self.made, self.rng.u64(1..=BATCH_MAX));
        let mut builder = BatchBuilder::new(Compression::None, None);
        if self.idempotent {
            builder.set_producer(self.producer_id, 0, self.next_sequence);
            self.next_sequence += count as i32;
        }
        let padding = self.rng.usize(..100);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.map_or(0, |it| it.as_millis() as i64);
        for number in first..first + count {
            let value = format!("{number} {:padding$}", "");
            let appended = builder.append(now_ms, None, Some(value.as_bytes()), []);
            debug_assert!(appended.is_ok());
        }
        self.made += count;
        Sent {
            first,
            count,
            bytes: builder.finish(),
        }
    }

    fn send(&self, connection: &mut Connection, sent: &Sent) -> Outcome<()> {
        let request = ProduceRequest {
            acks: self.acks,
            timeout_ms: 30_000,
            topic_data: vec![TopicProduceData {
                name: self.topic.into(),
                partition_data: vec![PartitionProduceData {
                    index: self.partition,
                    records: Some(sent.bytes.clone()),
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        Ok(connection.send(&request, PRODUCE)?)
    }

    /// Takes the answers to all that is in flight, in order.
    fn take_answers(&mut self, connection: &mut Connection) -> Outcome<()> {
        while let Some(sent) = self.in_flight.front() {
            let response = answer::<ProduceRequest>(connection, PRODUCE)?;
            let partitions = response.responses.iter();
            let mut partitions = partitions.flat_map(|topic| &topic.partition_responses);
            let Some(response) = partitions.next() else {
                return fault("a produce was answered without its partition");
            };
            let (first, count, offset) = (sent.first, sent.count, response.base_offset);
            if response.error_code.is_error() {
                return fault(format!(
                    "records from {first} were refused: {}",
                    response.error_code
                ));
            }
            if self.idempotent && offset != first as i64 {
                return fault(format!("record {first} was written at offset {offset}"));
            }
            if offset < self.acknowledged_end() {
                return fault(format!("offset {offset} was given out twice"));
            }
            self.acknowledged.push((offset, first, count));
            self.in_flight.pop_front();
        }
        Ok(())
    }

    /// Reads from an offset to the end: the numbers of the records, and the end.
    fn read(&self, connection: &mut Connection, from: i64) -> Outcome<Vec<(i64, u64)>> {
        let mut found = Vec::new();
        let mut next = from;
        loop {
            let request = FetchRequest {
                max_wait_ms: 0,
                min_bytes: 0,
                max_bytes: 1 << 20,
                topics: vec![FetchTopic {
                    topic: self.topic.into(),
                    partitions: vec![FetchPartition {
                        partition: self.partition,
                        fetch_offset: next,
                        partition_max_bytes: 1 << 20,
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                ..Default::default()
            };
            let response = ask(connection, &request, FETCH)?;
            let mut data = response.responses.into_iter().flat_map(|it| it.partitions);
            let Some(data) = data.next() else {
                return fault("a fetch was answered without its partition");
            };
            if data.error_code.is_error() {
                return fault(format!("reading from offset {next}: {}", data.error_code));
            }
            let before = next;
            let mut bytes = data.records.unwrap_or_default();
            while !bytes.is_empty() {
                let unreadable = |error| Failure::new(format!("behind {before}: {error}"));
                let batch = Batch::split_from(&mut bytes).map_err(unreadable)?;
                batch.check_crc().map_err(unreadable)?;
                for record in &batch.records(1 << 24).map_err(unreadable)? {
                    let record = record.map_err(unreadable)?;
                    let text = str::from_utf8(record.value.unwrap_or_default());
                    let number = text.ok().and_then(|text| text.split(' ').next());
                    let Some(number) = number.and_then(|text| text.parse().ok()) else {
                        return fault(format!("something else at offset {}", record.offset));
                    };
                    if record.offset >= next {
                        found.push((record.offset, number));
                        next = record.offset + 1;
                    }
                }
            }
            if next == before {
                return Ok(found);
            }
        }
    }

    /// Judges what was read from an offset to the end.
    fn judge(&self, from: i64, found: &[(i64, u64)]) -> Outcome<()> {
        let mut last = None;
        for (index, &(offset, number)) in found.iter().enumerate() {
            if offset != from + index as i64 {
                return fault(format!("a gap in front of offset {offset}"));
            }
            if self.idempotent && number != offset as u64 {
                return fault(format!("record {number} stands at offset {offset}"));
            }
            if last.is_some_and(|last| last >= number) || number >= self.made {
                return fault(format!(
                    "record {number} stands at {offset}, behind {last:?}"
                ));
            }
            last = Some(number);
        }
        for &(offset, first, count) in self.acknowledged.iter().rev() {
            if offset + (count as i64) <= from {
                break;
            }
            for nth in (from - offset).max(0)..count as i64 {
                let wanted = (offset + nth, first + nth as u64);
                if found.get((wanted.0 - from) as usize) != Some(&wanted) {
                    return fault(format!(
                        "record {} was acknowledged at offset {} and is not there",
                        wanted.1, wanted.0
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Witness for Writer {
    fn name(&self) -> String {
        let way = if self.idempotent {
            "idempotent"
        } else {
            "acks=1"
        };
        format!("the writer of {}-{} ({way})", self.topic, self.partition)
    }

    fn check(&mut self, connection: &mut Connection) -> Outcome<()> {
        let from = (self.acknowledged_end() - READ_BACK).max(0);
        let found = self.read(connection, from)?;
        self.judge(from, &found)?;
        if !self.idempotent {
            self.in_flight.clear();
            return Ok(());
        }
        for sent in &self.in_flight {
            self.send(connection, sent)?;
        }
        self.take_answers(connection)?;
        self.connections += 1;
        if self.connections % CONNECTIONS_EACH_ID == 1 {
            self.take_producer_id(connection)?;
        }
        Ok(())
    }

    fn work(&mut self, connection: &mut Connection) -> Outcome<()> {
        for _ in 0..IN_FLIGHT {
            let sent = self.next_batch();
            self.send(connection, &sent)?;
            self.in_flight.push_back(sent);
        }
        self.take_answers(connection)
    }

    fn audit(&mut self, connection: &mut Connection) -> Outcome<()> {
        let found = self.read(connection, 0)?;
        self.judge(0, &found)?;
        if self.idempotent && found.len() as u64 != self.made {
            return fault(format!("{} of {} records", found.len(), self.made));
        }
        Ok(())
    }

    fn acknowledged(&self) -> Vec<(usize, &'static str)> {
        let records: u64 = self.acknowledged.iter().map(|it| it.2).sum();
        let what = if self.idempotent {
            "records of idempotent writers"
        } else {
            "records with acks=1"
        };
        vec![(records as usize, what)]
    }
}
