//! The requests of classic members.

use std::time::Instant;

use bytes::Bytes;
use kohort_wire::codec::{Encoder, Message};
use kohort_wire::messages::*;

use super::{Kind, LONG_MS, Member, Parked, Play, instance};
use crate::differential::connection::Connection;
use crate::differential::step::*;
use crate::failure::Failure;

impl Play<'_> {
    pub(super) fn join(&mut self, index: usize, join: &Join) -> Result<(), Failure> {
        let mut protocols = Vec::new();
        for (name, topics) in &join.protocols {
            let metadata = if join.protocol_type == "consumer" {
                let subscription = ConsumerProtocolSubscription {
                    topics: self.topic_names(topics),
                    user_data: None,
                    ..Default::default()
                };
                versioned(&subscription, 1)?
            } else {
                Bytes::from(format!("{name} with {topics:?}"))
            };
            protocols.push(JoinGroupProtocol {
                name: name.as_str().into(),
                metadata,
            });
        }
        let request = JoinGroupRequest {
            group_id: self.group(),
            session_timeout_ms: join.session_timeout_ms,
            rebalance_timeout_ms: LONG_MS,
            member_id: self.classic_id(&join.who),
            group_instance_id: instance(&join.who, join.version, 5),
            protocol_type: join.protocol_type.as_str().into(),
            protocols,
            reason: None,
        };
        self.pending.retain(|id| **id != *request.member_id);
        let slot = join.who.slot;
        let member = self.member(slot);
        member.last_join = Some(join.clone());
        member.protocol_type = join.protocol_type.clone();
        // A client that joins again has given up on its join before: the connection is closed.
        let again = |parked: &Parked| {
            parked.kind == Kind::Join && !parked.id.is_empty() && parked.id == request.member_id
        };
        self.parked.retain(|parked| !again(parked));
        let mut connection = self.free_connection()?;
        connection.send(&request, join.version)?;
        self.parked.push(Parked {
            step: index,
            slot,
            version: join.version,
            kind: Kind::Join,
            id: request.member_id,
            sent: Instant::now(),
            connection,
        });
        Ok(())
    }

    pub(super) fn sync(&mut self, index: usize, sync: &Sync) -> Result<(), Failure> {
        let slot = sync.who.slot;
        let generation_id = self.generation(&sync.who);
        let member_id = self.classic_id(&sync.who);
        let group_id = self.group();
        let member = self.member(slot).clone();
        let (protocol_type, protocol_name) = match &sync.protocol {
            Some((protocol_type, name)) => (protocol_type.clone(), name.clone()),
            None => (member.protocol_type.clone(), member.protocol.clone()),
        };
        let assignments = if member.leads && sync.who.id == Id::Own {
            self.assignments(&member)?
        } else {
            Vec::new()
        };
        let named = sync.version >= 5;
        let request = SyncGroupRequest {
            group_id,
            generation_id,
            member_id,
            group_instance_id: instance(&sync.who, sync.version, 3),
            protocol_type: named.then(|| protocol_type.into()),
            protocol_name: named.then(|| protocol_name.into()),
            assignments,
        };
        let mut connection = self.free_connection()?;
        connection.send(&request, sync.version)?;
        self.parked.push(Parked {
            step: index,
            slot,
            version: sync.version,
            kind: Kind::Sync {
                leads: member.leads,
            },
            id: request.member_id,
            sent: Instant::now(),
            connection,
        });
        Ok(())
    }

    /// The leader's assignment: partitions in turn to the members, in the order of their names.
    pub(super) fn assignments(&self, leader: &Member) -> Result<Vec<SyncGroupAssignment>, Failure> {
        let mut members = leader.members.clone();
        members.sort_by_key(|id| self.names.member(id));
        let mut assignments = Vec::new();
        for (place, id) in members.iter().enumerate() {
            let assignment = if leader.protocol_type == "consumer" {
                let mut assigned_partitions = Vec::new();
                for (&topic, &(_, count)) in &self.topics {
                    let own = |partition: &i32| *partition as usize % members.len() == place;
                    assigned_partitions.push(TopicPartitions {
                        topic: self.topic_name(topic),
                        partitions: (0..count).filter(own).collect(),
                    });
                }
                assigned_partitions.retain(|topic| !topic.partitions.is_empty());
                let assignment = ConsumerProtocolAssignment {
                    assigned_partitions,
                    user_data: None,
                };
                versioned(&assignment, 1)?
            } else {
                Bytes::from(format!("place {place} of {}", members.len()))
            };
            assignments.push(SyncGroupAssignment {
                member_id: id.as_str().into(),
                assignment,
            });
        }
        Ok(assignments)
    }

    pub(super) fn leave(&mut self, version: i16, who: &[Who]) -> Result<(), Failure> {
        let mut request = LeaveGroupRequest {
            group_id: self.group(),
            ..Default::default()
        };
        for who in who {
            let member_id = self.classic_id(who);
            if version < 3 {
                request.member_id = member_id;
                break;
            }
            request.members.push(MemberIdentity {
                member_id,
                group_instance_id: instance(who, version, 3),
                reason: None,
            });
        }
        let answer = self.ask(&request, version)?;
        self.note(answer);
        Ok(())
    }

    pub(super) fn free_connection(&mut self) -> Result<Connection, Failure> {
        match self.free.pop() {
            Some(connection) => Ok(connection),
            None => Connection::open(self.address),
        }
    }
}

/// Two bytes of version, then the message, as consumers embed it.
fn versioned<M: Message>(message: &M, version: i16) -> Result<Bytes, Failure> {
    let mut out = Encoder::new();
    let encoded = message.encode(&mut out, version);
    encoded.map_err(|error| Failure::new(error.to_string()))?;
    let mut bytes = version.to_be_bytes().to_vec();
    bytes.extend_from_slice(&out.finish().into_bytes());
    Ok(bytes.into())
}
