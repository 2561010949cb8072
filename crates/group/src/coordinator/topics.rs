//! What the coordinator knows of topics.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
};

use kohort_wire::Uuid;

use super::Millis;

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Its id, which a topic created again under the same name does not share.
    pub id: Uuid,
    /// Its name.
    pub name: Arc<str>,
    /// How many partitions it has.
    pub partition_count: i32,
    /// Whether it belongs to the broker. No regular expression matches such a topic.
    pub is_internal: bool,
    /// When it was created; 0 when that is not known, and long ago.
    pub created_at: Millis,
}

/// Where the logs of partitions start. The answer comes at once, out of memory: it is the one thing
/// about records that the coordinator wants to know.
pub trait LogStarts: fmt::Debug + Send + Sync {
    /// The offset of the first record that is left; `None` when there is no such log.
    fn log_start_offset(&self, topic_id: Uuid, partition: i32) -> Option<i64>;
}

/// All topics at one moment: an immutable value, replaced as a whole when something changes.
#[derive(Debug, Clone, Default)]
pub struct Topics {
    by_name: HashMap<Arc<str>, Known>,
    names: HashMap<Uuid, Arc<str>>,
    version: i64,
    log_starts: Option<Arc<dyn LogStarts>>,
}

/// A topic, and its hash once somebody has asked for it.
#[derive(Debug, Clone)]
struct Known {
    topic: Topic,
    hash: OnceLock<i64>,
}

impl Topics {
    /// The topics given. `version` grows with each change.
    pub fn new(version: i64, topics: impl IntoIterator<Item = Topic>) -> Topics {
        let by_name: HashMap<_, _> = topics
            .into_iter()
            .map(|topic| {
                let hash = OnceLock::new();
                (topic.name.clone(), Known { topic, hash })
            })
            .collect();
        let names = by_name
            .values()
            .map(|Known { topic, .. }| (topic.id, topic.name.clone()))
            .collect();
        Topics {
            by_name,
            names,
            version,
            log_starts: None,
        }
    }

    /// The same topics, with somebody to ask where their logs start. Without, they start at 0.
    pub fn with_log_starts(self, log_starts: Arc<dyn LogStarts>) -> Topics {
        Topics {
            log_starts: Some(log_starts),
            ..self
        }
    }

    /// The offset of a partition's first record.
    pub fn log_start_offset(&self, topic_id: Uuid, partition: i32) -> i64 {
        let known = self.log_starts.as_ref();
        known
            .and_then(|starts| starts.log_start_offset(topic_id, partition))
            .unwrap_or_default()
    }

    /// The topic of a name.
    pub fn get(&self, name: &str) -> Option<&Topic> {
        self.by_name.get(name).map(|known| &known.topic)
    }

    /// The topic of an id.
    pub fn by_id(&self, id: Uuid) -> Option<&Topic> {
        self.names.get(&id).and_then(|name| self.get(name))
    }

    /// What `hash` makes of the topic of a name: computed once.
    pub(crate) fn hash_of(&self, name: &str, hash: impl Fn(&Topic) -> i64) -> Option<i64> {
        let known = self.by_name.get(name)?;
        Some(*known.hash.get_or_init(|| hash(&known.topic)))
    }

    /// All topics, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Topic> {
        self.by_name.values().map(|known| &known.topic)
    }

    /// Grows with each change.
    pub fn version(&self) -> i64 {
        self.version
    }
}
