//! The subscriptions of a group, in the small numbers that the assignors compute with.

use kohort_wire::Uuid;
use rustc_hash::FxHashMap;

use super::Member;
use crate::TopicIds;

/// A subscribed topic that exists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Topic {
    pub(super) id: Uuid,
    /// At least 1.
    pub(super) partition_count: i32,
}

/// The members that subscribe to the same topics.
#[derive(Debug)]
pub(super) struct Class {
    /// Indexes into [`Subscriptions::topics`], ascending.
    pub(super) topics: Vec<u32>,
    /// Indexes into the group's members, ascending.
    pub(super) members: Vec<u32>,
}

/// The subscriptions of all members.
#[derive(Debug)]
pub(super) struct Subscriptions {
    /// Every subscribed topic that exists, by id.
    pub(super) topics: Vec<Topic>,
    /// Every distinct subscription, in the order in which the members bring them.
    pub(super) classes: Vec<Class>,
    /// The class of each member.
    pub(super) class_of: Vec<u32>,
}

impl Subscriptions {
    pub(super) fn new(
        members: &[Member<'_>],
        partition_count: &dyn Fn(Uuid) -> Option<i32>,
    ) -> Subscriptions {
        let (distinct, class_of) = distinct(members);
        let mut ids: Vec<Uuid> = Vec::new();
        for topic_ids in &distinct {
            ids.extend_from_slice(topic_ids.as_slice());
        }
        if distinct.len() > 1 {
            ids.sort_unstable();
            ids.dedup();
        }
        let topics: Vec<Topic> = ids
            .into_iter()
            .filter_map(|id| {
                let partition_count = partition_count(id).filter(|&count| count > 0)?;
                Some(Topic {
                    id,
                    partition_count,
                })
            })
            .collect();

        let mut classes: Vec<Class> = distinct
            .into_iter()
            .map(|topic_ids| {
                let mut seek = Seek::new(&topics);
                Class {
                    topics: topic_ids
                        .as_slice()
                        .iter()
                        .filter_map(|&id| seek.find(id).map(|topic| topic as u32))
                        .collect(),
                    members: Vec::new(),
                }
            })
            .collect();
        for (member, &class) in class_of.iter().enumerate() {
            classes[class as usize].members.push(member as u32);
        }
        Subscriptions {
            topics,
            classes,
            class_of,
        }
    }
}

/// The distinct subscriptions, and which of them each member has.
fn distinct<'a>(members: &[Member<'a>]) -> (Vec<&'a TopicIds>, Vec<u32>) {
    let mut distinct: Vec<&TopicIds> = Vec::new();
    let mut by_pointer: FxHashMap<*const Uuid, u32> = FxHashMap::default();
    let mut by_ids: FxHashMap<&[Uuid], u32> = FxHashMap::default();
    let class_of = members
        .iter()
        .map(|member| {
            let topic_ids = member.subscribed_topic_ids;
            let ids = topic_ids.as_slice();
            *by_pointer.entry(ids.as_ptr()).or_insert_with(|| {
                *by_ids.entry(ids).or_insert_with(|| {
                    distinct.push(topic_ids);
                    distinct.len() as u32 - 1
                })
            })
        })
        .collect();
    (distinct, class_of)
}

/// Finds topics by id, quickly if they are asked for in ascending order.
pub(super) struct Seek<'a> {
    topics: &'a [Topic],
    next: usize,
}

impl<'a> Seek<'a> {
    /// `topics` are sorted by id.
    pub(super) fn new(topics: &'a [Topic]) -> Seek<'a> {
        Seek { topics, next: 0 }
    }

    /// The index of the topic. Ids before the last one found are not looked for again.
    pub(super) fn find(&mut self, id: Uuid) -> Option<usize> {
        let rest = &self.topics[self.next..];
        match rest.iter().take(2).position(|topic| topic.id >= id) {
            Some(steps) => self.next += steps,
            None => self.next += rest.partition_point(|topic| topic.id < id),
        }
        let found = self.topics.get(self.next)?;
        (found.id == id).then_some(self.next)
    }
}
