//! The hash by which a group notices that its topics have changed (KIP-1101).

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::coordinator::{Id, Topic, Topics};

/// Changes with the way in which topics are hashed.
const MAGIC: u8 = 0;

/// The hash of those of the topics that exist; 0 if none does. `names` are sorted.
pub(crate) fn metadata_hash<'a>(names: impl Iterator<Item = &'a Id>, topics: &Topics) -> i64 {
    let mut hash = Xxh3::new();
    let mut is_empty = true;
    for topic_hash in names.filter_map(|name| topics.hash_of(name, topic_hash)) {
        hash.update(&topic_hash.to_le_bytes());
        is_empty = false;
    }
    match is_empty {
        true => 0,
        false => hash.digest() as i64,
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
        assert_eq!(metadata_hash(names.iter(), &topics), -7328258599816008516);
        assert_eq!(metadata_hash(names[1..2].iter(), &topics), 0);
    }
}
