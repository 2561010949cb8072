//! The former owners of partitions, as the members report them.

use kohort_wire::{Uuid, messages::TopicPartitions as NamedPartitions};

use super::{NO_GENERATION, Numbered};
use crate::{Run, TopicPartitions, topic_partitions::append};

/// What a member says it has, or has had.
#[derive(Debug, Clone)]
pub(in crate::assignor::classic) struct Claim {
    pub(in crate::assignor::classic) partitions: Vec<NamedPartitions>,
    /// Of what generation.
    pub(in crate::assignor::classic) generation: i32,
}

impl Default for Claim {
    fn default() -> Claim {
        Claim {
            partitions: Vec::new(),
            generation: NO_GENERATION,
        }
    }
}

/// By whom a partition is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claimed {
    Nobody,
    One(u32),
    Many,
}

/// All claims of a group.
#[derive(Debug)]
pub(in crate::assignor::classic) struct Claims {
    /// The first partition of each topic, and one past the last.
    starts: Vec<usize>,
    claimed: Vec<Claimed>,
    /// Whose claim holds.
    owner: Vec<Option<u32>>,
    members: usize,
}

impl Claims {
    /// Weighs the claims of the members, in their order. Of several claims to a partition that of
    /// the latest generation holds; if two are of that generation, none does.
    pub(in crate::assignor::classic) fn new(
        numbered: &Numbered<'_>,
        claims: impl Iterator<Item = Claim>,
    ) -> Claims {
        let mut starts = vec![0];
        for &count in numbered.counts() {
            starts.push(starts[starts.len() - 1] + count as usize);
        }
        let partitions = starts[starts.len() - 1];
        let mut claimed = vec![Claimed::Nobody; partitions];
        let mut owner = vec![None; partitions];
        let mut latest = vec![i32::MIN; partitions];
        let mut members = 0;
        for (member, claim) in claims.enumerate() {
            members += 1;
            // Java takes any negative generation for none (KIP-792).
            let generation = claim.generation.max(NO_GENERATION);
            let member = member as u32;
            for named in &claim.partitions {
                let Some(topic) = numbered.topic(&named.topic) else {
                    continue;
                };
                let subscribes = numbered
                    .subscribed(member as usize)
                    .contains(Uuid(topic as u128));
                for &partition in &named.partitions {
                    if !(0..numbered.counts()[topic]).contains(&partition) {
                        continue;
                    }
                    let at = starts[topic] + partition as usize;
                    claimed[at] = match claimed[at] {
                        Claimed::Nobody => Claimed::One(member),
                        Claimed::One(other) if other == member => continue,
                        _ if owner[at] == Some(member) => continue,
                        _ => Claimed::Many,
                    };
                    if generation > latest[at] {
                        latest[at] = generation;
                        owner[at] = subscribes.then_some(member);
                    } else if generation == latest[at] {
                        owner[at] = None;
                    }
                }
            }
        }
        Claims {
            starts,
            claimed,
            owner,
            members,
        }
    }

    /// What each member has by the claims that hold.
    pub(in crate::assignor::classic) fn accepted(&self) -> Vec<TopicPartitions> {
        let mut runs = vec![Vec::new(); self.members];
        for (topic, starts) in self.starts.windows(2).enumerate() {
            for (partition, owner) in self.owner[starts[0]..starts[1]].iter().enumerate() {
                if let Some(owner) = owner {
                    let partition = partition as i32;
                    let run = Run::new(Uuid(topic as u128), partition..partition + 1);
                    append(&mut runs[*owner as usize], run);
                }
            }
        }
        runs.iter()
            .map(|runs| TopicPartitions::from_joined(runs))
            .collect()
    }

    /// Whether a member that is to have the partition must wait for another to let go of it.
    pub(in crate::assignor::classic) fn must_wait(
        &self,
        member: usize,
        topic: Uuid,
        partition: i32,
    ) -> bool {
        let at = self.starts[topic.0 as usize] + partition as usize;
        let member = member as u32;
        if self.owner[at] == Some(member) {
            return false;
        }
        match self.claimed[at] {
            Claimed::Nobody => false,
            Claimed::One(other) => other != member,
            Claimed::Many => true,
        }
    }
}
