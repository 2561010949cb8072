//! Requests that must be refused: of members that are not, of epochs that were or never will be,
//! and such that cannot be read.

use bytes::Bytes;
use kohort_coordinator::{Request, inspect::MembersState};
use kohort_group::Id;
use kohort_wire::messages::*;

use crate::{
    coordinator::Origin,
    rewinds::MARK,
    world::{TOPICS, World},
};

impl World {
    /// Somebody sends a request that makes no sense. It is made when it is taken, so that it makes
    /// none then.
    pub(crate) fn stranger(&mut self) {
        let is_idle = self.coordinator.shard.is_some() && self.coordinator.appending.is_none();
        if !is_idle {
            return;
        }
        let groups = self.groups();
        let group = self.random.one_of(&groups).clone();
        if let Some(request) = self.wrong_request(&group) {
            self.send_as(Origin::Stranger, request);
        }
    }

    fn wrong_request(&mut self, group: &Id) -> Option<Request> {
        let (member_id, instance_id) = self.some_member(group)?;
        let state = self.coordinator.live.get(group)?.members.clone();
        let wrong = |epoch: i32, by: i64| epoch.saturating_add(by as i32);
        let by = self.random.between(1, 3);
        let down = self.random.percent(50);
        match state {
            MembersState::Consumer(state) => {
                let member = state.members.get(&member_id)?.clone();
                let epoch = if down && member.epoch > 1 {
                    // An epoch before the member had any of what it owns.
                    -7
                } else {
                    wrong(member.epoch.max(member.previous_epoch), by)
                };
                Some(match self.random.below(8) {
                    0 => self.wrong_commit(group, &member_id, epoch.max(wrong(member.epoch, 1))),
                    1 => self.wrong_commit(group, "nobody", member.epoch),
                    2 if !member.is_classic => {
                        // An epoch before the one before, of which it cannot have lost the answer.
                        let old = wrong(member.previous_epoch, -by);
                        let epoch = if down && old > 0 { old } else { epoch };
                        heartbeat(group, &member_id, epoch, instance_id.as_deref())
                    }
                    3 => heartbeat(group, "nobody", member.epoch.max(1), None),
                    4 => self.wrong_sync(group, &member_id, epoch),
                    5 => self.wrong_commit(group, "", -1),
                    6 => self.half_marked(group),
                    _ => Request::DeleteGroups {
                        groups: vec![(&**group).into()],
                    },
                })
            }
            MembersState::Classic(state) => {
                let generation = if down {
                    wrong(state.generation, -by)
                } else {
                    wrong(state.generation, by)
                };
                let generation = if generation < 0 {
                    state.generation + 9
                } else {
                    generation
                };
                Some(match self.random.below(8) {
                    0 => self.wrong_commit(group, &member_id, generation),
                    1 => self.wrong_commit(group, "nobody", state.generation),
                    2 => Request::Heartbeat {
                        request: HeartbeatRequest {
                            group_id: (&**group).into(),
                            generation_id: generation,
                            member_id: (&*member_id).into(),
                            ..HeartbeatRequest::default()
                        },
                    },
                    3 => self.wrong_sync(group, &member_id, generation),
                    5 => self.wrong_commit(group, "", -1),
                    6 => self.half_marked(group),
                    4 => Request::JoinGroup {
                        version: 9,
                        request: JoinGroupRequest {
                            group_id: (&**group).into(),
                            session_timeout_ms: 10_000,
                            member_id: "nobody".into(),
                            protocol_type: "consumer".into(),
                            protocols: vec![JoinGroupProtocol {
                                name: "range".into(),
                                metadata: Bytes::from_static(b"\0"),
                            }],
                            ..JoinGroupRequest::default()
                        },
                    },
                    _ => Request::DeleteGroups {
                        groups: vec![(&**group).into()],
                    },
                })
            }
        }
    }

    fn wrong_commit(&mut self, group: &str, member_id: &str, epoch: i32) -> Request {
        let partition = OffsetCommitRequestPartition {
            committed_offset: 1_000_000,
            ..OffsetCommitRequestPartition::default()
        };
        let topic = OffsetCommitRequestTopic {
            name: (*self.random.one_of(&TOPICS)).into(),
            partitions: vec![partition],
            ..OffsetCommitRequestTopic::default()
        };
        let request = OffsetCommitRequest {
            group_id: group.into(),
            generation_id_or_member_epoch: epoch,
            member_id: member_id.into(),
            topics: vec![topic],
            ..OffsetCommitRequest::default()
        };
        Request::OffsetCommit {
            version: 9,
            request,
        }
    }

    /// A rewind of which one partition has no mark.
    fn half_marked(&mut self, group: &str) -> Request {
        let topic = *self.random.one_of(&TOPICS);
        let partitions = [Some(MARK.into()), None].into_iter().enumerate();
        let partitions = partitions.map(|(index, mark)| OffsetCommitRequestPartition {
            partition_index: index as i32,
            committed_metadata: mark,
            ..OffsetCommitRequestPartition::default()
        });
        let topic = OffsetCommitRequestTopic {
            name: topic.into(),
            partitions: partitions.collect(),
            ..OffsetCommitRequestTopic::default()
        };
        let request = OffsetCommitRequest {
            group_id: group.into(),
            generation_id_or_member_epoch: -1,
            topics: vec![topic],
            ..OffsetCommitRequest::default()
        };
        Request::OffsetCommit {
            version: 9,
            request,
        }
    }

    fn wrong_sync(&mut self, group: &str, member_id: &str, generation: i32) -> Request {
        let request = SyncGroupRequest {
            group_id: group.into(),
            generation_id: generation,
            member_id: member_id.into(),
            ..SyncGroupRequest::default()
        };
        Request::SyncGroup {
            version: 5,
            request,
        }
    }
}

fn heartbeat(group: &str, member_id: &str, epoch: i32, instance_id: Option<&str>) -> Request {
    let request = ConsumerGroupHeartbeatRequest {
        group_id: group.into(),
        member_id: member_id.into(),
        member_epoch: epoch,
        instance_id: instance_id.map(Into::into),
        rebalance_timeout_ms: -1,
        ..ConsumerGroupHeartbeatRequest::default()
    };
    Request::ConsumerGroupHeartbeat {
        version: 1,
        request,
    }
}
