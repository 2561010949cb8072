//! What the coordinator knows of topics.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use kohort_wire::Uuid;

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
}

/// All topics at one moment: an immutable value, replaced as a whole when something changes.
#[derive(Debug, Clone, Default)]
pub struct Topics {
    by_name: HashMap<Arc<str>, Known>,
    names: HashMap<Uuid, Arc<str>>,
    version: i64,
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
        }
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
