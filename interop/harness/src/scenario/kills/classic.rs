//! A group of the classic protocol with one member that rejoins now and then: the generation that
//! it was given, and the assignment that it gave, are there after the broker was killed.

use bytes::Bytes;
use kohort_wire::messages::*;
use kohort_wire::{ByteString, ErrorCode};

use super::witness::{Outcome, Witness, ask, ask_loaded, fault};
use crate::differential::Connection;

const GROUP: &str = "steady-classic";
/// Heartbeats from one rebalance to the next.
const HEARTBEATS: usize = 5;
const PROTOCOL_TYPE: &str = "other";
const PROTOCOL: &str = "plain";

#[derive(Debug)]
pub(super) struct Classic {
    member_id: ByteString,
    generation: i32,
    /// A generation that was begun, and not seen to its end: the group is on the way to another.
    in_doubt: bool,
    assignment: Bytes,
    heartbeats: usize,
    generations: usize,
}

impl Classic {
    pub(super) fn new() -> Self {
        Self {
            member_id: ByteString::new(),
            generation: -1,
            in_doubt: true,
            assignment: Bytes::new(),
            heartbeats: 0,
            generations: 0,
        }
    }

    fn join(&mut self, connection: &mut Connection) -> Outcome<()> {
        self.in_doubt = true;
        let joined = loop {
            let request = JoinGroupRequest {
                group_id: GROUP.into(),
                session_timeout_ms: 30_000,
                rebalance_timeout_ms: 30_000,
                member_id: self.member_id.clone(),
                protocol_type: PROTOCOL_TYPE.into(),
                protocols: vec![JoinGroupProtocol {
                    name: PROTOCOL.into(),
                    metadata: Bytes::from_static(b"metadata"),
                }],
                ..Default::default()
            };
            let joined = ask_loaded(connection, &request, 9, |it| it.error_code)?;
            match joined.error_code {
                ErrorCode::NONE => break joined,
                // The id of a first join is durable only with the group.
                ErrorCode::MEMBER_ID_REQUIRED if self.member_id.is_empty() => {
                    self.member_id = joined.member_id;
                }
                ErrorCode::UNKNOWN_MEMBER_ID if self.generation < 0 => {
                    self.member_id = ByteString::new();
                }
                code => return fault(format!("{self:?} cannot join: {code}")),
            }
        };
        if joined.generation_id <= self.generation {
            return fault(format!(
                "generation {} after {self:?}",
                joined.generation_id
            ));
        }
        let assignment = Bytes::from(format!("assignment of {}", joined.generation_id));
        let request = SyncGroupRequest {
            group_id: GROUP.into(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            protocol_type: Some(PROTOCOL_TYPE.into()),
            protocol_name: Some(PROTOCOL.into()),
            assignments: vec![SyncGroupAssignment {
                member_id: joined.member_id.clone(),
                assignment: assignment.clone(),
            }],
            ..Default::default()
        };
        let synced = ask(connection, &request, 5)?;
        if synced.error_code.is_error() || synced.assignment != assignment {
            return fault(format!("{self:?} cannot sync: {synced:?}"));
        }
        (self.generation, self.assignment) = (joined.generation_id, assignment);
        self.in_doubt = false;
        self.generations += 1;
        Ok(())
    }

    fn heartbeat(&mut self, connection: &mut Connection) -> Outcome<()> {
        let request = HeartbeatRequest {
            group_id: GROUP.into(),
            generation_id: self.generation,
            member_id: self.member_id.clone(),
            ..Default::default()
        };
        let response = ask_loaded(connection, &request, 4, |it| it.error_code)?;
        if response.error_code.is_error() {
            return fault(format!("{self:?} is refused: {}", response.error_code));
        }
        self.heartbeats += 1;
        Ok(())
    }
}

impl Witness for Classic {
    fn name(&self) -> String {
        format!("the group {GROUP}")
    }

    fn check(&mut self, connection: &mut Connection) -> Outcome<()> {
        if self.generation < 0 {
            return self.join(connection);
        }
        let request = DescribeGroupsRequest {
            groups: vec![GROUP.into()],
            ..Default::default()
        };
        let error = |it: &DescribeGroupsResponse| {
            let codes = it.groups.iter().map(|it| it.error_code);
            codes.last().unwrap_or_default()
        };
        let described = ask_loaded(connection, &request, 5, error)?;
        let [group] = &described.groups[..] else {
            return fault("not described");
        };
        let mut members = group.members.iter();
        let Some(member) = members.find(|it| it.member_id == self.member_id) else {
            return fault(format!("{self:?} is gone: {group:?}"));
        };
        if self.in_doubt {
            return self.join(connection);
        }
        let is_stable = *group.group_state == *"Stable";
        if !is_stable || member.member_assignment != self.assignment {
            return fault(format!("{self:?} is not described as it is: {group:?}"));
        }
        self.heartbeat(connection)
    }

    fn work(&mut self, connection: &mut Connection) -> Outcome<()> {
        for _ in 0..HEARTBEATS {
            self.heartbeat(connection)?;
        }
        self.join(connection)
    }

    fn audit(&mut self, connection: &mut Connection) -> Outcome<()> {
        self.heartbeat(connection)
    }

    fn acknowledged(&self) -> Vec<(usize, &'static str)> {
        vec![(self.generations, "classic generations")]
    }
}
