//! The broker that serves fetches and ListOffsets: it keeps the fetch sessions of the nodes.

use std::collections::BTreeMap;

use kohort_coordinator::inspect::Place;
use kohort_member::{
    Millis,
    reader::{Leader, Metadata, ReaderRequest, Target, TopicPartition},
};
use kohort_wire::{ErrorCode, Uuid, messages::*};

use crate::{
    node::{Key, NodeId},
    world::{Event, World},
};

/// The one broker there is.
const BROKER: i32 = 0;

/// The fetch session of a node (KIP-227).
#[derive(Debug, Default)]
pub(crate) struct FetchSession {
    id: i32,
    epoch: i32,
    /// Where each partition is fetched from.
    partitions: BTreeMap<Place, i64>,
}

impl FetchSession {
    /// Takes over what a request says. An error if it is for another session.
    fn update(&mut self, request: &FetchRequest, new_id: i32) -> Result<(), ErrorCode> {
        if request.session_id == 0 {
            *self = FetchSession {
                id: new_id,
                epoch: 0,
                partitions: BTreeMap::new(),
            };
        } else if request.session_id != self.id {
            return Err(ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
        } else if request.session_epoch != self.epoch + 1 {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        } else {
            self.epoch += 1;
        }
        for topic in &request.forgotten_topics_data {
            for partition in &topic.partitions {
                self.partitions.remove(&(topic.topic_id, *partition));
            }
        }
        for topic in &request.topics {
            for partition in &topic.partitions {
                let place = (topic.topic_id, partition.partition);
                self.partitions.insert(place, partition.fetch_offset);
            }
        }
        Ok(())
    }
}

/// The topics as a node finds them in its metadata.
impl Metadata for crate::cluster::Cluster {
    fn topic_id(&self, topic: &str) -> Option<Uuid> {
        self.get(topic).map(|topic| topic.id)
    }

    fn partition(&self, name: &TopicPartition) -> Option<Leader> {
        let partitions = self.get(&name.topic)?.ends.len() as i32;
        let exists = (0..partitions).contains(&name.partition);
        exists.then_some(Leader {
            leader: Some(BROKER),
            epoch: 0,
        })
    }

    fn has_broker(&self, id: i32) -> bool {
        id == BROKER
    }
}

impl World {
    /// Sends what the reader of a node asks for.
    pub(crate) fn read_on(&mut self, node: NodeId) {
        let it = &mut self.nodes[node];
        if !it.is_up() {
            return;
        }
        let life = it.life;
        let now = it.clock.read(self.now);
        let plan = it.reader.plan(&self.cluster, now);
        self.note_topics(node);
        for request in plan.requests {
            match request {
                ReaderRequest::Fetch { request, .. } => {
                    let ms = self.random.between(1, self.profile.latency_ms);
                    let waits_until = self.now + 500;
                    let event = Event::Fetch {
                        node,
                        life,
                        request: Box::new(request),
                        waits_until,
                    };
                    self.later(ms, event);
                }
                ReaderRequest::FindCommitted(asked) => self.find_committed(node, asked),
                ReaderRequest::FindOffsets(asked) => {
                    let ms = self.random.between(1, self.profile.latency_ms);
                    let event = Event::FindOffsets { node, life, asked };
                    self.later(ms, event);
                }
                // There is one leader epoch.
                ReaderRequest::CheckPositions(_, checks) => {
                    let reader = &mut self.nodes[node].reader;
                    for (name, check) in &checks {
                        reader.position_checked(name, check, None);
                    }
                }
                ReaderRequest::Refresh(_) => self.nodes[node].reader.metadata_refreshed(true, now),
            }
        }
    }

