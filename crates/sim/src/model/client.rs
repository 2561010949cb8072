//! Members that are as simple as the protocols allow.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use kohort_coordinator::{Reply, Request, Token, inspect::Place};
use kohort_group::assignor::classic::{ConsumerPartitionAssignor, CooperativeSticky, GroupMember};
use kohort_wire::{
    ErrorCode, Uuid,
    codec::{Decoder, Encoder, Message},
    messages::*,
};

pub(super) const GROUP: &str = "g";
pub(super) const TOPIC: &str = "t";
pub(super) const TOPIC_ID: Uuid = Uuid(1);
/// Of members of the classic protocol.
pub(super) const SESSION_TIMEOUT_MS: i32 = 30_000;

/// A member of either protocol.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Client {
    pub(super) index: usize,
    pub(super) is_classic: bool,
    /// It has an instance id.
    pub(super) is_static: bool,
    /// Which of its two incarnations it is, each with a member id of its own.
    pub(super) incarnation: u8,
    /// The id that the coordinator gave to a classic member; empty if it has none.
    pub(super) given_id: String,
    /// The member epoch, or the generation; 0 or less if it is in no group.
    pub(super) epoch: i32,
    /// What it was told to own.
    pub(super) assigned: BTreeSet<Place>,
    /// What it has.
    pub(super) owned: BTreeSet<Place>,
    /// Its next heartbeat says everything.
    pub(super) says_all: bool,
    /// What it last said that it has.
    pub(super) said: Option<BTreeSet<Place>>,
    /// As a classic member: it has to join, or to sync.
    pub(super) phase: Phase,
    /// As a leader that has to sync: whom it gives what.
    pub(super) leads: Vec<(String, Bytes)>,
    /// The request whose answer it waits for, until others have come.
    pub(super) waits: Option<Token>,
}

/// What a classic member has to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Join,
    Sync,
    Heartbeat,
}

impl Client {
    pub(super) fn new(index: usize, is_classic: bool, is_static: bool) -> Client {
        Client {
            index,
            is_classic,
            is_static,
            incarnation: 0,
            given_id: String::new(),
            epoch: 0,
            assigned: BTreeSet::new(),
            owned: BTreeSet::new(),
            says_all: true,
            said: None,
            phase: Phase::Join,
            leads: Vec::new(),
            waits: None,
        }
    }

    pub(super) fn id(&self) -> String {
        if self.is_classic {
            self.given_id.clone()
        } else {
            format!("m{}-{}", self.index, self.incarnation)
        }
    }

    fn instance_id(&self) -> Option<kohort_wire::ByteString> {
        self.is_static.then(|| format!("i{}", self.index).into())
    }

    /// What it says next.
    pub(super) fn request(&mut self) -> Request {
        if self.is_classic {
            self.classic_request()
        } else {
            self.heartbeat()
        }
    }

    fn heartbeat(&mut self) -> Request {
        let says_all = self.says_all || self.epoch == 0;
        let says_owned = says_all || self.said.as_ref() != Some(&self.owned);
        self.said = Some(self.owned.clone());
        self.says_all = false;
        let request = ConsumerGroupHeartbeatRequest {
            group_id: GROUP.into(),
            member_id: self.id().into(),
            member_epoch: self.epoch,
            instance_id: self.instance_id(),
            rebalance_timeout_ms: if says_all { 60_000 } else { -1 },
            subscribed_topic_names: says_all.then(|| vec![TOPIC.into()]),
            topic_partitions: says_owned.then(|| by_topic(&self.owned)),
            ..ConsumerGroupHeartbeatRequest::default()
        };
        Request::ConsumerGroupHeartbeat {
            version: 1,
            request,
        }
    }

    pub(super) fn leave(&self, epoch: i32) -> Request {
        let request = ConsumerGroupHeartbeatRequest {
            group_id: GROUP.into(),
            member_id: self.id().into(),
            member_epoch: epoch,
            instance_id: self.instance_id(),
            ..ConsumerGroupHeartbeatRequest::default()
        };
        Request::ConsumerGroupHeartbeat {
            version: 1,
            request,
        }
    }

