//! What the coordinator knows of topics.

use std::{collections::HashMap, sync::Arc};

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
    by_name: HashMap<Arc<str>, Topic>,
    names: HashMap<Uuid, Arc<str>>,
    version: i64,
}

impl Topics {
    /// The topics given. `version` grows with each change.
    pub fn new(version: i64, topics: impl IntoIterator<Item = Topic>) -> Topics {
        let by_name: HashMap<_, _> = topics
            .into_iter()
            .map(|topic| (topic.name.clone(), topic))
            .collect();
        let names = by_name
            .values()
            .map(|topic| (topic.id, topic.name.clone()))
            .collect();
        Topics {
            by_name,
            names,
            version,
        }
    }

    /// The topic of a name.
    pub fn get(&self, name: &str) -> Option<&Topic> {
        self.by_name.get(name)
    }

    /// The topic of an id.
    pub fn by_id(&self, id: Uuid) -> Option<&Topic> {
        self.names.get(&id).and_then(|name| self.by_name.get(name))
    }

    /// All topics, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Topic> {
        self.by_name.values()
    }

    /// Grows with each change.
    pub fn version(&self) -> i64 {
        self.version
    }
}
