//! Members of a classic group, as their clients would be.

use kohort_coordinator::*;
use kohort_wire::{ErrorCode, messages::*};

use super::{World, subscription};

/// A member of the group `g`, as a client would be.
#[derive(Clone, Default)]
pub struct Member {
    pub id: String,
    pub instance_id: Option<&'static str>,
    pub topics: Vec<&'static str>,
    pub assignors: Vec<&'static str>,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    pub generation: i32,
    pub is_leader: bool,
    pub members: Vec<String>,
}

impl Member {
    pub fn new() -> Member {
        Member {
            topics: vec!["a"],
            assignors: vec!["range"],
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 60_000,
            ..Member::default()
        }
    }

    pub fn with_instance(instance_id: &'static str) -> Member {
        Member {
            instance_id: Some(instance_id),
            ..Member::new()
        }
    }

    pub fn join_request(&self) -> JoinGroupRequest {
        let metadata = subscription(&self.topics);
        JoinGroupRequest {
            group_id: "g".into(),
            session_timeout_ms: self.session_timeout_ms,
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            member_id: self.id.as_str().into(),
            group_instance_id: self.instance_id.map(Into::into),
            protocol_type: "consumer".into(),
            protocols: self
                .assignors
                .iter()
                .map(|&name| JoinGroupProtocol {
                    name: name.into(),
                    metadata: metadata.clone(),
                })
                .collect(),
            reason: None,
        }
    }

    /// Sends a join, if need be after being given an id.
    pub fn join(&mut self, world: &mut World) -> Token {
        let request = self.join_request();
        let token = world.send(Request::JoinGroup {
            version: 9,
            request,
        });
        match world.peek(token) {
            Some(Reply::JoinGroup(response))
                if response.error_code == ErrorCode::MEMBER_ID_REQUIRED =>
            {
                self.id = response.member_id.to_string();
                let request = self.join_request();
                world.send(Request::JoinGroup {
                    version: 9,
                    request,
                })
            }
            _ => token,
        }
    }

    pub fn joined(&mut self, world: &mut World, token: Token) {
        let response = join_answer(world, token);
        assert_eq!(response.error_code, ErrorCode::NONE);
        self.id = response.member_id.to_string();
        self.generation = response.generation_id;
        self.is_leader = response.leader == self.id;
        self.members = response
            .members
            .iter()
            .map(|m| m.member_id.to_string())
            .collect();
    }

    pub fn sync(&self, world: &mut World) -> Token {
        let assignments = self.members.iter().map(|member| SyncGroupAssignment {
            member_id: member.as_str().into(),
            assignment: format!("of {member}").into(),
        });
        let request = SyncGroupRequest {
            group_id: "g".into(),
            generation_id: self.generation,
            member_id: self.id.as_str().into(),
            group_instance_id: self.instance_id.map(Into::into),
            assignments: assignments.collect(),
            ..SyncGroupRequest::default()
        };
        world.send(Request::SyncGroup {
            version: 5,
            request,
        })
    }

    pub fn heartbeat(&self, world: &mut World) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: "g".into(),
            generation_id: self.generation,
            member_id: self.id.as_str().into(),
            group_instance_id: self.instance_id.map(Into::into),
        };
        match world.ask(Request::Heartbeat { request }) {
            Reply::Heartbeat(response) => response.error_code,
            other => panic!("{other:?}"),
        }
    }

    pub fn leave(&self, world: &mut World) -> ErrorCode {
        let request = LeaveGroupRequest {
            group_id: "g".into(),
            members: vec![MemberIdentity {
                member_id: self.id.as_str().into(),
                ..MemberIdentity::default()
            }],
            ..LeaveGroupRequest::default()
        };
        match world.ask(Request::LeaveGroup {
            version: 5,
            request,
        }) {
            Reply::LeaveGroup(response) => response.members[0].error_code,
            other => panic!("{other:?}"),
        }
    }
}

pub fn join_answer(world: &mut World, token: Token) -> JoinGroupResponse {
    match world.take(token) {
        Some(Reply::JoinGroup(response)) => response,
        other => panic!("{other:?}"),
    }
}

pub fn sync_answer(world: &mut World, token: Token) -> SyncGroupResponse {
    match world.take(token) {
        Some(Reply::SyncGroup(response)) => response,
        other => panic!("{other:?}"),
    }
}

/// Has all sync, and checks that each gets its own assignment.
pub fn sync_all(world: &mut World, members: &[Member]) {
    let tokens: Vec<_> = members.iter().map(|member| member.sync(world)).collect();
    for (member, token) in members.iter().zip(tokens) {
        let response = sync_answer(world, token);
        assert_eq!(response.error_code, ErrorCode::NONE);
        assert_eq!(response.assignment, format!("of {}", member.id));
    }
}

/// A stable group of so many members.
pub fn stable_group(world: &mut World, mut members: Vec<Member>) -> Vec<Member> {
    let tokens: Vec<_> = members
        .iter_mut()
        .map(|member| member.join(world))
        .collect();
    world.advance(300);
    for (member, token) in members.iter_mut().zip(tokens) {
        member.joined(world, token);
    }
    sync_all(world, &members);
    assert_eq!(world.describe("g").group_state, "Stable");
    members
}

/// Lets time pass while the members heartbeat.
pub fn beat(world: &mut World, members: &[Member], ms: i64) {
    for _ in 0..ms / 1_000 {
        world.advance(1_000);
        for member in members {
            member.heartbeat(world);
        }
    }
}