    fn classic_request(&mut self) -> Request {
        match self.phase {
            Phase::Join => {
                // It finishes one thing before it begins another.
                self.settle();
                let subscription = ConsumerProtocolSubscription {
                    topics: vec![TOPIC.into()],
                    owned_partitions: named(&self.owned),
                    // As before version 2: it would tell states apart by their numbers.
                    generation_id: -1,
                    ..ConsumerProtocolSubscription::default()
                };
                let request = JoinGroupRequest {
                    group_id: GROUP.into(),
                    session_timeout_ms: SESSION_TIMEOUT_MS,
                    rebalance_timeout_ms: 60_000,
                    member_id: self.given_id.as_str().into(),
                    group_instance_id: self.instance_id(),
                    protocol_type: "consumer".into(),
                    protocols: vec![JoinGroupProtocol {
                        name: "cooperative-sticky".into(),
                        metadata: embedded(&subscription),
                    }],
                    ..JoinGroupRequest::default()
                };
                Request::JoinGroup {
                    version: 9,
                    request,
                }
            }
            Phase::Sync => Request::SyncGroup {
                version: 5,
                request: SyncGroupRequest {
                    group_id: GROUP.into(),
                    generation_id: self.epoch,
                    member_id: self.given_id.as_str().into(),
                    group_instance_id: self.instance_id(),
                    assignments: self
                        .leads
                        .iter()
                        .map(|(member_id, assignment)| SyncGroupAssignment {
                            member_id: member_id.as_str().into(),
                            assignment: assignment.clone(),
                        })
                        .collect(),
                    ..SyncGroupRequest::default()
                },
            },
            Phase::Heartbeat => Request::Heartbeat {
                request: HeartbeatRequest {
                    group_id: GROUP.into(),
                    generation_id: self.epoch,
                    member_id: self.given_id.as_str().into(),
                    group_instance_id: self.instance_id(),
                },
            },
        }
    }

    /// Takes an answer; `None` is one that was lost.
    pub(super) fn take(&mut self, reply: Option<&Reply>, partitions: i32) {
        self.waits = None;
        if self.is_classic {
            self.leads.clear();
        }
        match reply {
            None => {
                self.says_all = true;
                if self.is_classic {
                    self.phase = Phase::Join;
                }
            }
            Some(Reply::ConsumerGroupHeartbeat(answer)) => match answer.error_code {
                ErrorCode::NONE => {
                    self.epoch = answer.member_epoch;
                    if let Some(assignment) = &answer.assignment {
                        self.assigned = places(&assignment.topic_partitions);
                    }
                    // What there is to take over is taken over at once; what is to be let go of
                    // takes its time, and comes first.
                    if self.owned.is_subset(&self.assigned) {
                        self.owned = self.assigned.clone();
                    }
                }
                // Another incarnation is still there: again later.
                ErrorCode::UNRELEASED_INSTANCE_ID => {}
                _ => self.forget(),
            },
            Some(Reply::JoinGroup(answer)) => match answer.error_code {
                ErrorCode::NONE => {
                    self.given_id = answer.member_id.to_string();
                    self.epoch = answer.generation_id;
                    self.phase = Phase::Sync;
                    self.leads = assign(&answer.members, partitions);
                }
                ErrorCode::MEMBER_ID_REQUIRED => self.given_id = answer.member_id.to_string(),
                ErrorCode::REBALANCE_IN_PROGRESS => {}
                code => self.fenced(code),
            },
            Some(Reply::SyncGroup(answer)) => match answer.error_code {
                ErrorCode::NONE => {
                    self.assigned = read_assignment(&answer.assignment);
                    self.phase = Phase::Heartbeat;
                }
                ErrorCode::REBALANCE_IN_PROGRESS => self.phase = Phase::Join,
                code => self.fenced(code),
            },
            Some(Reply::Heartbeat(answer)) => match answer.error_code {
                ErrorCode::NONE => {}
                ErrorCode::REBALANCE_IN_PROGRESS => self.phase = Phase::Join,
                code => self.fenced(code),
            },
            Some(_) => {}
        }
    }

