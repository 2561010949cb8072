//! A classic group in the numbers that the server-side assignors compute with.

use std::collections::HashMap;

use kohort_wire::{
    ByteString, Uuid,
    messages::{self, ConsumerProtocolAssignment},
};

use super::{GroupMember, PartitionCounts};
use crate::{
    TopicIds, TopicPartitions,
    assignor::{Member, subscriptions::Subscriptions},
};

/// The subscribed topics that exist, numbered by name, and the subscriptions in those numbers. A
/// topic's id is its number.
pub(super) struct Numbered<'a> {
    names: Vec<&'a ByteString>,
    counts: Vec<i32>,
    subscribed: Vec<TopicIds>,
}

impl<'a> Numbered<'a> {
    pub(super) fn new(
        partition_counts: &'a PartitionCounts,
        members: &[GroupMember],
    ) -> Numbered<'a> {
        // Most members subscribe to the same: those share one set.
        let mut sets: HashMap<&[ByteString], Vec<&ByteString>> = HashMap::new();
        for member in members {
            let topics = &member.subscription.topics[..];
            sets.entry(topics).or_insert_with(|| {
                let known = topics.iter().filter_map(|topic| {
                    let (name, &count) = partition_counts.get_key_value(topic)?;
                    (count > 0).then_some(name)
                });
                known.collect()
            });
        }
        let mut names: Vec<&ByteString> = sets.values().flatten().copied().collect();
        names.sort_unstable();
        names.dedup();

        let number = |name: &ByteString| {
            let number = names.binary_search(&name).expect("collected above");
            Uuid(number as u128)
        };
        let sets: HashMap<&[ByteString], TopicIds> = sets
            .into_iter()
            .map(|(topics, known)| (topics, known.into_iter().map(number).collect()))
            .collect();
        Numbered {
            subscribed: members
                .iter()
                .map(|member| sets[&member.subscription.topics[..]].clone())
                .collect(),
            counts: names.iter().map(|&name| partition_counts[name]).collect(),
            names,
        }
    }

    /// The number of a topic, if a member subscribes to it and it exists.
    pub(super) fn topic(&self, name: &ByteString) -> Option<usize> {
        self.names.binary_search(&name).ok()
    }

    /// The partition counts of the topics.
    pub(super) fn counts(&self) -> &[i32] {
        &self.counts
    }

    /// The topics that a member subscribes to.
    pub(super) fn subscribed(&self, member: usize) -> &TopicIds {
        &self.subscribed[member]
    }

    /// The members as the server-side assignors see them, with what they have had.
    pub(super) fn members(
        &'a self,
        members: &'a [GroupMember],
        targets: &'a [TopicPartitions],
    ) -> Vec<Member<'a>> {
        members
            .iter()
            .zip(&self.subscribed)
            .zip(targets)
            .map(|((member, subscribed_topic_ids), target)| Member {
                member_id: &member.member_id,
                instance_id: member.instance_id.as_deref(),
                subscribed_topic_ids,
                target,
            })
            .collect()
    }

    pub(super) fn subscriptions(&self, members: &[Member<'_>]) -> Subscriptions {
        Subscriptions::new(members, &|id| self.counts.get(id.0 as usize).copied())
    }

    /// An assignment under the topics' names.
    pub(super) fn assignment(&self, partitions: &TopicPartitions) -> ConsumerProtocolAssignment {
        let assigned_partitions = partitions
            .topics()
            .map(|(id, runs)| messages::TopicPartitions {
                topic: self.names[id.0 as usize].clone(),
                partitions: runs.iter().flat_map(|run| run.partitions()).collect(),
            })
            .collect();
        ConsumerProtocolAssignment {
            assigned_partitions,
            user_data: None,
        }
    }
}

/// The places of members in the order of KIP-345: static ones by instance id, then the others by
/// member id.
pub(super) fn in_order(members: &[GroupMember]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&member| {
        let member = &members[member];
        match &member.instance_id {
            Some(instance_id) => (false, instance_id),
            None => (true, &member.member_id),
        }
    });
    order
}
