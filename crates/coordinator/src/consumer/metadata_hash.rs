//! The hash by which a group notices that its topics have changed (KIP-1101).

use std::collections::BTreeMap;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::{Id, Topic, Topics};

/// Changes with the way in which topics are hashed.
const MAGIC: u8 = 0;

/// The topics of a group that exist, each with its hash. Names of topics that do not exist cost
/// nothing, however many a group subscribes to.
#[derive(Debug, Clone, Default)]
pub(crate) struct TopicHashes(BTreeMap<Id, i64>);

impl TopicHashes {
    /// Those of `names` that exist.
    pub(crate) fn new<'n>(names: impl Iterator<Item = &'n Id>, topics: &Topics) -> TopicHashes {
        let hashes =
            names.filter_map(|name| Some((name.clone(), topics.hash_of(name, topic_hash)?)));
        TopicHashes(hashes.collect())
    }

    /// A topic has changed, or the group now subscribes to it.
    pub(crate) fn update(&mut self, name: &Id, topics: &Topics) {
        match topics.hash_of(name, topic_hash) {
            Some(hash) => {
                self.0.insert(name.clone(), hash);
            }
            None => self.remove(name),
        }
    }

    /// The group no longer subscribes to a topic.
    pub(crate) fn remove(&mut self, name: &Id) {
        self.0.remove(name);
    }

    /// Those of `names`, which are sorted, that exist.
    pub(crate) fn among<'n>(&'n self, names: &'n [Id]) -> impl Iterator<Item = &'n Id> {
        // The shorter list decides how long this takes.
        let by_name = self.0.len() >= names.len();
        let named = names.iter().filter(move |_| by_name);
        let known = self.0.keys().filter(move |_| !by_name);
        named
            .filter(|name| self.0.contains_key(*name))
            .chain(known.filter(|name| names.binary_search(name).is_ok()))
    }

    /// The hash of all of them, as Kafka computes it; 0 if there are none.
    pub(crate) fn digest(&self) -> i64 {
        if self.0.is_empty() {
            return 0;
        }
        let mut hash = Xxh3::new();
        for topic_hash in self.0.values() {
            hash.update(&topic_hash.to_le_bytes());
        }
        hash.digest() as i64
    }
}

/// Kafka hashes the racks of each partition's replicas after its number; kohort's partitions have
/// none.
fn topic_hash(topic: &Topic) -> i64 {
    let partition_count = topic.partition_count.max(0) as usize;
    let mut bytes = Vec::with_capacity(32 + 2 * topic.name.len() + 4 * partition_count);
    bytes.push(MAGIC);
    bytes.extend(((topic.id.0 >> 64) as u64).to_le_bytes());
    bytes.extend((topic.id.0 as u64).to_le_bytes());
    let units = topic.name.encode_utf16();
    let mut length = 0i32;
    for unit in units {
        bytes.extend(unit.to_le_bytes());
        length += 1;
    }
    bytes.extend(length.to_le_bytes());
    bytes.extend(topic.partition_count.to_le_bytes());
    for partition in 0..topic.partition_count {
        bytes.extend(partition.to_le_bytes());
    }
    xxh3_64(&bytes) as i64
}

#[cfg(test)]
mod tests {
    use kohort_wire::Uuid;

    use super::*;

    fn topic(name: &str, id: u128, partition_count: i32) -> Topic {
        Topic {
            id: Uuid(id),
            name: name.into(),
            partition_count,
            is_internal: false,
            created_at: 0,
        }
    }

    /// The numbers are those of hash4j 0.22, which Kafka uses.
    #[test]
    fn topics_hash_as_in_kafka() {
        let foo = topic("foo", 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210, 2);
        let long = topic("a-longer.topic_name", 0x1_0000_0000_0000_0002, 100);
        assert_eq!(topic_hash(&foo), -7646759818435901242);
        assert_eq!(topic_hash(&long), 2049645165994277328);
        let topics = Topics::new(1, [foo, long]);
        let names: Vec<Id> = ["a-longer.topic_name", "absent", "foo"]
            .map(Id::from)
            .into();
        let hashes = TopicHashes::new(names.iter(), &topics);
        assert_eq!(hashes.digest(), -7328258599816008516);
        assert_eq!(TopicHashes::new(names[1..2].iter(), &topics).digest(), 0);
    }

    #[test]
    fn hashes_that_follow_changes_are_those_of_the_topics_as_they_are() {
        let names: Vec<Id> = ["a", "b", "c"].map(Id::from).into();
        let before = Topics::new(1, [topic("a", 1, 1), topic("b", 2, 2)]);
        let after = Topics::new(2, [topic("b", 2, 3), topic("c", 3, 1)]);
        let mut hashes = TopicHashes::new(names.iter(), &before);
        for name in &names {
            hashes.update(name, &after);
        }
        assert_eq!(
            hashes.digest(),
            TopicHashes::new(names.iter(), &after).digest()
        );
        let among = |names: &[Id]| hashes.among(names).cloned().collect::<Vec<Id>>();
        assert_eq!(among(&names), names[1..]);
        assert_eq!(among(&names[2..]), names[2..]);
        hashes.remove(&names[1]);
        assert_eq!(
            hashes.digest(),
            TopicHashes::new(names[2..].iter(), &after).digest()
        );
    }
}
