//! What is known of the cluster: brokers, topics, partitions and their leaders.

use std::sync::Arc;

use bytestring::ByteString;
use kohort_wire::{ErrorCode, Uuid, messages::*};
use rustc_hash::FxHashMap;

use crate::TopicPartition;

/// What is known of the cluster. A snapshot: it does not change.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    cluster_id: Option<ByteString>,
    controller: Option<i32>,
    brokers: FxHashMap<i32, Arc<BrokerMetadata>>,
    topics: FxHashMap<ByteString, Arc<TopicMetadata>>,
    names: FxHashMap<Uuid, ByteString>,
}

/// A broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerMetadata {
    /// Its id.
    pub id: i32,
    /// Its host.
    pub host: ByteString,
    /// Its port.
    pub port: i32,
    /// The rack in which it stands.
    pub rack: Option<ByteString>,
}

impl BrokerMetadata {
    /// `host:port`.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicMetadata {
    /// Its name.
    pub name: ByteString,
    /// Its id; zero if the broker is too old to have any.
    pub id: Uuid,
    /// Whether it is Kafka's own, like `__consumer_offsets`.
    pub internal: bool,
    /// Its partitions, in order; the index is the number.
    pub partitions: Vec<PartitionMetadata>,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// Its number.
    pub partition: i32,
    /// The broker that leads it, if one does.
    pub leader: Option<i32>,
    /// The leader's epoch, or −1.
    pub leader_epoch: i32,
    /// The brokers that hold it.
    pub replicas: Vec<i32>,
    /// Those of them that are in sync.
    pub in_sync: Vec<i32>,
    /// Those of them that are offline.
    pub offline: Vec<i32>,
}

impl Metadata {
    /// The cluster's id.
    pub fn cluster_id(&self) -> Option<&ByteString> {
        self.cluster_id.as_ref()
    }

    /// The broker to ask for what concerns the whole cluster.
    pub fn controller(&self) -> Option<i32> {
        self.controller
    }

    /// All brokers, in no particular order.
    pub fn brokers(&self) -> impl Iterator<Item = &BrokerMetadata> {
        self.brokers.values().map(|broker| &**broker)
    }

    /// A broker.
    pub fn broker(&self, id: i32) -> Option<&BrokerMetadata> {
        self.brokers.get(&id).map(|broker| &**broker)
    }

    /// The topics that are known, in no particular order: those that were asked for.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicMetadata>> {
        self.topics.values()
    }

    /// A topic, if it is known.
    pub fn topic(&self, name: &str) -> Option<&Arc<TopicMetadata>> {
        self.topics.get(name)
    }

    /// A topic by its id, if it is known.
    pub fn topic_by_id(&self, id: Uuid) -> Option<&Arc<TopicMetadata>> {
        self.topics.get(self.names.get(&id)?)
    }

    /// A partition, if it is known.
    pub fn partition(&self, partition: &TopicPartition) -> Option<&PartitionMetadata> {
        let index = usize::try_from(partition.partition).ok()?;
        self.topics.get(&partition.topic)?.partitions.get(index)
    }

    /// The broker that leads a partition, if it is known and has one.
    pub fn leader(&self, partition: &TopicPartition) -> Option<i32> {
        self.partition(partition)?.leader
    }

    pub(super) fn forget_topic(&mut self, name: &str) {
        if let Some(topic) = self.topics.remove(name) {
            self.names.remove(&topic.id);
        }
    }

    /// Takes over an answer. Topics that it does not mention stay, unless `all` were asked for.
    /// Returns the errors of topics.
    pub(super) fn update(
        &mut self,
        response: &MetadataResponse,
        all: bool,
    ) -> Vec<(ByteString, ErrorCode)> {
        if response.cluster_id.is_some() {
            self.cluster_id = response.cluster_id.as_ref().map(own);
        }
        self.controller = (response.controller_id >= 0).then_some(response.controller_id);
        // Brokers that are still starting know none; better the old ones than none.
        if !response.brokers.is_empty() {
            let brokers = response.brokers.iter().map(|broker| {
                let metadata = BrokerMetadata {
                    id: broker.node_id,
                    host: own(&broker.host),
                    port: broker.port,
                    rack: broker.rack.as_ref().map(own),
                };
                (broker.node_id, Arc::new(metadata))
            });
            self.brokers = brokers.collect();
        }
        let mut old = if all {
            std::mem::take(&mut self.topics)
        } else {
            FxHashMap::default()
        };
        if all {
            self.names.clear();
        }
        let mut errors = Vec::new();
        for topic in &response.topics {
            let Some(name) = &topic.name else { continue };
            match topic.error_code {
                ErrorCode::NONE => {}
                // The topic is there, a leader is not yet.
                ErrorCode::LEADER_NOT_AVAILABLE if !topic.partitions.is_empty() => {}
                code => {
                    if code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
                        self.forget_topic(name);
                    } else if let Some((name, old)) = old.remove_entry(name) {
                        self.names.insert(old.id, name.clone());
                        self.topics.insert(name, old);
                    }
                    errors.push((own(name), code));
                    continue;
                }
            }
            let name = own(name);
            let old = old
                .remove(&name)
                .or_else(|| self.topics.get(&name).cloned());
            let new = Arc::new(topic_metadata(topic, name.clone(), old.as_deref()));
            if let Some(old) = old.filter(|old| old.id != new.id) {
                self.names.remove(&old.id);
            }
            if !new.id.is_zero() {
                self.names.insert(new.id, name.clone());
            }
            self.topics.insert(name, new);
        }
        errors
    }

    /// Takes over a leader that an answer to Produce or Fetch told of (KIP-951), if it is newer.
    pub(super) fn update_leader(
        &mut self,
        partition: &TopicPartition,
        leader: i32,
        epoch: i32,
    ) -> bool {
        let Some(topic) = self.topics.get_mut(&partition.topic) else {
            return false;
        };
        let index = usize::try_from(partition.partition).unwrap_or(usize::MAX);
        match topic.partitions.get(index) {
            Some(known) if known.leader_epoch < epoch => {}
            _ => return false,
        }
        let known = &mut Arc::make_mut(topic).partitions[index];
        known.leader = (leader >= 0).then_some(leader);
        known.leader_epoch = epoch;
        true
    }

    /// Forgets the controller, so that it is looked up. Returns whether it was known.
    pub(super) fn forget_controller(&mut self) -> bool {
        self.controller.take().is_some()
    }

    /// Forgets the leader of a partition, so that it is looked up. Returns whether it was known.
    pub(super) fn forget_leader(&mut self, partition: &TopicPartition) -> bool {
        if self.leader(partition).is_none() {
            return false;
        }
        let index = usize::try_from(partition.partition).ok();
        let topic = self.topics.get_mut(&partition.topic);
        let known = index
            .zip(topic)
            .and_then(|(index, topic)| Arc::make_mut(topic).partitions.get_mut(index));
        known.and_then(|known| known.leader.take()).is_some()
    }

    /// Adds a broker that such an answer told of.
    pub(super) fn add_broker(&mut self, broker: BrokerMetadata) {
        self.brokers.insert(broker.id, Arc::new(broker));
    }
}

