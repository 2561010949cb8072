//! Who writes until the disk is full, and knows what was acknowledged.

use std::time::Duration;

use bytes::Bytes;
use kohort_wire::ErrorCode;
use kohort_wire::messages::*;
use kohort_wire::records::{Batch, BatchBuilder, Compression};

use crate::broker::Broker;
use crate::differential::Connection;
use crate::failure::Failure;
use crate::wait::wait_for;

const TOPIC: &str = "records";
/// A topic for which there is no room at first.
const LATE_TOPIC: &str = "late";
const GROUP: &str = "committers";
const MEMBERS: &str = "members";
const MEMBER: &str = "member-of-a-full-disk";
/// Of the values of records: large ones, and in the end the smallest.
const LARGE: usize = 60_000;
const SMALL: usize = 10;
/// Batches and commits that are tried until one is refused, at most.
const TRIES: usize = 5_000;
/// Of the metadata of commits, so that they take room too.
const METADATA: usize = 4_000;
/// From room to the first success.
const LIMIT: Duration = Duration::from_secs(30);

/// One client with one connection.
pub(super) struct Client {
    connection: Connection,
    producer_id: i64,
    /// Records that were acknowledged: number n is at offset n, since the producer is idempotent.
    acknowledged: i64,
    /// The batch that was refused.
    refused: Option<Bytes>,
    committed: i64,
    epoch: i32,
    refusals: usize,
}

impl Client {
    pub(super) fn new(broker: &Broker) -> Result<Self, Failure> {
        let mut client = Self {
            connection: Connection::open(&broker.address())?,
            producer_id: -1,
            acknowledged: 0,
            refused: None,
            committed: 0,
            epoch: 0,
            refusals: 0,
        };
        client.create(TOPIC)?;
        let request = InitProducerIdRequest {
            transactional_id: None,
            producer_id: -1,
            producer_epoch: -1,
            transaction_timeout_ms: 60_000,
            ..Default::default()
        };
        client.producer_id = client.ask(&request, 4)?.producer_id;
        client.write_some()?;
        client.until_committed()?;
        client.heartbeat()?;
        Ok(client)
    }

    pub(super) fn connect(&mut self, broker: &Broker) -> Result<(), Failure> {
        self.connection = Connection::open(&broker.address())?;
        Ok(())
    }

    pub(super) fn note(&self) -> String {
        format!(
            "{} records and offset {} acknowledged and found, {} times refused",
            self.acknowledged, self.committed, self.refusals
        )
    }

    fn ask<R: kohort_wire::Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<R::Response, Failure> {
        let closed = || Failure::new(format!("{}: the connection was closed", R::NAME));
        self.connection.ask(request, version)?.ok_or_else(closed)
    }

    fn create(&mut self, topic: &str) -> Result<(), Failure> {
        match self.try_to_create(topic)? {
            ErrorCode::NONE => Ok(()),
            code => Err(Failure::new(format!("creating {topic}: {code}"))),
        }
    }

