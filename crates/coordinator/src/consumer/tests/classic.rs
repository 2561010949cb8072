//! Members that speak the classic protocol.

use std::collections::BTreeSet;

use bytes::{BufMut, Bytes};
use kohort_wire::{
    ErrorCode,
    codec::{Decoder, Encoder, Message},
    messages::*,
};

use super::world::World;
use crate::{Reply, Request, Token};

/// A member that speaks the classic protocol, and keeps what it owns through a rebalance.
#[derive(Debug, Clone)]
pub(crate) struct Classic {
    pub(crate) group_id: String,
    pub(crate) id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) generation: i32,
    pub(crate) protocol: String,
    pub(crate) topics: Vec<String>,
    pub(crate) user_data: Option<Bytes>,
    pub(crate) owned: BTreeSet<(String, i32)>,
}

impl Classic {
    pub(crate) fn new(topics: &[&str]) -> Classic {
        Classic {
            group_id: "group".to_owned(),
            id: String::new(),
            instance_id: None,
            generation: -1,
            protocol: "cooperative-sticky".to_owned(),
            topics: topics.iter().map(|&topic| topic.to_owned()).collect(),
            user_data: None,
            owned: BTreeSet::new(),
        }
    }

    pub(crate) fn instance(mut self, instance_id: &str) -> Classic {
        self.instance_id = Some(instance_id.to_owned());
        self
    }

    pub(crate) fn metadata(&self) -> Bytes {
        encode(&ConsumerProtocolSubscription {
            topics: self.topics.iter().map(|topic| (&**topic).into()).collect(),
            user_data: None,
            owned_partitions: by_topic(&self.owned),
            generation_id: self.generation,
            rack_id: None,
        })
    }

    pub(crate) fn join_request(&self) -> JoinGroupRequest {
        JoinGroupRequest {
            group_id: (&*self.group_id).into(),
            session_timeout_ms: 30_000,
            rebalance_timeout_ms: 60_000,
            member_id: (&*self.id).into(),
            group_instance_id: self.instance_id.as_deref().map(Into::into),
            protocol_type: "consumer".into(),
            protocols: vec![JoinGroupProtocol {
                name: (&*self.protocol).into(),
                metadata: self.metadata(),
            }],
            reason: None,
        }
    }

    /// Joins; the answer may take a while.
    pub(crate) fn send_join(&mut self, world: &mut World) -> Token {
        let request = self.join_request();
        let token = world.send(Request::JoinGroup {
            version: 9,
            request,
        });
        match world.reply(token) {
            Some(Reply::JoinGroup(response))
                if response.error_code == ErrorCode::MEMBER_ID_REQUIRED =>
            {
                self.id = response.member_id.to_string();
                self.send_join(world)
            }
            Some(reply) => {
                world.put_back(token, reply);
                token
            }
            None => token,
        }
    }

    /// Takes the answer to a join.
    pub(crate) fn joined(&mut self, world: &mut World, token: Token) -> JoinGroupResponse {
        match world.reply(token) {
            Some(Reply::JoinGroup(response)) => {
                if response.error_code == ErrorCode::NONE {
                    self.id = response.member_id.to_string();
                    self.generation = response.generation_id;
                }
                response
            }
            other => panic!("no answer to a join: {other:?}"),
        }
    }

    /// Joins a consumer group, where nobody waits.
    pub(crate) fn join(&mut self, world: &mut World) -> JoinGroupResponse {
        let token = self.send_join(world);
        self.joined(world, token)
    }

    pub(crate) fn send_sync(
        &mut self,
        world: &mut World,
        assignments: Vec<SyncGroupAssignment>,
    ) -> Token {
        let request = SyncGroupRequest {
            group_id: (&*self.group_id).into(),
            generation_id: self.generation,
            member_id: (&*self.id).into(),
            group_instance_id: self.instance_id.as_deref().map(Into::into),
            protocol_type: Some("consumer".into()),
            protocol_name: Some((&*self.protocol).into()),
            assignments,
        };
        world.send(Request::SyncGroup {
            version: 5,
            request,
        })
    }

    /// Takes the answer to a sync.
    pub(crate) fn synced(&mut self, world: &mut World, token: Token) -> ErrorCode {
        match world.reply(token) {
            Some(Reply::SyncGroup(response)) => {
                if response.error_code == ErrorCode::NONE {
                    self.owned = decode(response.assignment);
                }
                response.error_code
            }
            other => panic!("no answer to a sync: {other:?}"),
        }
    }

    pub(crate) fn sync(&mut self, world: &mut World) -> ErrorCode {
        let token = self.send_sync(world, Vec::new());
        self.synced(world, token)
    }

