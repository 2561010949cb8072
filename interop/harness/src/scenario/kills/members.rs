//! A group of the consumer protocol whose members come and go: who was told its epoch has it after
//! the broker was killed, and goes on with it; who was told that it has left is gone.

use std::collections::BTreeSet;

use kohort_wire::messages::*;
use kohort_wire::{ErrorCode, Uuid};

use super::witness::{Outcome, Witness, ask_loaded, fault};
use crate::differential::Connection;

const GROUP: &str = "steady-consumers";
/// Members at a time, at most.
const MEMBERS: usize = 3;
/// Rounds from one coming or going to the next.
const ROUNDS: usize = 7;
const HEARTBEAT: i16 = 1;
/// What a member says to leave.
const LEAVE_EPOCH: i32 = -1;

pub(super) struct Members {
    topic: &'static str,
    partitions: i32,
    members: Vec<Member>,
    /// Ids of members whose leaving was acknowledged.
    gone: BTreeSet<String>,
    group_epoch: i32,
    joined: usize,
    rounds: usize,
    heartbeats: usize,
}

/// A member as it knows itself.
#[derive(Debug, Clone)]
struct Member {
    id: String,
    epoch: i32,
    owned: BTreeSet<(Uuid, i32)>,
    /// Whether it was told that it is one.
    joined: bool,
    leaves: bool,
    /// An answer was cut off: the coordinator may know more than the member.
    in_doubt: bool,
}

impl Members {
    pub(super) fn new(topic: &'static str, partitions: i32) -> Self {
        Self {
            topic,
            partitions,
            members: Vec::new(),
            gone: BTreeSet::new(),
            group_epoch: 0,
            joined: 0,
            rounds: 0,
            heartbeats: 0,
        }
    }

    fn heartbeat(&mut self, connection: &mut Connection, index: usize) -> Outcome<()> {
        let member = &mut self.members[index];
        let joins = !member.joined;
        let request = ConsumerGroupHeartbeatRequest {
            group_id: GROUP.into(),
            member_id: member.id.as_str().into(),
            member_epoch: match (member.leaves, joins) {
                (true, _) => LEAVE_EPOCH,
                (false, true) => 0,
                (false, false) => member.epoch,
            },
            rebalance_timeout_ms: if joins { 60_000 } else { -1 },
            subscribed_topic_names: joins.then(|| vec![self.topic.into()]),
            topic_partitions: (!member.leaves).then(|| by_topic(&member.owned)),
            ..Default::default()
        };
        let was_in_doubt = std::mem::replace(&mut member.in_doubt, true);
        let response = ask_loaded(connection, &request, HEARTBEAT, |it| it.error_code)?;
        let member = &mut self.members[index];
        let left_before =
            member.leaves && was_in_doubt && response.error_code == ErrorCode::UNKNOWN_MEMBER_ID;
        if response.error_code.is_error() && !left_before {
            return fault(format!("{member:?} is refused: {}", response.error_code));
        }
        self.heartbeats += 1;
        member.in_doubt = false;
        if member.leaves {
            let member = self.members.remove(index);
            self.gone.insert(member.id);
            return Ok(());
        }
        if response.member_epoch < member.epoch {
            let back = response.member_epoch;
            return fault(format!("the epoch of {member:?} goes back to {back}"));
        }
        (member.epoch, member.joined) = (response.member_epoch, true);
        if let Some(assignment) = &response.assignment {
            // What is not assigned any more is let go of at once.
            let topics = assignment.topic_partitions.iter();
            member.owned = topics
                .flat_map(|it| it.partitions.iter().map(|&index| (it.topic_id, index)))
                .collect();
        }
        Ok(())
    }