    fn try_to_create(&mut self, topic: &str) -> Result<ErrorCode, Failure> {
        let request = CreateTopicsRequest {
            timeout_ms: 30_000,
            topics: vec![CreatableTopic {
                name: topic.into(),
                num_partitions: 1,
                replication_factor: 1,
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.ask(&request, 7)?;
        let codes = answer.topics.iter().map(|it| it.error_code);
        Ok(codes.last().unwrap_or_default())
    }

    pub(super) fn created_topic(&mut self) -> Result<(), Failure> {
        self.create(LATE_TOPIC)
    }

    /// A topic that cannot be kept is refused, and is not there.
    pub(super) fn refused_topic(&mut self) -> Result<(), Failure> {
        let code = self.try_to_create(LATE_TOPIC)?;
        self.refusals += 1;
        if code != ErrorCode::KAFKA_STORAGE_ERROR {
            return Err(Failure::new(format!("a topic is created: {code}")));
        }
        let request = MetadataRequest {
            topics: None,
            ..Default::default()
        };
        let answer = self.ask(&request, 12)?;
        let mut names = answer.topics.iter().filter_map(|it| it.name.as_ref());
        if names.any(|name| **name == *LATE_TOPIC) {
            Err(Failure::new("a topic is there that was refused"))
        } else {
            Ok(())
        }
    }

    fn batch(&self, size: usize) -> Result<Bytes, Failure> {
        let mut builder = BatchBuilder::new(Compression::None, None);
        builder.set_producer(self.producer_id, 0, self.acknowledged as i32);
        let value = format!("{:<size$}", self.acknowledged);
        builder
            .append(0, None, Some(value.as_bytes()), [])
            .map_err(|error| Failure::new(error.to_string()))?;
        Ok(builder.finish())
    }

    fn produce(&mut self, batch: &Bytes) -> Result<ErrorCode, Failure> {
        let request = ProduceRequest {
            acks: -1,
            timeout_ms: 30_000,
            topic_data: vec![TopicProduceData {
                name: TOPIC.into(),
                partition_data: vec![PartitionProduceData {
                    index: 0,
                    records: Some(batch.clone()),
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.ask(&request, 9)?;
        let mut partitions = answer
            .responses
            .iter()
            .flat_map(|it| &it.partition_responses);
        let Some(partition) = partitions.next() else {
            return Err(Failure::new("a produce was answered without its partition"));
        };
        if partition.error_code.is_error() {
            self.refusals += 1;
        } else if partition.base_offset == self.acknowledged {
            self.acknowledged += 1;
        } else {
            let offset = partition.base_offset;
            let number = self.acknowledged;
            return Err(Failure::new(format!(
                "record {number} is at offset {offset}"
            )));
        }
        Ok(partition.error_code)
    }

    pub(super) fn write_some(&mut self) -> Result<(), Failure> {
        for _ in 0..10 {
            let batch = self.batch(SMALL)?;
            match self.produce(&batch)? {
                ErrorCode::NONE => {}
                code => return Err(Failure::new(format!("a record is refused: {code}"))),
            }
        }
        Ok(())
    }

    /// Writes large records until one is refused, then small ones.
    pub(super) fn fill(&mut self) -> Result<(), Failure> {
        for size in [LARGE, LARGE / 10, LARGE / 100, SMALL] {
            let mut tries = 0..TRIES;
            loop {
                if tries.next().is_none() {
                    return Err(Failure::new("the disk is never full"));
                }
                let batch = self.batch(size)?;
                match self.produce(&batch)? {
                    ErrorCode::NONE => {}
                    ErrorCode::KAFKA_STORAGE_ERROR => {
                        self.refused = Some(batch);
                        break;
                    }
                    code => return Err(Failure::new(format!("on a full disk: {code}"))),
                }
            }
        }
        Ok(())
    }

    fn commit(&mut self, offset: i64) -> Result<ErrorCode, Failure> {
        let request = OffsetCommitRequest {
            group_id: GROUP.into(),
            topics: vec![OffsetCommitRequestTopic {
                name: TOPIC.into(),
                partitions: vec![OffsetCommitRequestPartition {
                    partition_index: 0,
                    committed_offset: offset,
                    committed_metadata: Some("m".repeat(METADATA).into()),
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.ask(&request, 9)?;
        let partitions = answer.topics.iter().flat_map(|it| &it.partitions);
        let code = partitions
            .map(|it| it.error_code)
            .next()
            .unwrap_or_default();
        match code {
            ErrorCode::NONE => self.committed = offset,
            _ => self.refusals += 1,
        }
        Ok(code)
    }

    /// Commits until that is refused, with an error after which clients try again.
    pub(super) fn fill_with_commits(&mut self) -> Result<(), Failure> {
        for _ in 0..TRIES {
            match self.commit(self.committed + 1)? {
                ErrorCode::NONE => {}
                code if code.is_retriable() => return Ok(()),
                code => return Err(Failure::new(format!("a commit on a full disk: {code}"))),
            }
        }
        Err(Failure::new("there is always room for commits"))
    }

    /// There is no room: what is written is refused, and no more than that.
    pub(super) fn refused(&mut self) -> Result<(), Failure> {
        let batch = match &self.refused {
            Some(batch) => batch.clone(),
            None => self.batch(SMALL)?,
        };
        match self.produce(&batch)? {
            ErrorCode::KAFKA_STORAGE_ERROR => Ok(()),
            code => Err(Failure::new(format!("a record on a full disk: {code}"))),
        }
    }

    /// There is room: what was refused is taken.
    pub(super) fn until_taken(&mut self) -> Result<(), Failure> {
        let Some(batch) = self.refused.take() else {
            return self.write_some();
        };
        wait_for("a record that is taken", LIMIT, || {
            match self.produce(&batch)? {
                ErrorCode::NONE => Ok(Some(())),
                ErrorCode::KAFKA_STORAGE_ERROR => Ok(None),
                code => Err(Failure::new(format!("a record, with room: {code}"))),
            }
        })
    }

    pub(super) fn until_committed(&mut self) -> Result<(), Failure> {
        wait_for("a commit that is taken", LIMIT, || {
            match self.commit(self.committed + 1)? {
                ErrorCode::NONE => Ok(Some(())),
                code if code.is_retriable() => Ok(None),
                code => Err(Failure::new(format!("a commit, with room: {code}"))),
            }
        })
    }

    /// A member of a group that asks for nothing that has to be written, once it has joined.
    pub(super) fn heartbeat(&mut self) -> Result<(), Failure> {
        let joins = self.epoch == 0;
        wait_for("a heartbeat that is answered", LIMIT, || {
            let request = ConsumerGroupHeartbeatRequest {
                group_id: MEMBERS.into(),
                member_id: MEMBER.into(),
                member_epoch: self.epoch,
                rebalance_timeout_ms: if joins { 300_000 } else { -1 },
                subscribed_topic_names: joins.then(|| vec![TOPIC.into()]),
                topic_partitions: joins.then(Vec::new),
                ..Default::default()
            };
            let answer = self.ask(&request, 1)?;
            match answer.error_code {
                ErrorCode::NONE => {
                    self.epoch = answer.member_epoch;
                    Ok(Some(()))
                }
                code if code.is_retriable() => Ok(None),
                code => Err(Failure::new(format!("a heartbeat: {code}"))),
            }
        })
    }

    /// Everything that was acknowledged is there, and nothing else.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        let mut next = 0;
        while next < self.acknowledged {
            let before = next;
            let request = FetchRequest {
                max_wait_ms: 0,
                max_bytes: 1 << 20,
                topics: vec![FetchTopic {
                    topic: TOPIC.into(),
                    partitions: vec![FetchPartition {
                        partition: 0,
                        fetch_offset: next,
                        partition_max_bytes: 1 << 20,
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                ..Default::default()
            };
            let answer = self.ask(&request, 12)?;
            let mut data = answer.responses.into_iter().flat_map(|it| it.partitions);
            let Some(data) = data.next() else {
                return Err(Failure::new("a fetch was answered without its partition"));
            };
            if data.error_code.is_error() {
                let code = data.error_code;
                return Err(Failure::new(format!("reading from offset {next}: {code}")));
            }
            let unreadable = |error| Failure::new(format!("behind {before}: {error}"));
            let mut bytes = data.records.unwrap_or_default();
            while !bytes.is_empty() {
                let batch = Batch::split_from(&mut bytes).map_err(unreadable)?;
                batch.check_crc().map_err(unreadable)?;
                for record in &batch.records(1 << 24).map_err(unreadable)? {
                    let record = record.map_err(unreadable)?;
                    let text = str::from_utf8(record.value.unwrap_or_default());
                    let number: Option<i64> = text.ok().and_then(|it| it.trim_end().parse().ok());
                    if (record.offset, number) != (next, Some(next)) {
                        let offset = record.offset;
                        return Err(Failure::new(format!("{number:?} is at offset {offset}")));
                    }
                    next += 1;
                }
            }
            if next == before {
                return Err(Failure::new(format!(
                    "{} records were acknowledged, and {next} are there",
                    self.acknowledged
                )));
            }
        }
        if next > self.acknowledged {
            return Err(Failure::new("a record is there that was refused"));
        }
        self.check_committed()
    }

    fn check_committed(&mut self) -> Result<(), Failure> {
        let request = OffsetFetchRequest {
            groups: vec![OffsetFetchRequestGroup {
                group_id: GROUP.into(),
                topics: None,
                ..Default::default()
            }],
            ..Default::default()
        };
        let found = wait_for("the offsets of a group", LIMIT, || {
            let answer = self.ask(&request, 8)?;
            let Some(group) = answer.groups.into_iter().next() else {
                return Err(Failure::new("offsets were not answered"));
            };
            match group.error_code {
                ErrorCode::NONE => {
                    let partitions = group.topics.iter().flat_map(|it| &it.partitions);
                    Ok(partitions.map(|it| Some(it.committed_offset)).next())
                }
                code if code.is_retriable() => Ok(None),
                code => Err(Failure::new(format!("fetching offsets: {code}"))),
            }
        })?;
        if found == Some(self.committed) {
            Ok(())
        } else {
            Err(Failure::new(format!(
                "{} was acknowledged, and {found:?} is committed",
                self.committed
            )))
        }
    }
}
