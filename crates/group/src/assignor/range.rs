//! The range assignor.

use super::{
    Member,
    subscriptions::{Subscriptions, Topic},
    target_of,
};
use crate::{TopicPartitions, topic_partitions::Run};

/// What is left of a topic while its subscribers are served in order.
struct Rest {
    next: i32,
    /// What every subscriber gets.
    quota: i32,
    /// How many of the following subscribers get one more.
    extra: i32,
}

impl Rest {
    fn new(topic: &Topic, subscribers: usize) -> Rest {
        // More subscribers than an i32 counts cannot all get one.
        let subscribers = i32::try_from(subscribers).unwrap_or(i32::MAX);
        Rest {
            next: 0,
            quota: topic.partition_count / subscribers,
            extra: topic.partition_count % subscribers,
        }
    }

    /// The range of the next subscriber.
    fn take(&mut self, topic: &Topic) -> Run {
        let start = self.next;
        self.next += self.quota + i32::from(self.extra > 0);
        self.extra = (self.extra - 1).max(0);
        Run::new(topic.id, start..self.next)
    }
}

pub(super) fn assign(
    members: &[Member<'_>],
    subscriptions: &Subscriptions,
) -> Vec<TopicPartitions> {
    let mut subscribers = vec![0; subscriptions.topics.len()];
    for class in &subscriptions.classes {
        for &topic in &class.topics {
            subscribers[topic as usize] += class.members.len();
        }
    }
    let mut rests: Vec<Rest> = subscriptions
        .topics
        .iter()
        .zip(subscribers)
        .map(|(topic, subscribers)| Rest::new(topic, subscribers))
        .collect();

    // Topics that have run out leave the lists: with more members than partitions, most members
    // cost nothing.
    let mut unfinished: Vec<Vec<u32>> = subscriptions
        .classes
        .iter()
        .map(|class| class.topics.clone())
        .collect();

    let mut order: Vec<u32> = (0..members.len() as u32).collect();
    order.sort_by_key(|&member| {
        let member = &members[member as usize];
        match member.instance_id {
            Some(instance_id) => (false, instance_id),
            None => (true, member.member_id),
        }
    });

    let mut targets = vec![TopicPartitions::new(); members.len()];
    let mut runs = Vec::new();
    for member in order {
        let member = member as usize;
        runs.clear();
        unfinished[subscriptions.class_of[member] as usize].retain(|&topic| {
            let (rest, topic) = (
                &mut rests[topic as usize],
                &subscriptions.topics[topic as usize],
            );
            if rest.next < topic.partition_count {
                runs.push(rest.take(topic));
            }
            rest.next < topic.partition_count
        });
        targets[member] = target_of(&members[member], &runs);
    }
    targets
}
