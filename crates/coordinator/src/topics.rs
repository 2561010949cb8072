//! What the coordinator knows of topics.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, OnceLock},
};

use kohort_group::history::{Change, TopicChange};
use kohort_wire::Uuid;

use super::Millis;

/// How many changes are remembered.
const RECENT_MAX: usize = 256;

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Its id, which a topic created again under the same name does not share.
    pub id: Uuid,
    /// Its name.
    pub name: Arc<str>,
    /// How many partitions it has.
    pub partition_count: i32,
    /// Whether it belongs to the broker.
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
    /// The last changes, each with the version that brought it.
    recent: VecDeque<(i64, TopicChange)>,
    /// The changes after this version are all in `recent`.
    recent_since: i64,
}

/// A topic, and its hash once it was needed.
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
            recent: VecDeque::new(),
            recent_since: version,
        }
    }

    /// The same topics with a source of log start offsets. Without one, logs start at 0.
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

    /// These topics, which come after `previous`: what has changed in between is remembered for a
    /// while, so that groups can say why they rebalance.
    pub fn after(mut self, previous: &Topics) -> Topics {
        let version = self.version;
        self.recent = previous.recent.clone();
        self.recent_since = previous.recent_since;
        let gone = previous
            .iter()
            .filter(|topic| self.get(&topic.name).is_none())
            .map(|topic| change(Some(topic), None));
        let mut changes: Vec<_> = gone.flatten().collect();
        let here = self.iter();
        changes.extend(here.filter_map(|topic| change(previous.get(&topic.name), Some(topic))));
        changes.sort_unstable_by(|a, b| a.topic.cmp(&b.topic));
        self.recent
            .extend(changes.into_iter().map(|change| (version, change)));
        while self.recent.len() > RECENT_MAX
            && let Some((version, _)) = self.recent.pop_front()
        {
            self.recent_since = version;
        }
        self
    }

    /// What has changed since a version; `None` if that is not remembered.
    pub fn changes_since(&self, version: i64) -> Option<impl Iterator<Item = &TopicChange>> {
        let recent = self.recent.iter();
        (version >= self.recent_since).then(|| {
            recent
                .filter(move |(at, _)| *at > version)
                .map(|(_, change)| change)
        })
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

fn change(before: Option<&Topic>, now: Option<&Topic>) -> Option<TopicChange> {
    let either = now.or(before)?;
    let count = |topic: Option<&Topic>| topic.map_or(0, |topic| topic.partition_count);
    let change = match (before, now) {
        (_, None) => Change::Deleted,
        (None, _) => Change::Created,
        (Some(before), Some(now)) if before.id != now.id => Change::Recreated,
        (Some(before), Some(now)) if before.partition_count != now.partition_count => Change::Grown,
        _ => return None,
    };
    Some(TopicChange {
        topic: either.name.clone(),
        change,
        partitions_before: count(before),
        partitions: count(now),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(version: i64, topics: &[(&str, u8, i32)]) -> Topics {
        let topic = |&(name, id, partition_count): &(&str, u8, i32)| Topic {
            id: Uuid::from_bytes([id; 16]),
            name: name.into(),
            partition_count,
            is_internal: false,
            created_at: 0,
        };
        Topics::new(version, topics.iter().map(topic))
    }

    fn words(topics: &Topics, since: i64) -> Option<Vec<String>> {
        let changes = topics.changes_since(since)?;
        Some(changes.map(ToString::to_string).collect())
    }

    #[test]
    fn topics_know_what_has_changed() {
        let first = topics(1, &[("a", 1, 1), ("b", 2, 2), ("c", 3, 3)]);
        let second = topics(2, &[("a", 1, 4), ("b", 9, 2)]).after(&first);
        let third = topics(3, &[("a", 1, 4), ("b", 9, 2), ("d", 4, 1)]).after(&second);
        let created = "topic d was created with 1 partition";
        assert_eq!(
            words(&third, 1).expect("remembered"),
            [
                "topic a grew from 1 to 4 partitions",
                "topic b was deleted and created again with 2 partitions",
                "topic c was deleted",
                created,
            ]
        );
        assert_eq!(words(&third, 2).expect("remembered"), [created]);
        assert_eq!(words(&third, 0), None);
    }

    #[test]
    fn only_the_last_changes_are_remembered() {
        let mut now = topics(0, &[]);
        for version in 1..=1_000 {
            now = topics(version, &[("a", 1, version as i32)]).after(&now);
        }
        assert_eq!(now.recent.len(), RECENT_MAX);
        assert_eq!(words(&now, 1), None);
        assert_eq!(words(&now, 998).map(|words| words.len()), Some(2));
    }
}