    pub(crate) fn heartbeat(&mut self, world: &mut World) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: (&*self.group_id).into(),
            generation_id: self.generation,
            member_id: (&*self.id).into(),
            group_instance_id: self.instance_id.as_deref().map(Into::into),
        };
        match world.request(Request::Heartbeat { request }) {
            Some(Reply::Heartbeat(response)) => response.error_code,
            other => panic!("no answer to a heartbeat: {other:?}"),
        }
    }

    /// What a member of a consumer group does at each interval.
    pub(crate) fn beat(&mut self, world: &mut World) {
        match self.heartbeat(world) {
            ErrorCode::NONE => return,
            ErrorCode::REBALANCE_IN_PROGRESS => {}
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.id = String::new();
                self.generation = -1;
                self.owned.clear();
            }
            other => panic!("heartbeat: {other}"),
        }
        let response = self.join(world);
        assert_eq!(response.error_code, ErrorCode::NONE);
        match self.sync(world) {
            ErrorCode::NONE | ErrorCode::REBALANCE_IN_PROGRESS => {}
            other => panic!("sync: {other}"),
        }
    }

    pub(crate) fn leave(&mut self, world: &mut World) -> LeaveGroupResponse {
        let request = LeaveGroupRequest {
            group_id: (&*self.group_id).into(),
            members: vec![MemberIdentity {
                member_id: (&*self.id).into(),
                group_instance_id: self.instance_id.as_deref().map(Into::into),
                reason: None,
            }],
            ..LeaveGroupRequest::default()
        };
        match world.request(Request::LeaveGroup {
            version: 5,
            request,
        }) {
            Some(Reply::LeaveGroup(response)) => response,
            other => panic!("no answer to a leave: {other:?}"),
        }
    }
}

/// A classic group's members rebalance: all join, the leader hands out the topic's partitions in
/// turn, all sync.
pub(crate) fn rebalance(
    world: &mut World,
    members: &mut [&mut Classic],
    topic: &str,
    partition_count: i32,
) {
    let tokens: Vec<Token> = members
        .iter_mut()
        .map(|member| member.send_join(world))
        .collect();
    // An empty group waits for more members, and once more when more have come.
    world.wait(6_000);
    let mut leader = None;
    for (index, (member, token)) in members.iter_mut().zip(tokens).enumerate() {
        let response = member.joined(world, token);
        assert_eq!(response.error_code, ErrorCode::NONE);
        if response.leader == response.member_id {
            leader = Some((index, response.members));
        }
    }
    let (leader, joined) = leader.expect("a leader");
    let mut assignments = in_turn(&joined, topic, partition_count);
    if let Some(user_data) = &members[leader].user_data {
        add_user_data(&mut assignments, user_data);
    }
    let tokens: Vec<Token> = members
        .iter_mut()
        .enumerate()
        .map(|(index, member)| {
            if index == leader {
                member.send_sync(world, assignments.clone())
            } else {
                member.send_sync(world, Vec::new())
            }
        })
        .collect();
    for (member, token) in members.iter_mut().zip(tokens) {
        assert_eq!(member.synced(world, token), ErrorCode::NONE);
    }
}

/// What a leader sends that hands out the partitions of a topic in turn.
pub(crate) fn in_turn(
    joined: &[JoinGroupResponseMember],
    topic: &str,
    partition_count: i32,
) -> Vec<SyncGroupAssignment> {
    let count = joined.len();
    let assignments = joined.iter().enumerate().map(|(index, member)| {
        let own = (0..partition_count).filter(|&p| p as usize % count == index);
        let own: BTreeSet<(String, i32)> = own.map(|p| (topic.to_owned(), p)).collect();
        SyncGroupAssignment {
            member_id: member.member_id.clone(),
            assignment: encode(&ConsumerProtocolAssignment {
                assigned_partitions: by_topic(&own),
                user_data: None,
            }),
        }
    });
    assignments.collect()
}

fn add_user_data(assignments: &mut [SyncGroupAssignment], user_data: &Bytes) {
    for assignment in assignments {
        let own = decode(assignment.assignment.clone());
        assignment.assignment = encode(&ConsumerProtocolAssignment {
            assigned_partitions: by_topic(&own),
            user_data: Some(user_data.clone()),
        });
    }
}

pub(crate) fn encode<M: Message>(message: &M) -> Bytes {
    let mut out = Encoder::new();
    out.buffer().put_i16(3);
    message.encode(&mut out, 3).expect("encodable");
    out.finish().into_bytes()
}

fn decode(assignment: Bytes) -> BTreeSet<(String, i32)> {
    let mut input = Decoder::new(assignment);
    let version = input.i16().expect("a version");
    let assignment = ConsumerProtocolAssignment::decode(&mut input, version).expect("decodable");
    let topics = assignment.assigned_partitions.into_iter();
    topics
        .flat_map(|topic| {
            let name = topic.topic.to_string();
            topic
                .partitions
                .into_iter()
                .map(move |partition| (name.clone(), partition))
        })
        .collect()
}

fn by_topic(owned: &BTreeSet<(String, i32)>) -> Vec<TopicPartitions> {
    let mut topics: Vec<TopicPartitions> = Vec::new();
    for (topic, partition) in owned {
        match topics.last_mut() {
            Some(last) if *last.topic == **topic => last.partitions.push(*partition),
            _ => topics.push(TopicPartitions {
                topic: (&**topic).into(),
                partitions: vec![*partition],
            }),
        }
    }
    topics
}