    /// A fetch gets to the broker, or has waited there for records.
    pub(crate) fn fetch(
        &mut self,
        node: NodeId,
        life: u64,
        request: Box<FetchRequest>,
        waits_until: Millis,
    ) {
        let new_id = self.number() as i32;
        let batches_max = self.random.between(1, 4) as usize;
        let is_lost = !self.is_calm && self.random.percent(self.profile.loss_percent);
        let is_forgotten = !self.is_calm && self.random.percent(1);
        let session = &mut self.nodes[node].session;
        if is_forgotten {
            *session = FetchSession::default();
        }
        let mut response = FetchResponse::default();
        match session.update(&request, new_id) {
            Err(code) => response.error_code = code,
            Ok(()) => {
                response.session_id = session.id;
                let session = std::mem::take(session);
                for (place, offset) in &session.partitions {
                    let data = self.read(*place, *offset, batches_max);
                    if data.error_code.is_error() || data.records.is_some() {
                        response.responses.push(FetchableTopicResponse {
                            topic_id: place.0,
                            partitions: vec![data],
                            ..FetchableTopicResponse::default()
                        });
                    }
                }
                self.nodes[node].session = session;
                let is_empty = response.responses.is_empty();
                if is_empty && self.now < waits_until {
                    // The session does not move on before the response.
                    self.nodes[node].session.epoch -= i32::from(request.session_id != 0);
                    let ms = (waits_until - self.now).min(100);
                    let event = Event::Fetch {
                        node,
                        life,
                        request,
                        waits_until,
                    };
                    return self.later(ms, event);
                }
            }
        }
        let ms = self.random.between(1, self.profile.latency_ms);
        let response = (!is_lost).then_some(response);
        let response = Box::new(response);
        let event = Event::Fetched {
            node,
            life,
            response,
        };
        self.later(ms, event);
    }

    fn read(&self, place: Place, offset: i64, batches_max: usize) -> FetchPartitionData {
        let mut data = FetchPartitionData {
            partition_index: place.1,
            ..FetchPartitionData::default()
        };
        let Some(end) = self.cluster.end(place.0, place.1) else {
            data.error_code = ErrorCode::UNKNOWN_TOPIC_ID;
            return data;
        };
        if offset > end || offset < self.cluster.start(place.0, place.1) {
            data.error_code = ErrorCode::OFFSET_OUT_OF_RANGE;
            return data;
        }
        data.high_watermark = end;
        data.last_stable_offset = end;
        if offset < end {
            let read = self.cluster.logs.read(place, offset, batches_max);
            data.records = Some(read.records.into());
            data.aborted_transactions = Some(read.aborted);
        }
        data
    }

    pub(crate) fn fetched(&mut self, node: NodeId, response: Option<FetchResponse>) {
        let it = &mut self.nodes[node];
        let now = it.clock.read(self.now);
        it.reader.fetched(BROKER, response, &self.cluster, now);
        self.read_on(node);
    }

    /// Offsets that the reader looks up because nothing is committed, or because the records at its
    /// position are gone.
    pub(crate) fn find_offsets(&mut self, node: NodeId, asked: Vec<(TopicPartition, Target, u64)>) {
        for (name, target, lease) in asked {
            let now = self.nodes[node].clock.read(self.now);
            let key: Key = (name.topic.clone(), name.partition);
            let id = self.cluster.get(&name.topic).map(|topic| topic.id);
            let place = id.map(|id| (id, name.partition));
            let end = place.and_then(|place| self.cluster.end(place.0, place.1));
            let (Some(place), Some(end)) = (place, end) else {
                let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                let reader = &mut self.nodes[node].reader;
                reader.find_offset_failed(&name, lease, target, code.into(), now);
                continue;
            };
            let offset = match target {
                Target::Latest => end,
                _ => self.cluster.start(place.0, place.1),
            };
            let before = self.nodes[node].reader.position(&name);
            self.nodes[node]
                .reader
                .offset_found(&name, lease, Some(offset));
            let held = self.nodes[node].partitions.get(&key);
            // Found by name in a topic that was created since: the next fetch, by id, is refused.
            let is_other = held.is_some_and(|held| held.reads != place.0);
            if is_other || self.nodes[node].reader.position(&name) == before {
                continue;
            }
            self.starts_where_client_says(node, &key, place, before.flatten(), offset);
        }
        self.read_on(node);
    }
}
