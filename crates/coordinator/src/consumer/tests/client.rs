//! Members that behave as clients do.

use std::collections::{BTreeMap, BTreeSet};

use kohort_wire::{ErrorCode, Uuid, messages::*};

use super::world::World;

/// A member that does what a client does: it takes what it is assigned, gives up what it is not,
/// and says so with its next heartbeat.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) group_id: String,
    pub(crate) id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) epoch: i32,
    pub(crate) topics: Option<Vec<String>>,
    pub(crate) regex: Option<String>,
    pub(crate) assignor: Option<String>,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) owned: BTreeSet<(Uuid, i32)>,
    /// What it has been assigned last.
    pub(crate) assigned: BTreeSet<(Uuid, i32)>,
    /// Whether it never gets to the end of a revocation.
    pub(crate) keeps_all: bool,
    /// Whether its next heartbeat says everything.
    says_all: bool,
    said_owned: Option<BTreeSet<(Uuid, i32)>>,
}

impl Client {
    pub(crate) fn new(id: &str, topics: &[&str]) -> Client {
        Client {
            group_id: "group".to_owned(),
            id: id.to_owned(),
            instance_id: None,
            epoch: 0,
            topics: Some(topics.iter().map(|&topic| topic.to_owned()).collect()),
            regex: None,
            assignor: None,
            rebalance_timeout_ms: 60_000,
            owned: BTreeSet::new(),
            assigned: BTreeSet::new(),
            keeps_all: false,
            says_all: true,
            said_owned: None,
        }
    }

    pub(crate) fn with_regex(id: &str, regex: &str) -> Client {
        Client {
            topics: None,
            regex: Some(regex.to_owned()),
            ..Client::new(id, &[])
        }
    }

    pub(crate) fn instance(mut self, instance_id: &str) -> Client {
        self.instance_id = Some(instance_id.to_owned());
        self
    }

    /// Says everything with the next heartbeat.
    pub(crate) fn say_all(&mut self) {
        self.says_all = true;
    }

    pub(crate) fn subscribe(&mut self, topics: &[&str]) {
        self.topics = Some(topics.iter().map(|&topic| topic.to_owned()).collect());
        self.regex = self.regex.take().map(|_| String::new());
        self.says_all = true;
    }

    /// The next heartbeat.
    pub(crate) fn request(&mut self) -> ConsumerGroupHeartbeatRequest {
        let says_all = self.says_all || self.epoch == 0;
        let owned = match self.epoch {
            0 => BTreeSet::new(),
            _ => self.owned.clone(),
        };
        let says_owned = says_all || self.said_owned.as_ref() != Some(&owned);
        self.said_owned = Some(owned.clone());
        self.says_all = false;
        ConsumerGroupHeartbeatRequest {
            group_id: (&*self.group_id).into(),
            member_id: (&*self.id).into(),
            member_epoch: self.epoch,
            instance_id: self.instance_id.as_deref().map(Into::into),
            rack_id: None,
            rebalance_timeout_ms: if says_all {
                self.rebalance_timeout_ms
            } else {
                -1
            },
            subscribed_topic_names: self
                .topics
                .as_ref()
                .filter(|_| says_all)
                .map(|topics| topics.iter().map(|topic| (&**topic).into()).collect()),
            subscribed_topic_regex: self.regex.as_deref().filter(|_| says_all).map(Into::into),
            server_assignor: self
                .assignor
                .as_deref()
                .filter(|_| says_all)
                .map(Into::into),
            topic_partitions: says_owned.then(|| by_topic(&owned)),
        }
    }

    /// Takes an answer.
    pub(crate) fn take(&mut self, response: &ConsumerGroupHeartbeatResponse) {
        match response.error_code {
            ErrorCode::NONE => {}
            ErrorCode::FENCED_MEMBER_EPOCH | ErrorCode::UNKNOWN_MEMBER_ID => {
                self.owned.clear();
                self.assigned.clear();
                self.epoch = 0;
                self.says_all = true;
                return;
            }
            other => panic!("member {}: {other}: {:?}", self.id, response.error_message),
        }
        self.id = response
            .member_id
            .as_deref()
            .expect("a member id")
            .to_owned();
        self.epoch = response.member_epoch;
        if let Some(assignment) = &response.assignment {
            self.assigned = assignment
                .topic_partitions
                .iter()
                .flat_map(|topic| topic.partitions.iter().map(|&p| (topic.topic_id, p)))
                .collect();
            if self.keeps_all {
                self.owned.extend(self.assigned.iter().copied());
            } else {
                self.owned = self.assigned.clone();
            }
        }
    }

    /// Heartbeats once.
    pub(crate) fn beat(&mut self, world: &mut World) -> ConsumerGroupHeartbeatResponse {
        let request = self.request();
        let response = world.heartbeat(1, request);
        self.take(&response);
        response
    }

    pub(crate) fn leave(&mut self, world: &mut World, epoch: i32) {
        let request = ConsumerGroupHeartbeatRequest {
            group_id: (&*self.group_id).into(),
            member_id: (&*self.id).into(),
            member_epoch: epoch,
            instance_id: self.instance_id.as_deref().map(Into::into),
            ..ConsumerGroupHeartbeatRequest::default()
        };
        let response = world.heartbeat(1, request);
        assert_eq!(response.error_code, ErrorCode::NONE);
        assert_eq!(response.member_epoch, epoch);
        self.owned.clear();
        self.assigned.clear();
        self.epoch = 0;
    }

    /// What it owns of a topic.
    pub(crate) fn of(&self, topic_id: Uuid) -> Vec<i32> {
        self.owned
            .iter()
            .filter(|(id, _)| *id == topic_id)
            .map(|&(_, p)| p)
            .collect()
    }
}

fn by_topic(owned: &BTreeSet<(Uuid, i32)>) -> Vec<TopicIdPartitions> {
    let mut topics: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
    for &(topic_id, partition) in owned {
        topics.entry(topic_id).or_default().push(partition);
    }
    topics
        .into_iter()
        .map(|(topic_id, partitions)| TopicIdPartitions {
            topic_id,
            partitions,
        })
        .collect()
}

/// That no two clients own a partition.
pub(crate) fn assert_disjoint<'a>(clients: impl IntoIterator<Item = &'a Client>) {
    let mut owners: BTreeMap<(Uuid, i32), &str> = BTreeMap::new();
    for client in clients {
        for &place in &client.owned {
            if let Some(other) = owners.insert(place, &client.id) {
                panic!("{place:?} is owned by {other} and {}", client.id);
            }
        }
    }
}