    fn judge(&mut self, group: &DescribedConsumerGroup) -> Outcome<()> {
        if group.group_epoch < self.group_epoch {
            return fault(format!(
                "the group's epoch goes back from {} to {}",
                self.group_epoch, group.group_epoch
            ));
        }
        self.group_epoch = group.group_epoch;
        let mut owned = BTreeSet::new();
        for described in &group.members {
            let id = described.member_id.to_string();
            if self.gone.contains(&id) {
                return fault(format!("{id} has left and is there again"));
            }
            let topics = described.assignment.topic_partitions.iter();
            for partition in topics.flat_map(|it| it.partitions.iter()) {
                if !owned.insert(*partition) {
                    return fault(format!("two have partition {partition}: {group:?}"));
                }
            }
        }
        for member in &self.members {
            let mut described = group.members.iter();
            let described = described.find(|it| *it.member_id == *member.id.as_str());
            match described {
                None if member.in_doubt && (!member.joined || member.leaves) => {}
                None => return fault(format!("{member:?} is gone")),
                Some(it) => {
                    let is_ahead = it.member_epoch > member.epoch && member.in_doubt;
                    if it.member_epoch != member.epoch && !is_ahead {
                        let epoch = it.member_epoch;
                        return fault(format!("{member:?} has the epoch {epoch}"));
                    }
                }
            }
        }
        Ok(())
    }
}

fn by_topic(owned: &BTreeSet<(Uuid, i32)>) -> Vec<TopicIdPartitions> {
    let mut topics: Vec<TopicIdPartitions> = Vec::new();
    for &(topic_id, partition) in owned {
        match topics.last_mut().filter(|last| last.topic_id == topic_id) {
            Some(last) => last.partitions.push(partition),
            None => topics.push(TopicIdPartitions {
                topic_id,
                partitions: vec![partition],
            }),
        }
    }
    topics
}

impl Witness for Members {
    fn name(&self) -> String {
        format!("the group {GROUP}")
    }

    fn check(&mut self, connection: &mut Connection) -> Outcome<()> {
        let request = ConsumerGroupDescribeRequest {
            group_ids: vec![GROUP.into()],
            ..Default::default()
        };
        let error = |it: &ConsumerGroupDescribeResponse| {
            let codes = it.groups.iter().map(|it| it.error_code);
            codes.last().unwrap_or_default()
        };
        let described = ask_loaded(connection, &request, 1, error)?;
        let is_unknown = error(&described) == ErrorCode::GROUP_ID_NOT_FOUND;
        match described.groups.first() {
            Some(group) if !group.error_code.is_error() => self.judge(group)?,
            _ if is_unknown && self.members.iter().all(|it| !it.joined) => {}
            _ => return fault(format!("not described: {}", error(&described))),
        }
        // Each goes on with what it was told last.
        for index in (0..self.members.len()).rev() {
            self.heartbeat(connection, index)?;
        }
        Ok(())
    }

    fn work(&mut self, connection: &mut Connection) -> Outcome<()> {
        self.rounds += 1;
        if self.rounds % ROUNDS == 1 {
            if self.members.len() < MEMBERS {
                self.joined += 1;
                self.members.push(Member {
                    id: format!("member-{}", self.joined),
                    epoch: 0,
                    owned: BTreeSet::new(),
                    joined: false,
                    leaves: false,
                    in_doubt: false,
                });
            } else {
                self.members[0].leaves = true;
            }
        }
        for index in (0..self.members.len()).rev() {
            self.heartbeat(connection, index)?;
        }
        Ok(())
    }

    fn audit(&mut self, connection: &mut Connection) -> Outcome<()> {
        // Enough for what is moving to arrive.
        for _ in 0..1000 {
            for index in (0..self.members.len()).rev() {
                self.heartbeat(connection, index)?;
            }
            let owned: usize = self.members.iter().map(|it| it.owned.len()).sum();
            if owned == self.partitions as usize {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        fault(format!(
            "the partitions are not shared out: {:?}",
            self.members
        ))
    }

    fn acknowledged(&self) -> Vec<(usize, &'static str)> {
        vec![
            (self.heartbeats, "heartbeats"),
            (self.joined, "consumer members"),
        ]
    }
}
