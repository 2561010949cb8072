//! Members whose subscriptions overlap without being equal.
//!
//! The target is balanced when no chain of moves leads from a member to one with at least two
//! fewer partitions: of all assignments, such a one has the smallest maximum, the greatest minimum
//! and the smallest sum of squares. It is reached from the present target in steps that each move
//! as little as they can.

mod chains;
mod cycles;
mod direct;
mod home;
mod loads;
mod search;

use crate::{
    TopicPartitions,
    assignor::{
        Member,
        subscriptions::{Seek, Subscriptions, Topic},
        target_of,
    },
    topic_partitions::{Run, append},
};
use loads::Loads;

/// No member.
const NOBODY: u32 = u32::MAX;

/// Classes that share topics, and who has what. Everything is numbered from 0 within.
struct Part {
    /// The members' indexes in the group.
    members: Vec<u32>,
    class_of: Vec<u32>,
    topics: Vec<Topic>,
    /// The first partition of each topic, and one past the last.
    starts: Vec<usize>,
    /// The topics of each class, ascending.
    class_topics: Vec<Vec<u32>>,
    /// The classes that subscribe to each topic.
    topic_classes: Vec<Vec<u32>>,
    /// How many members subscribe to each topic.
    subscribers: Vec<usize>,
    /// The former owner of each partition, if it may keep it.
    before: Vec<u32>,
    /// The current owner.
    owner: Vec<u32>,
    loads: Loads,
}

pub(in crate::assignor) fn assign(
    group: &[Member<'_>],
    subscriptions: &Subscriptions,
    classes: &[usize],
    targets: &mut [TopicPartitions],
) {
    let mut part = Part::new(group, subscriptions, classes);
    let order = part.topic_order();
    direct::hand_out(&mut part, &order);
    direct::level(&mut part, &order);
    chains::level(&mut part);
    home::send(&mut part);
    cycles::cancel(&mut part);
    part.targets(group, targets);
}

impl Part {
    fn new(group: &[Member<'_>], subscriptions: &Subscriptions, classes: &[usize]) -> Part {
        let mut numbers = vec![NOBODY; subscriptions.topics.len()];
        for &class in classes {
            for &topic in &subscriptions.classes[class].topics {
                numbers[topic as usize] = 0;
            }
        }
        let (mut topics, mut starts, mut next) = (Vec::new(), vec![0], 0);
        for (number, &topic) in numbers.iter_mut().zip(&subscriptions.topics) {
            if *number != NOBODY {
                *number = topics.len() as u32;
                next += topic.partition_count as usize;
                topics.push(topic);
                starts.push(next);
            }
        }

        let (mut members, mut class_of) = (Vec::new(), Vec::new());
        let mut class_topics = Vec::with_capacity(classes.len());
        let mut topic_classes = vec![Vec::new(); topics.len()];
        let mut subscribers = vec![0; topics.len()];
        for (number, &class) in classes.iter().enumerate() {
            let class = &subscriptions.classes[class];
            members.extend_from_slice(&class.members);
            class_of.resize(members.len(), number as u32);
            let own: Vec<u32> = class.topics.iter().map(|&t| numbers[t as usize]).collect();
            for &topic in &own {
                topic_classes[topic as usize].push(number as u32);
                subscribers[topic as usize] += class.members.len();
            }
            class_topics.push(own);
        }

        let mut owner = vec![NOBODY; next];
        let mut counts = vec![0; members.len()];
        for (number, &member) in members.iter().enumerate() {
            let own = &class_topics[class_of[number] as usize];
            let mut seek = Seek::new(&topics);
            for run in group[member as usize].target.runs() {
                let Some(topic) = seek.find(run.topic_id()) else {
                    continue;
                };
                if own.binary_search(&(topic as u32)).is_err() {
                    continue;
                }
                let count = topics[topic].partition_count;
                let partitions = run.partitions();
                for partition in partitions.start.max(0)..partitions.end.min(count) {
                    let owner = &mut owner[starts[topic] + partition as usize];
                    if *owner == NOBODY {
                        *owner = number as u32;
                        counts[number] += 1;
                    }
                }
            }
        }
        Part {
            loads: Loads::new(counts, &class_of, classes.len()),
            members,
            class_of,
            topics,
            starts,
            class_topics,
            topic_classes,
            subscribers,
            before: owner.clone(),
            owner,
        }
    }

    /// The topics with the fewest choices first: by partitions a subscriber, descending, then by
    /// the number of subscribers. What comes later can still even out what came before.
    fn topic_order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.topics.len() as u32).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = (a as usize, b as usize);
            let partitions = |t: usize| self.topics[t].partition_count as u128;
            let subscribers = |t: usize| self.subscribers[t] as u128;
            (partitions(b) * subscribers(a))
                .cmp(&(partitions(a) * subscribers(b)))
                .then(subscribers(a).cmp(&subscribers(b)))
        });
        order
    }

    /// Gives a partition to a member.
    fn give(&mut self, partition: usize, member: u32) {
        let owner = std::mem::replace(&mut self.owner[partition], member);
        if owner != NOBODY {
            self.loads.decrease(owner);
        }
        self.loads.increase(member);
    }

    /// Whether its owner has it newly.
    fn is_foreign(&self, partition: usize) -> bool {
        self.owner[partition] != self.before[partition]
    }

    fn topic_of(&self, partition: usize) -> usize {
        self.starts.partition_point(|&start| start <= partition) - 1
    }

    fn targets(&self, group: &[Member<'_>], targets: &mut [TopicPartitions]) {
        let mut changed = vec![false; self.members.len()];
        for (partition, &owner) in self.owner.iter().enumerate() {
            let before = self.before[partition];
            if owner != before {
                changed[owner as usize] = true;
                if before != NOBODY {
                    changed[before as usize] = true;
                }
            }
        }
        let mut runs: Vec<Vec<Run>> = vec![Vec::new(); self.members.len()];
        for (topic, starts) in self.topics.iter().zip(self.starts.windows(2)) {
            for (partition, &owner) in self.owner[starts[0]..starts[1]].iter().enumerate() {
                let partition = partition as i32;
                if changed[owner as usize] {
                    append(
                        &mut runs[owner as usize],
                        Run::new(topic.id, partition..partition + 1),
                    );
                }
            }
        }
        for (number, &member) in self.members.iter().enumerate() {
            let member = member as usize;
            let old = group[member].target;
            // Partitions that it may not keep went unnoticed above.
            let dropped = || old.len() != self.loads.of(number as u32) as usize;
            targets[member] = if changed[number] {
                target_of(&group[member], &runs[number])
            } else if dropped() {
                old.iter()
                    .filter(|&(id, partition)| self.owns(number as u32, id, partition))
                    .collect()
            } else {
                old.clone()
            };
        }
    }

    fn owns(&self, member: u32, topic_id: kohort_wire::Uuid, partition: i32) -> bool {
        let Ok(topic) = self
            .topics
            .binary_search_by_key(&topic_id, |topic| topic.id)
        else {
            return false;
        };
        (0..self.topics[topic].partition_count).contains(&partition)
            && self.owner[self.starts[topic] + partition as usize] == member
    }
}
