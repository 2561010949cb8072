//! What follows for batches from the answers to them.

use kohort_wire::messages::*;
use tokio::time::Instant;

use super::{
    answer::{Answered, Verdict, judge, outcomes},
    batch::Batch,
    queue::Queue,
    sender::Sender,
};
use crate::{ByteString, Error, Result, TopicPartition, rpc::BrokerMetadata};

impl Sender {
    pub(super) fn on_produced(&mut self, batches: Vec<Batch>, response: Result<ProduceResponse>) {
        if let Ok(response) = &response {
            for node in &response.node_endpoints {
                self.cluster.note_broker(BrokerMetadata {
                    id: node.node_id,
                    host: ByteString::from(&*node.host),
                    port: node.port,
                    rack: node.rack.as_deref().map(ByteString::from),
                });
            }
        }
        let acks = self.accumulator.config.acks;
        let metadata = self.cluster.metadata();
        let mut outdated = Vec::new();
        for (batch, answered) in outcomes(batches, response, acks, &metadata) {
            self.settle(batch, answered, &mut outdated);
        }
        if !outdated.is_empty() {
            self.refresh(outdated);
        }
    }

    fn settle(&mut self, batch: Batch, answered: Answered, outdated: &mut Vec<ByteString>) {
        let partition = batch.outcome.partition.clone();
        let first = self.queue(&partition, |queue| queue.returned(batch.place));
        if let Some((leader, epoch)) = answered.leader {
            self.cluster.note_leader(&partition, leader, epoch);
        }
        let idempotent = self.accumulator.config.idempotence;
        match judge(answered.result, idempotent, first) {
            Verdict::Done(written) => {
                self.queue(&partition, |queue| {
                    queue.failures = 0;
                    queue.last = None;
                });
                self.accumulator.finish(&batch, Ok(written));
            }
            Verdict::Split(error) => match self.accumulator.split(&batch) {
                Some(halves) => {
                    tracing::debug!(%partition, records = batch.count, "a batch is split");
                    self.queue(&partition, |queue| {
                        halves.into_iter().for_each(|half| queue.put_back(half));
                    });
                }
                None => {
                    self.gap(&partition);
                    let error = too_large(error, batch.size());
                    self.accumulator.finish(&batch, Err(error));
                }
            },
            Verdict::Failed(error) => {
                // What follows in the partition has sequence numbers after those of this batch.
                self.gap(&partition);
                self.accumulator.finish(&batch, Err(error));
            }
            Verdict::Again {
                error,
                renew,
                moved,
            } => {
                tracing::debug!(%partition, %error, "records are sent again");
                if renew {
                    self.gap(&partition);
                }
                if moved {
                    outdated.push(partition.topic.clone());
                }
                let backoff = self.accumulator.config.client.retry_backoff;
                self.queue(&partition, |queue| {
                    queue.failures += 1;
                    queue.last = Some(error);
                    queue.not_before = Some(Instant::now() + backoff.after(queue.failures));
                    queue.put_back(batch);
                });
            }
        }
    }

    pub(super) fn queue<T>(
        &self,
        partition: &TopicPartition,
        change: impl FnOnce(&mut Queue) -> T,
    ) -> T {
        let mut state = self.accumulator.lock();
        let topic = state.topics.get_mut(&partition.topic);
        let queues = topic.map(|topic| &mut topic.partitions);
        let queue = queues.and_then(|queues| queues.get_mut(partition.partition as usize));
        change(queue.expect("partitions are never forgotten"))
    }

    /// The sequence numbers of a partition have a gap.
    pub(super) fn gap(&mut self, partition: &TopicPartition) {
        if self.accumulator.config.idempotence {
            self.renew = true;
            self.queue(partition, |queue| queue.renew = true);
        }
    }
}

/// A single record is longer than the broker allows.
fn too_large(error: Error, size: usize) -> Error {
    match error {
        Error::Kafka {
            api, subject, code, ..
        } => Error::Kafka {
            api,
            subject,
            code,
            message: Some(
                format!(
                    "a record of {size} bytes is longer than max.message.bytes of the topic, or \
                     message.max.bytes of the broker, allows"
                )
                .into(),
            ),
        },
        error => error,
    }
}
