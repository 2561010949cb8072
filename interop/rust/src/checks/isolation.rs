//! `isolation.level`: transactions as a reader sees them. The client has no transactional producer,
//! so they are written request by request, which shows the low-level API at work too. Brokers
//! without transactions are passed over.

use kohort::consumer::Seek;
use kohort::rpc::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, EndTxnRequest, InitProducerIdRequest,
    InitProducerIdResponse, PartitionProduceData, ProduceRequest, TopicProduceData,
};
use kohort::rpc::{Destination, Lane};
use kohort::{ErrorCode, IsolationLevel, OffsetSpec, TopicPartition};
use kohort_wire::codec::Versions;
use kohort_wire::records::{BatchBuilder, Compression};

use crate::ensure_eq;
use crate::report::Report;
use crate::world::{Checked, LIMIT, QUIET, World, number, one, unique, within};

pub(crate) async fn check<'a>(world: &'a World, report: &mut Report<'a>) {
    let any = world
        .admin
        .cluster()
        .connection(&Destination::Any, Lane::Main);
    let connection = any.await;
    if connection.is_ok_and(|connection| connection.version::<EndTxnRequest>().is_ok()) {
        report.check("isolation: committed, aborted and open", levels(world));
    }
}

/// A producer of one transaction after the other.
struct Transactional<'a> {
    world: &'a World,
    id: String,
    partition: &'a TopicPartition,
    producer: InitProducerIdResponse,
    sequence: i32,
}

fn fine(code: ErrorCode) -> kohort::Result<()> {
    match code {
        ErrorCode::NONE => Ok(()),
        code => Err(kohort::Error::kafka(
            kohort::ApiKey::EndTxn,
            kohort::Subject::Cluster,
            code,
        )),
    }
}

impl<'a> Transactional<'a> {
    async fn new(world: &'a World, partition: &'a TopicPartition) -> Checked<Self> {
        let id = unique("transactional");
        let to = Destination::Transaction(id.as_str().into());
        let request = InitProducerIdRequest {
            transactional_id: Some(id.as_str().into()),
            transaction_timeout_ms: 60_000,
            ..Default::default()
        };
        let cluster = world.admin.cluster();
        // Until version 4: from 5 on the epoch rises by itself (KIP-890).
        let producer = cluster
            .ask_within(
                &to,
                Lane::Main,
                Versions::new(0, 4),
                LIMIT,
                |_| request.clone(),
                |answer| fine(answer.error_code),
            )
            .await?;
        Ok(Self {
            world,
            id,
            partition,
            producer,
            sequence: 0,
        })
    }

    async fn write(&mut self, numbers: std::ops::Range<u64>) -> Checked {
        let cluster = self.world.admin.cluster();
        let add = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: self.id.as_str().into(),
            v3_and_below_producer_id: self.producer.producer_id,
            v3_and_below_producer_epoch: self.producer.producer_epoch,
            v3_and_below_topics: vec![AddPartitionsToTxnTopic {
                name: self.partition.topic.clone(),
                partitions: vec![self.partition.partition],
            }],
            ..Default::default()
        };
        cluster
            .ask_within(
                &self.coordinator(),
                Lane::Main,
                Versions::new(0, 3),
                LIMIT,
                |_| add.clone(),
                |answer| {
                    let topics = answer.results_by_topic_v3_and_below.iter();
                    topics
                        .flat_map(|topic| &topic.results_by_partition)
                        .try_for_each(|result| fine(result.partition_error_code))
                },
            )
            .await?;
        let mut batch = BatchBuilder::new(Compression::None, None);
        batch.set_transactional(true);
        batch.set_producer(
            self.producer.producer_id,
            self.producer.producer_epoch,
            self.sequence,
        );
        for number in numbers {
            let time_ms = self.world.epoch_ms + number as i64;
            batch.append(time_ms, None, Some(number.to_string().as_bytes()), [])?;
            self.sequence += 1;
        }
        let records = batch.finish();
        let produce = ProduceRequest {
            transactional_id: Some(self.id.as_str().into()),
            acks: -1,
            timeout_ms: 10_000,
            topic_data: vec![TopicProduceData {
                name: self.partition.topic.clone(),
                partition_data: vec![PartitionProduceData {
                    index: self.partition.partition,
                    records: Some(records),
                }],
                ..Default::default()
            }],
        };
        let to = Destination::Leader(self.partition.clone());
        cluster
            .ask_within(
                &to,
                Lane::Produce,
                Versions::new(3, 11),
                LIMIT,
                |_| produce.clone(),
                |answer| {
                    let topics = answer.responses.iter();
                    topics
                        .flat_map(|topic| &topic.partition_responses)
                        .try_for_each(|result| fine(result.error_code))
                },
            )
            .await?;
        Ok(())
    }

    async fn end(&self, committed: bool) -> Checked {
        let request = EndTxnRequest {
            transactional_id: self.id.as_str().into(),
            producer_id: self.producer.producer_id,
            producer_epoch: self.producer.producer_epoch,
            committed,
        };
        let cluster = self.world.admin.cluster();
        cluster
            .ask_within(
                &self.coordinator(),
                Lane::Main,
                Versions::new(0, 3),
                LIMIT,
                |_| request.clone(),
                |answer| fine(answer.error_code),
            )
            .await?;
        Ok(())
    }

    fn coordinator(&self) -> Destination {
        Destination::Transaction(self.id.as_str().into())
    }
}

async fn levels(world: &World) -> Checked {
    let topic = world.topic("isolation", 1).await?;
    let partition = TopicPartition::new(topic.as_str(), 0);
    let mut transactions = Transactional::new(world, &partition).await?;
    transactions.write(0..10).await?;
    transactions.end(true).await?;
    transactions.write(10..20).await?;
    transactions.end(false).await?;
    transactions.write(20..30).await?;
    transactions.end(true).await?;
    let mut open = Transactional::new(world, &partition).await?;
    open.write(30..40).await?;

    let read = async |isolation: &str, count: usize| {
        let mut consumer = world.consumer(&[("isolation.level", isolation)]).await?;
        consumer.assign([(partition.clone(), Seek::Earliest)])?;
        let mut values = Vec::new();
        let reading = async {
            while values.len() < count {
                for record in &consumer.poll().await? {
                    values.push(number(record.value)?);
                }
            }
            Checked::Ok(())
        };
        within("records", LIMIT, reading).await??;
        let more = consumer.poll_for(QUIET).await?;
        ensure_eq!(more.len(), 0, "{isolation}: more");
        Checked::Ok((values, consumer.lag(&partition)?))
    };
    let all = Vec::from_iter(0..40);
    ensure_eq!(read("read_uncommitted", 40).await?.0, all, "uncommitted");
    let committed: Vec<u64> = (0..10).chain(20..30).collect();
    let (values, lag) = read("read_committed", 20).await?;
    ensure_eq!(values, committed, "committed");
    ensure_eq!(lag, Some(0), "lag up to the open transaction");
    for (isolation, end) in [
        // Three control records.
        (IsolationLevel::ReadUncommitted, 43),
        (IsolationLevel::ReadCommitted, 33),
    ] {
        let asked = [(partition.clone(), OffsetSpec::Latest)];
        let (_, listed) = one(world.admin.list_offsets(&asked, isolation).await)?;
        ensure_eq!(listed?.offset, Some(end), "{isolation:?}");
    }
    open.end(true).await?;
    let wanted: Vec<u64> = (0..10).chain(20..40).collect();
    ensure_eq!(read("read_committed", 30).await?.0, wanted, "in the end");
    Ok(())
}