fn topic_metadata(
    topic: &MetadataResponseTopic,
    name: ByteString,
    old: Option<&TopicMetadata>,
) -> TopicMetadata {
    // A topic that was deleted and created again starts anew.
    let old = old.filter(|old| old.id == topic.topic_id);
    let mut partitions: Vec<_> = topic
        .partitions
        .iter()
        .map(|partition| {
            let number = partition.partition_index;
            let newer = old
                .and_then(|old| old.partitions.get(usize::try_from(number).ok()?))
                .filter(|old| old.leader_epoch > partition.leader_epoch);
            // A broker that lags behind must not bring back a former leader (KIP-320).
            let (leader, leader_epoch) = match newer {
                Some(newer) => (newer.leader, newer.leader_epoch),
                None => (
                    (partition.leader_id >= 0).then_some(partition.leader_id),
                    partition.leader_epoch,
                ),
            };
            PartitionMetadata {
                partition: number,
                leader,
                leader_epoch,
                replicas: partition.replica_nodes.clone(),
                in_sync: partition.isr_nodes.clone(),
                offline: partition.offline_replicas.clone(),
            }
        })
        .collect();
    partitions.sort_by_key(|partition| partition.partition);
    // So that the index is the number, whatever the broker sent.
    let in_order = partitions
        .iter()
        .zip(0..)
        .take_while(|(p, n)| p.partition == *n);
    let whole = in_order.count();
    partitions.truncate(whole);
    TopicMetadata {
        name,
        id: topic.topic_id,
        internal: topic.is_internal,
        partitions,
    }
}

/// A copy that does not keep the whole frame.
pub(crate) fn own(text: &ByteString) -> ByteString {
    ByteString::from(&**text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(id: u128, partitions: &[(i32, i32, i32)]) -> MetadataResponse {
        MetadataResponse {
            topics: vec![MetadataResponseTopic {
                name: Some("t".into()),
                topic_id: Uuid(id),
                partitions: partitions
                    .iter()
                    .map(
                        |&(partition_index, leader_id, leader_epoch)| MetadataResponsePartition {
                            partition_index,
                            leader_id,
                            leader_epoch,
                            ..Default::default()
                        },
                    )
                    .collect(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    fn leader(metadata: &Metadata, partition: i32) -> Option<i32> {
        metadata.leader(&TopicPartition::new("t", partition))
    }

    #[test]
    fn an_older_leader_epoch_does_not_bring_back_a_former_leader() {
        let mut metadata = Metadata::default();
        metadata.update(&response(7, &[(1, 4, 2), (0, 3, 5)]), false);
        metadata.update(&response(7, &[(0, 1, 4), (1, -1, 3)]), false);
        assert_eq!(
            (leader(&metadata, 0), leader(&metadata, 1)),
            (Some(3), None)
        );
    }

    #[test]
    fn a_topic_created_again_starts_anew() {
        let mut metadata = Metadata::default();
        metadata.update(&response(7, &[(0, 3, 5)]), false);
        metadata.update(&response(8, &[(0, 1, 0)]), false);
        assert_eq!(leader(&metadata, 0), Some(1));
        assert!(metadata.topic_by_id(Uuid(7)).is_none());
        assert!(metadata.topic_by_id(Uuid(8)).is_some());
    }

    #[test]
    fn topics_that_are_gone_are_forgotten_when_all_are_asked_for() {
        let mut metadata = Metadata::default();
        metadata.update(&response(7, &[(0, 3, 5)]), false);
        metadata.update(&MetadataResponse::default(), false);
        assert!(metadata.topic("t").is_some());
        metadata.update(&MetadataResponse::default(), true);
        assert!(metadata.topic("t").is_none());
    }

    #[test]
    fn a_leader_that_an_answer_tells_of_counts_only_if_it_is_newer() {
        let mut metadata = Metadata::default();
        metadata.update(&response(7, &[(0, 3, 5)]), false);
        let partition = TopicPartition::new("t", 0);
        assert!(!metadata.update_leader(&partition, 9, 5));
        assert!(metadata.update_leader(&partition, 9, 6));
        assert_eq!(leader(&metadata, 0), Some(9));
    }
}
