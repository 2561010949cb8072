//! What a fetch response means for each partition.

use kohort_wire::{ApiKey, ErrorCode, messages::*};
use rustc_hash::FxHashMap;

use super::{
    Reader, ReaderError, TopicPartition,
    fetched::Fetched,
    offsets::Position,
    partition::Next,
    plan::{Asked, Metadata},
};
use crate::Millis;

impl Reader {
    /// The response of a broker to a fetch, or `None` if there was none. `metadata` already includes
    /// the leaders that the response names. Returns the size of what was fetched, by partition.
    pub fn fetched(
        &mut self,
        broker: i32,
        response: Option<FetchResponse>,
        metadata: &impl Metadata,
        now: Millis,
    ) -> Vec<(TopicPartition, usize)> {
        let asked = self.fetch_ended(broker, response.as_ref(), now);
        for asked in &asked {
            let partition = self.partitions.get_mut(&asked.name);
            if let Some(partition) = partition.filter(|p| p.lease == asked.lease) {
                partition.is_in_flight = false;
            }
        }
        let outdated = match &response {
            None => true,
            // The next fetch starts a new session.
            Some(response) => !matches!(
                response.error_code,
                ErrorCode::NONE
                    | ErrorCode::FETCH_SESSION_ID_NOT_FOUND
                    | ErrorCode::INVALID_FETCH_SESSION_EPOCH
            ),
        };
        if outdated {
            let topics = asked.iter().map(|asked| asked.name.topic.clone());
            self.outdated.extend(topics);
        }
        let response = response.filter(|response| !response.error_code.is_error());
        let Some(response) = response else {
            return Vec::new();
        };
        let by_name: FxHashMap<_, _> = asked.iter().map(|asked| (&asked.name, asked)).collect();
        let names = asked
            .iter()
            .map(|asked| (asked.topic_id, &asked.name.topic));
        let names: FxHashMap<_, _> = names.collect();
        let mut sizes = Vec::new();
        for topic in response.responses {
            let name = match names.get(&topic.topic_id) {
                Some(name) if !topic.topic_id.is_zero() => (*name).clone(),
                _ => topic.topic,
            };
            for data in topic.partitions {
                let name = TopicPartition::new(name.clone(), data.partition_index);
                if let Some(asked) = by_name.get(&name) {
                    let size = self.partition_fetched(broker, asked, data, metadata, now);
                    sizes.extend(size.map(|size| (name, size)));
                }
            }
        }
        sizes
    }

    fn partition_fetched(
        &mut self,
        broker: i32,
        asked: &Asked,
        data: FetchPartitionData,
        metadata: &impl Metadata,
        now: Millis,
    ) -> Option<usize> {
        let name = &asked.name;
        let partition = self.partitions.get_mut(name);
        let partition = partition.filter(|partition| partition.lease == asked.lease)?;
        if data.error_code.is_error() {
            let leader = metadata.partition(name).and_then(|known| known.leader);
            self.partition_failed(broker, asked, data.error_code, leader, now);
            return None;
        }
        let known = |offset: i64| (offset >= 0).then_some(offset);
        partition.failures = 0;
        partition.high_watermark = known(data.high_watermark);
        partition.last_stable_offset = known(data.last_stable_offset);
        let diverging = data.diverging_epoch;
        if diverging.end_offset >= 0 {
            // What was read last is not in the log any more (KIP-320).
            let end = Position {
                offset: diverging.end_offset,
                leader_epoch: (diverging.epoch >= 0).then_some(diverging.epoch),
            };
            self.truncated(name, asked.offset, end);
            return None;
        }
        if data.preferred_read_replica >= 0 {
            let until = now + self.config.metadata_max_age.as_millis() as Millis;
            partition.preferred_replica = Some((data.preferred_read_replica, until));
        }
        let records = data.records.unwrap_or_default();
        if records.is_empty() {
            return Some(0);
        }
        let aborted = self.config.committed_only;
        let aborted = aborted.then(|| data.aborted_transactions.unwrap_or_default());
        let fetched = Fetched::new(records, aborted, asked.offset);
        let Some((end, epoch)) = fetched.end() else {
            partition.next = Next::Stopped;
            self.report(ReaderError::Malformed {
                partition: name.clone(),
                offset: asked.offset,
                problem: "the answer holds no whole batch".to_owned(),
            });
            return None;
        };
        partition.next = Next::Fetch(Position {
            offset: end.max(asked.offset),
            leader_epoch: (epoch >= 0).then_some(epoch),
        });
        let size = fetched.size;
        partition.fetched_bytes += size;
        self.fetched_bytes += size;
        partition.fetched.push_back(fetched);
        if partition.is_deliverable() {
            self.add_turn(name);
        }
        Some(size)
    }

    fn partition_failed(
        &mut self,
        broker: i32,
        asked: &Asked,
        code: ErrorCode,
        leader: Option<i32>,
        now: Millis,
    ) {
        let name = &asked.name;
        let failures = self.back_off(name, now);
        let mut is_outdated = false;
        match code {
            ErrorCode::OFFSET_OUT_OF_RANGE => {
                let Some(partition) = self.partitions.get_mut(name) else {
                    return;
                };
                // A follower may lag behind: ask the leader.
                if partition.preferred_replica.take().is_some() && leader != Some(broker) {
                    return;
                }
                // Records that were fetched before are delivered first: until then the
                // application's position is in range. Ask again a little later.
                if partition.is_delivered_up_to(asked.offset) {
                    self.reset(name, asked.offset, failures);
                }
            }
            ErrorCode::UNKNOWN_TOPIC_ID | ErrorCode::INCONSISTENT_TOPIC_ID => is_outdated = true,
            code if code.is_retriable() => is_outdated = true,
            code => {
                // Permissions may be granted later.
                is_outdated = code == ErrorCode::TOPIC_AUTHORIZATION_FAILED;
                if !is_outdated {
                    self.stop(name);
                }
                self.report(ReaderError::Refused {
                    api: ApiKey::Fetch,
                    partition: name.clone(),
                    code,
                    message: None,
                });
            }
        }
        if is_outdated {
            self.outdated.insert(name.topic.clone());
        }
    }
}
