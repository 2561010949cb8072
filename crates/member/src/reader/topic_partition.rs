//! A partition of a topic, by name.

use std::fmt;

use kohort_wire::ByteString;
use rustc_hash::FxHashMap;

/// A partition of a topic, by the topic's name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: ByteString,
    /// The partition's number, from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// Partition `partition` of `topic`.
    pub fn new(topic: impl Into<ByteString>, partition: i32) -> TopicPartition {
        TopicPartition {
            topic: topic.into(),
            partition,
        }
    }
}

/// `topic-partition`, as Kafka writes it.
impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T: Into<ByteString>> From<(T, i32)> for TopicPartition {
    fn from((topic, partition): (T, i32)) -> TopicPartition {
        TopicPartition::new(topic, partition)
    }
}

/// Groups items by topic, in the order in which the topics first appear.
pub fn by_topic<T>(
    items: impl IntoIterator<Item = (TopicPartition, T)>,
) -> Vec<(ByteString, Vec<(i32, T)>)> {
    let mut topics: Vec<(ByteString, Vec<(i32, T)>)> = Vec::new();
    let mut at = FxHashMap::default();
    for (partition, item) in items {
        let index = *at.entry(partition.topic.clone()).or_insert(topics.len());
        if index == topics.len() {
            topics.push((partition.topic, Vec::new()));
        }
        topics[index].1.push((partition.partition, item));
    }
    topics
}