    /// A classic member that is behind keeps its id.
    fn fenced(&mut self, code: ErrorCode) {
        let given_id = std::mem::take(&mut self.given_id);
        self.forget();
        if code == ErrorCode::ILLEGAL_GENERATION {
            self.given_id = given_id;
        }
    }

    /// It is in no group, and has nothing.
    pub(super) fn forget(&mut self) {
        *self = Client {
            incarnation: self.incarnation,
            ..Client::new(self.index, self.is_classic, self.is_static)
        };
    }

    /// Another process takes its place.
    pub(super) fn restart(&mut self) {
        self.incarnation = 1 - self.incarnation;
        self.forget();
    }

    /// Another process takes its place, which speaks the other protocol.
    pub(super) fn change(&mut self) {
        self.is_classic = !self.is_classic;
        self.restart();
    }

    /// The application has let go of what it has to, and takes over the rest; not after an answer
    /// was lost, by which some of it may have been taken back.
    pub(super) fn settle(&mut self) {
        let has_revoked = !self.owned.is_subset(&self.assigned);
        if !self.is_classic && self.says_all {
            self.owned.retain(|place| self.assigned.contains(place))
        } else {
            self.owned = self.assigned.clone()
        }
        // A classic member tells of that by joining again.
        if self.is_classic && has_revoked && self.phase == Phase::Heartbeat {
            self.phase = Phase::Join;
        }
    }
}

/// What a leader decides: what the client's own assignor does.
fn assign(members: &[JoinGroupResponseMember], partitions: i32) -> Vec<(String, Bytes)> {
    let read = |member: &JoinGroupResponseMember| {
        let mut input = Decoder::new(member.metadata.slice(2..));
        GroupMember {
            member_id: member.member_id.clone(),
            instance_id: member.group_instance_id.clone(),
            subscription: ConsumerProtocolSubscription::decode(&mut input, 3).unwrap_or_default(),
        }
    };
    let members: Vec<GroupMember> = members.iter().map(read).collect();
    let counts = BTreeMap::from([(TOPIC.into(), partitions)]);
    let assigned = CooperativeSticky::default().assign(&counts, &members);
    let assigned = assigned.unwrap_or_default();
    let members = members.iter().map(|member| member.member_id.to_string());
    members.zip(assigned.iter().map(embedded)).collect()
}

fn embedded<M: Message>(message: &M) -> Bytes {
    let mut out = Encoder::new();
    out.buffer().extend_from_slice(&3i16.to_be_bytes());
    match message.encode(&mut out, 3) {
        Ok(()) => out.finish().into_bytes(),
        Err(_) => Bytes::new(),
    }
}

fn read_assignment(assignment: &Bytes) -> BTreeSet<Place> {
    if assignment.is_empty() {
        return BTreeSet::new();
    }
    let mut input = Decoder::new(assignment.slice(2..));
    let read = ConsumerProtocolAssignment::decode(&mut input, 3).unwrap_or_default();
    let topics = read.assigned_partitions.iter();
    topics
        .flat_map(|topic| topic.partitions.iter().map(|p| (TOPIC_ID, *p)))
        .collect()
}

fn named(owned: &BTreeSet<Place>) -> Vec<TopicPartitions> {
    if owned.is_empty() {
        Vec::new()
    } else {
        vec![TopicPartitions {
            topic: TOPIC.into(),
            partitions: owned.iter().map(|(_, partition)| *partition).collect(),
        }]
    }
}

fn by_topic(owned: &BTreeSet<Place>) -> Vec<TopicIdPartitions> {
    let mut topics: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
    for (topic_id, partition) in owned {
        topics.entry(*topic_id).or_default().push(*partition);
    }
    let topics = topics.into_iter();
    topics
        .map(|(topic_id, partitions)| TopicIdPartitions {
            topic_id,
            partitions,
        })
        .collect()
}

fn places(topics: &[TopicIdPartitions]) -> BTreeSet<Place> {
    let topics = topics.iter();
    topics
        .flat_map(|topic| topic.partitions.iter().map(|p| (topic.topic_id, *p)))
        .collect()
}
