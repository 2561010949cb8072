//! The uniform assignor: balance first, then as little movement as possible.

mod even;
mod free;
pub(super) mod overlapping;

use super::{
    Member,
    subscriptions::{Class, Subscriptions, Topic},
};
use crate::TopicPartitions;

pub(super) fn assign(
    members: &[Member<'_>],
    subscriptions: &Subscriptions,
) -> Vec<TopicPartitions> {
    let mut targets = vec![TopicPartitions::new(); members.len()];
    for part in parts(subscriptions) {
        match part[..] {
            [class] => {
                let class = &subscriptions.classes[class];
                let topics: Vec<Topic> = class
                    .topics
                    .iter()
                    .map(|&topic| subscriptions.topics[topic as usize])
                    .collect();
                even::assign(members, &class.members, &topics, &mut targets);
            }
            _ => overlapping::assign(members, subscriptions, &part, &mut targets),
        }
    }
    targets
}

/// The classes, put together where they share topics. Nothing can move between parts, so each is a
/// problem of its own; one that has a single class is the easy problem.
pub(super) fn parts(subscriptions: &Subscriptions) -> Vec<Vec<usize>> {
    const NONE: usize = usize::MAX;
    let classes = &subscriptions.classes;
    let mut first_class_of_topic = vec![NONE; subscriptions.topics.len()];
    let mut parents: Vec<usize> = (0..classes.len()).collect();
    fn root(parents: &mut [usize], mut class: usize) -> usize {
        while parents[class] != class {
            parents[class] = parents[parents[class]];
            class = parents[class];
        }
        class
    }
    for (class, Class { topics, .. }) in classes.iter().enumerate() {
        for &topic in topics {
            let first = &mut first_class_of_topic[topic as usize];
            if *first == NONE {
                *first = class;
            } else {
                let (a, b) = (root(&mut parents, *first), root(&mut parents, class));
                parents[a.max(b)] = a.min(b);
            }
        }
    }
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); classes.len()];
    for class in 0..classes.len() {
        let root = root(&mut parents, class);
        parts[root].push(class);
    }
    parts.retain(|part| !part.is_empty());
    parts
}
