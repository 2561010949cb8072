//! What the broker remembers besides records: one file, replaced as a whole.

use std::{collections::BTreeMap, fs, io, sync::Arc};

use kohort_wire::Uuid;
use serde::{Deserialize, Serialize};

use crate::{
    data_folder::{CATALOG, DataFolder},
    random_bytes, random_uuid,
    settings::{BROKER, BadValue, GROUP, TOPIC, Values},
};

const FORMAT: u32 = 1;

/// What the broker remembers besides records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Document {
    format: u32,
    pub(crate) cluster_id: String,
    pub(crate) node_id: i32,
    /// The next producer id to assign.
    pub(crate) next_producer_id: i64,
    #[serde(default)]
    pub(crate) topics: BTreeMap<String, TopicEntry>,
    /// Settings that were changed while the broker ran: for all brokers of the cluster, in Kafka's
    /// words, and for this one, which are stronger.
    #[serde(default)]
    pub(crate) cluster: Values,
    #[serde(default)]
    pub(crate) broker: Values,
    /// Settings that groups have of their own.
    #[serde(default)]
    pub(crate) groups: BTreeMap<String, Values>,
    /// Deleted topics whose folders may still exist, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) deleted: BTreeMap<String, DeletedTopic>,
}

/// A topic that was deleted, and its folders perhaps not yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeletedTopic {
    pub(crate) name: String,
    pub(crate) partitions: i32,
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TopicEntry {
    #[serde(with = "uuid_text")]
    pub(crate) id: Uuid,
    pub(crate) partitions: i32,
    /// When it was created, in milliseconds since 1970; 0 if it was before this was written down.
    #[serde(default)]
    pub(crate) created_at: i64,
    /// The folders of its partitions were created with it: one that is missing has been lost.
    #[serde(default)]
    pub(crate) has_folders: bool,
    #[serde(default)]
    pub(crate) configs: Values,
}

mod uuid_text {
    use kohort_wire::Uuid;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Uuid, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl Document {
    fn new(node_id: i32) -> Document {
        Document {
            format: FORMAT,
            cluster_id: random_uuid().to_string(),
            node_id,
            next_producer_id: first_producer_id(),
            topics: BTreeMap::new(),
            cluster: Values::new(),
            broker: Values::new(),
            groups: BTreeMap::new(),
            deleted: BTreeMap::new(),
        }
    }

    /// Whether all settings have values that they can have: what is read as something else could
    /// delete records.
    fn check_settings(&self) -> Result<(), (String, BadValue)> {
        let topics = self.topics.iter().map(|(name, entry)| {
            let whose = format!("topic {name}");
            (whose, TOPIC, &entry.configs)
        });
        let groups = self.groups.iter().map(|(group_id, values)| {
            let whose = format!("group {group_id}");
            (whose, GROUP, values)
        });
        let broker = [
            ("the cluster".to_owned(), BROKER, &self.cluster),
            ("the broker".to_owned(), BROKER, &self.broker),
        ];
        for (whose, table, values) in topics.chain(groups).chain(broker) {
            table.check(values).map_err(|error| (whose, error))?;
        }
        Ok(())
    }

    pub(crate) fn is_deleted(&self, id: Uuid) -> bool {
        self.deleted.contains_key(&id.to_string())
    }
}

/// Where the ids of producers begin, in a life of the broker that knows of no earlier one.
///
/// A producer may outlive its broker: one in memory, or one whose data folder was deleted. Were its
/// id handed out again, its batches and those of the new owner would be taken for duplicates of
/// each other. So ids begin at a random place; below 2^52, because not every language has 64 bits.
fn first_producer_id() -> i64 {
    let mut bytes = [0; 8];
    random_bytes(&mut bytes);
    (u64::from_be_bytes(bytes) >> 12) as i64
}

/// Where the document is kept.
#[derive(Debug, Clone)]
pub(crate) enum Store {
    /// Nowhere: the broker is in memory.
    Memory,
    /// In this folder.
    Folder(Arc<DataFolder>),
}

impl Store {
    /// Reads the document, or begins one.
    pub(crate) fn open(&self, node_id: i32) -> io::Result<Document> {
        let Store::Folder(folder) = self else {
            return Ok(Document::new(node_id));
        };
        let path = folder.path().join(CATALOG);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let document = Document::new(node_id);
                self.save(&document)?;
                return Ok(document);
            }
            Err(error) => return Err(error),
        };
        let bad = |what: String| {
            let path = path.display();
            io::Error::new(io::ErrorKind::InvalidData, format!("{path} {what}"))
        };
        let document: Document = serde_json::from_slice(&bytes)
            .map_err(|error| bad(format!("is not a description of topics: {error}")))?;
        if document.format != FORMAT {
            let found = document.format;
            return Err(bad(format!(
                "has format {found}; this version of kohort reads format {FORMAT}"
            )));
        }
        document
            .check_settings()
            .map_err(|(whose, error)| bad(format!("has a bad setting of {whose}: {error}")))?;
        Ok(document)
    }

    /// Replaces the document, or leaves it as it is and returns an error. After a crash at any
    /// moment there is the old one or the new one.
    pub(crate) fn save(&self, document: &Document) -> io::Result<()> {
        let Store::Folder(folder) = self else {
            return Ok(());
        };
        let mut bytes = serde_json::to_vec_pretty(document)?;
        bytes.push(b'\n');
        folder.replace(CATALOG, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use kohort_log::OpenFiles;

    use super::*;

    #[test]
    fn what_is_saved_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::Folder(Arc::new(
            DataFolder::open(folder.path(), OpenFiles::unlimited()).unwrap(),
        ));
        let mut document = store.open(1).unwrap();
        let entry = TopicEntry {
            id: Uuid(7),
            partitions: 3,
            created_at: 5,
            has_folders: true,
            configs: Values::from([("retention.ms".to_owned(), "1000".to_owned())]),
        };
        document.topics.insert("orders".to_owned(), entry);
        store.save(&document).unwrap();
        assert_eq!(store.open(1).unwrap(), document);
    }

    #[test]
    fn a_document_that_is_damaged_or_from_the_future_is_an_error_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::Folder(Arc::new(
            DataFolder::open(folder.path(), OpenFiles::unlimited()).unwrap(),
        ));
        for text in [
            "{",
            "{\"format\":9,\"cluster_id\":\"\",\"node_id\":1,\"next_producer_id\":0}",
            "{\"format\":1,\"cluster_id\":\"\",\"node_id\":1,\"next_producer_id\":0,\"topics\":{\"t\":{\"id\":\"AAAAAAAAAAAAAAAAAAAAAQ\",\"partitions\":1,\"configs\":{\"cleanup.policy\":\"forget\"}}}}",
        ] {
            fs::write(folder.path().join(CATALOG), text).unwrap();
            assert!(store.open(1).is_err());
            assert_eq!(
                fs::read_to_string(folder.path().join(CATALOG)).unwrap(),
                text
            );
        }
    }

    #[test]
    fn nothing_that_names_a_life_of_the_broker_comes_again_in_the_next() {
        let (one, other) = (Document::new(1), Document::new(1));
        assert_ne!(one.cluster_id, other.cluster_id);
        assert!(one.next_producer_id.abs_diff(other.next_producer_id) > 1_000_000);
        assert!((0..1 << 52).contains(&one.next_producer_id));
    }
}
