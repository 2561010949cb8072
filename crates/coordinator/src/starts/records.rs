//! The records of what groups have seen: of types far from Kafka's, whose loader and tools pass over
//! types that they do not know.

use kohort_wire::{ByteString, Uuid};

use super::{Seen, SeenTopic};
use crate::{Id, Millis, Record};

kohort_wire::message! {
    /// Key of type 27505: when a group began to look at its topics.
    pub struct GroupSeenKey: 0..=0 {
        group_id: ByteString [0..=0],
    }

    /// When a group began to look at its topics.
    pub struct GroupSeenValue: 0..=0, flexible 0.. {
        /// In milliseconds since 1970.
        began_at: i64 [0..],
        /// Since when it has had no members; -1 while it has some.
        empty_since: i64 [0..] = -1,
    }

    /// Key of type 27506: what a group has seen of a topic.
    pub struct TopicSeenKey: 0..=0 {
        group_id: ByteString [0..=0],
        topic: ByteString [0..=0],
    }

    /// What a group has seen of a topic.
    pub struct TopicSeenValue: 0..=0, flexible 0.. {
        /// Zero: there was no topic of that name.
        topic_id: Uuid [0..],
        partition_count: i32 [0..],
    }
}

pub(super) fn group(group_id: &Id, began_at: Millis, empty_since: Option<Millis>) -> Record {
    let value = GroupSeenValue {
        began_at,
        empty_since: empty_since.unwrap_or(-1),
    };
    Record::GroupSeen(group_key(group_id), Some(value))
}

fn group_key(group_id: &Id) -> GroupSeenKey {
    GroupSeenKey {
        group_id: (&**group_id).into(),
    }
}

pub(super) fn topic(group_id: &Id, name: &Id, seen: SeenTopic) -> Record {
    let value = TopicSeenValue {
        topic_id: seen.topic_id,
        partition_count: seen.partition_count,
    };
    Record::TopicSeen(topic_key(group_id, name), Some(value))
}

pub(super) fn no_topic(group_id: &Id, name: &Id) -> Record {
    Record::TopicSeen(topic_key(group_id, name), None)
}

fn topic_key(group_id: &Id, name: &Id) -> TopicSeenKey {
    TopicSeenKey {
        group_id: (&**group_id).into(),
        topic: (&**name).into(),
    }
}

impl Seen {
    /// The records that forget all of it.
    pub(crate) fn tombstones(&self, group_id: &Id) -> Vec<Record> {
        let topics = self.topics.keys().map(|name| no_topic(group_id, name));
        let group = self
            .began_at
            .map(|_| Record::GroupSeen(group_key(group_id), None));
        topics.chain(group).collect()
    }
}
