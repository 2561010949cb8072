//! New partitions from their start.
//!
//! A consumer notices a new partition some time after it was created. With
//! `auto.offset.reset=latest` it then starts behind what was written before it noticed, and those
//! records are lost to the group. So the coordinator commits the first offset of a new partition for
//! the group, before anybody is assigned the partition: in the same batch of records as the target or
//! the assignment, or an earlier one.
//!
//! What is new is told by what the group has *seen*, which is durable: of each topic that its
//! members subscribe to, its id and how many partitions it had. A group looks at its topics whenever
//! it is about to assign them anew:
//!
//! | the group has seen | there is now | new are |
//! |---|---|---|
//! | nothing at all: it is its first look | anything | none: a new group starts where its clients say |
//! | the topic with *n* partitions | the topic with more | those from *n* on |
//! | the name, but no topic | the topic | all |
//! | another topic of that name | the topic | all |
//! | that an expression of the coordinator did not match it | the topic, which it matches | all |
//! | nothing of the topic | the topic | all, if it was created not long ago and since the group began, or while the group had no members; otherwise none |
//!
//! The last row is what the coordinator sees of a consumer that matches expressions itself, as all
//! classic ones do: it subscribes to one more name, some time after the topic was created
//! ([`NOTICE_MS`]). A member that subscribes to a topic that has been there for longer looks the
//! same, and starts where its client says.
//!
//! A partition with a committed offset is left alone.

mod apply;
mod look;
mod records;

pub(crate) use look::Look;
pub use records::{GroupSeenKey, GroupSeenValue, TopicSeenKey, TopicSeenValue};

use kohort_wire::Uuid;
use rustc_hash::FxHashMap;

use super::{Id, Millis, Topic, inspect::SeenState};

/// How long a consumer may take to notice a topic that it subscribes to with an expression of its
/// own: three times the default of `metadata.max.age.ms`.
pub(crate) const NOTICE_MS: Millis = 15 * 60_000;

/// How many names without a topic a group remembers. For further names the last row of the table
/// applies, which notices a topic only if the group looks soon enough after its creation.
pub(crate) const UNKNOWN_TOPICS_MAX: usize = 1_000;

/// What a group has seen of its topics.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Seen {
    /// When it took its first look.
    pub(crate) began_at: Option<Millis>,
    /// Since when it has had no members.
    pub(crate) empty_since: Option<Millis>,
    topics: FxHashMap<Id, SeenTopic>,
    /// How many of them had no topic.
    unknown: usize,
}

/// What a group has seen of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeenTopic {
    /// Zero: there was no topic of that name.
    pub(crate) topic_id: Uuid,
    pub(crate) partition_count: i32,
}

impl SeenTopic {
    const NONE: SeenTopic = SeenTopic {
        topic_id: Uuid::ZERO,
        partition_count: 0,
    };

    fn is_none(self) -> bool {
        self.topic_id == Uuid::ZERO
    }

    fn of(topic: &Topic) -> SeenTopic {
        SeenTopic {
            topic_id: topic.id,
            partition_count: topic.partition_count,
        }
    }
}

impl Seen {
    pub(crate) fn is_empty(&self) -> bool {
        self.began_at.is_none() && self.topics.is_empty()
    }

    /// What it holds, laid open.
    pub(crate) fn inspect(&self) -> SeenState {
        let topics = self.topics.iter();
        SeenState {
            began_at: self.began_at,
            empty_since: self.empty_since,
            topics: topics
                .map(|(name, seen)| (name.clone(), (seen.topic_id, seen.partition_count)))
                .collect(),
        }
    }

    pub(crate) fn topic(&self, name: &str) -> Option<SeenTopic> {
        self.topics.get(name).copied()
    }
}
