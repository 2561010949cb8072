//! A group as an administrator sees it.

use std::collections::BTreeSet;

use crate::{
    Id,
    history::{Few, Needs, Protocol, Waited, Who},
};

/// A partition: the topic's name and the number.
pub(super) type Partition = (Id, i32);

/// A group as an administrator sees it: what DescribeGroups or ConsumerGroupDescribe say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The protocol.
    pub protocol: Protocol,
    /// The state, in Kafka's words: `Stable`, `PreparingRebalance`, …
    pub state: String,
    /// The group's epoch, in the consumer protocol.
    pub epoch: Option<i32>,
    /// The epoch of the target assignment, in the consumer protocol.
    pub assignment_epoch: Option<i32>,
    /// The members.
    pub members: Vec<MemberView>,
}

/// A member as an administrator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberView {
    /// The member.
    pub who: Who,
    /// Its epoch, in the consumer protocol.
    pub epoch: Option<i32>,
    /// What it owns.
    pub assignment: BTreeSet<Partition>,
    /// What it is meant to own, in the consumer protocol.
    pub target: Option<BTreeSet<Partition>>,
    /// The topics to which it subscribes by name, as far as that can be seen.
    pub topics: BTreeSet<Id>,
    /// The regular expression with which it subscribes.
    pub regex: Option<Id>,
}

impl View {
    /// Whether the group is doing what it is for.
    pub fn is_stable(&self) -> bool {
        self.state == "Stable"
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whom a consumer group waits for, as far as that can be seen: members that own what others
    /// are meant to own, and members that have not taken what they can have.
    ///
    /// Partitions that are being rewound (`withheld`) have no owner, whatever the targets say.
    pub fn waited(&self, withheld: &BTreeSet<Partition>) -> Vec<Waited> {
        let mut waited = Vec::new();
        for member in &self.members {
            let Some(target) = &member.target else {
                continue;
            };
            let target: BTreeSet<Partition> = target.difference(withheld).cloned().collect();
            let revoking: BTreeSet<&Partition> = member.assignment.difference(&target).collect();
            let is_behind = member.epoch < self.assignment_epoch || member.assignment != target;
            let needs = match revoking.is_empty() {
                false => Needs::Revoke,
                true if is_behind && !self.is_blocked(member, &target) => Needs::Heartbeat,
                true => continue,
            };
            let others = self.members.iter().filter(|other| other.who != member.who);
            let blocks = others.filter(|other| {
                let mut revoking = revoking.iter();
                let target = other.target.as_ref();
                target.is_some_and(|target| {
                    revoking.any(|it| target.contains(*it) && !withheld.contains(*it))
                })
            });
            waited.push(Waited {
                member: member.who.clone(),
                needs,
                partitions: revoking.iter().copied().map(name).collect(),
                deadline_at: None,
                blocks: blocks.map(|other| other.who.clone()).collect::<Few<Who>>(),
            });
        }
        waited.sort_by_key(|waited| waited.needs != Needs::Revoke);
        waited
    }

    /// Whether the member waits for others to give up what it is meant to own.
    fn is_blocked(&self, member: &MemberView, target: &BTreeSet<Partition>) -> bool {
        let mut missing = target.difference(&member.assignment);
        missing.any(|partition| {
            let mut others = self.members.iter().filter(|other| other.who != member.who);
            others.any(|other| other.assignment.contains(partition))
        })
    }
}

/// The partition as `topic-partition`.
pub(super) fn name((topic, partition): &Partition) -> String {
    format!("{topic}-{partition}")
}
