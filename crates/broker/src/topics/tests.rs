//! Every change takes effect on disk and in memory, or in neither, whatever fails.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use kohort_log::{Origin, ReadLimit};
use kohort_wire::{
    Uuid,
    records::{BatchBuilder, Compression},
};

use super::*;
use crate::{builder, clock::Clock, data_folder::CATALOG, settings::Values};

/// A change of what the broker remembers besides records.
#[derive(Debug, Clone, Copy)]
enum Change {
    CreateTopic,
    CreateTopics,
    OffsetsTopic,
    Grow,
    Delete,
    DeleteBoth,
    TopicSetting,
    BrokerSetting,
    ClusterSetting,
    GroupSetting,
    ForgetGroup,
    ProducerId,
}

const ALL: [Change; 12] = [
    Change::CreateTopic,
    Change::CreateTopics,
    Change::OffsetsTopic,
    Change::Grow,
    Change::Delete,
    Change::DeleteBoth,
    Change::TopicSetting,
    Change::BrokerSetting,
    Change::ClusterSetting,
    Change::GroupSetting,
    Change::ForgetGroup,
    Change::ProducerId,
];

fn start(folder: &Path) -> Arc<Catalog> {
    let opened = builder::open(Some(folder.to_owned()), Values::new(), 1, Clock::system());
    Arc::new(opened.unwrap())
}

fn new_topic(name: &str, partitions: i32) -> NewTopic {
    NewTopic {
        name: name.to_owned(),
        partitions,
        configs: Values::new(),
    }
}

/// Creates topics; whether all, or none, were created.
async fn create(catalog: &Arc<Catalog>, topics: &[NewTopic]) -> bool {
    let created = catalog.create_topics(topics.to_vec(), 1000, false).await;
    created.iter().all(Result::is_ok)
}

async fn delete(catalog: &Arc<Catalog>, names: &[&str]) -> bool {
    let snapshot = catalog.snapshot();
    let ids: Vec<Uuid> = names
        .iter()
        .map(|name| snapshot.topic(name).unwrap().id)
        .collect();
    catalog.delete_topics(&ids).await.is_ok()
}

fn set(values: &mut Values, name: &str, value: &str) -> Result<(), ChangeError> {
    values.insert(name.to_owned(), value.to_owned());
    Ok(())
}

impl Change {
    /// Makes the change. Returns what the client is told.
    async fn make(self, catalog: &Arc<Catalog>) -> bool {
        let changed = match self {
            Change::CreateTopic => return create(catalog, &[new_topic("new", 3)]).await,
            Change::CreateTopics => {
                return create(catalog, &[new_topic("a", 2), new_topic("b", 1)]).await;
            }
            Change::OffsetsTopic => return catalog.offsets_topic(2, 1 << 20).await.is_ok(),
            Change::Grow => {
                let wanted = NewPartitions {
                    name: "old".to_owned(),
                    count: 4,
                };
                catalog.create_partitions(wanted, 1000, false).await
            }
            Change::Delete => return delete(catalog, &["old"]).await,
            Change::DeleteBoth => return delete(catalog, &["old", "other"]).await,
            Change::TopicSetting => {
                let change = |edit: &mut SettingsEdit<'_>| {
                    set(edit.topic("old").unwrap(), "retention.ms", "7")
                };
                catalog.change_settings(change).await
            }
            Change::BrokerSetting => {
                let change =
                    |edit: &mut SettingsEdit<'_>| set(edit.broker(), "message.max.bytes", "7");
                catalog.change_settings(change).await
            }
            Change::ClusterSetting => {
                let change =
                    |edit: &mut SettingsEdit<'_>| set(edit.cluster(), "message.max.bytes", "8");
                catalog.change_settings(change).await
            }
            Change::GroupSetting => {
                let change = |edit: &mut SettingsEdit<'_>| {
                    set(edit.group("g"), "consumer.session.timeout.ms", "50000")
                };
                catalog.change_settings(change).await
            }
            Change::ForgetGroup => {
                let change = |edit: &mut SettingsEdit<'_>| {
                    edit.group("known").clear();
                    edit.tidy();
                    Ok(())
                };
                catalog.change_settings(change).await
            }
            Change::ProducerId => catalog.new_producer_id().await.map(|_| ()),
        };
        changed.is_ok()
    }
}

/// What can be seen of the topics and settings.
#[derive(Debug, PartialEq, Clone)]
struct Seen {
    topics: BTreeMap<String, (Uuid, usize, Values)>,
    settings: (Values, Values, BTreeMap<String, Values>),
}

fn seen(catalog: &Catalog) -> Seen {
    let snapshot = catalog.snapshot();
    let topics = snapshot.topics.values().map(|topic| {
        let seen = (topic.id, topic.partitions.len(), topic.configs.clone());
        (topic.name.to_string(), seen)
    });
    Seen {
        topics: topics.collect(),
        settings: (
            snapshot.broker.clone(),
            snapshot.cluster.clone(),
            snapshot.groups.clone(),
        ),
    }
}

fn on_disk(folder: &Path) -> Seen {
    let document = fs::read(folder.join(CATALOG)).unwrap();
    let document: Document = serde_json::from_slice(&document).unwrap();
    let topics = document.topics.into_iter().map(|(name, entry)| {
        let seen = (entry.id, entry.partitions as usize, entry.configs);
        (name, seen)
    });
    Seen {
        topics: topics.collect(),
        settings: (document.broker, document.cluster, document.groups),
    }
}

fn append(catalog: &Catalog, topic: &str) {
    let snapshot = catalog.snapshot();
    let partition = snapshot.partition(topic, 0).unwrap();
    let mut builder = BatchBuilder::new(Compression::None, None);
    builder.append(0, None, Some(b"a"), []).unwrap();
    let log = partition.log().unwrap();
    log.append(&builder.finish(), Origin::Client, 0, 0).unwrap();
    log.flush().unwrap();
}

fn record_count(catalog: &Catalog, topic: &str) -> i64 {
    let snapshot = catalog.snapshot();
    let log = snapshot.partition(topic, 0).unwrap().log().unwrap();
    let limit = ReadLimit {
        max_bytes: 1 << 20,
        at_least_one: true,
        until: None,
    };
    let read = log.read(0, limit).unwrap();
    assert_eq!(read.is_empty(), log.end_offset() == 0);
    log.end_offset()
}

/// A broker with two topics that have records, and a group with a setting.
async fn prepared(folder: &Path) -> Arc<Catalog> {
    let catalog = start(folder);
    assert!(create(&catalog, &[new_topic("old", 2), new_topic("other", 1)]).await);
    let change = |edit: &mut SettingsEdit<'_>| {
        set(edit.group("known"), "consumer.session.timeout.ms", "50000")
    };
    catalog.change_settings(change).await.unwrap();
    append(&catalog, "old");
    append(&catalog, "other");
    catalog
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Makes a change while the disk fails at one point, or from there on. Returns whether that was
/// beyond the last operation of the change.
async fn fails_at(template: &Path, change: Change, failing: usize, goes_on: bool) -> bool {
    let context = format!("{change:?}, failure at operation {failing}, goes on: {goes_on}");
    let folder = tempfile::tempdir().unwrap();
    copy(template, folder.path());
    let catalog = start(folder.path());
    let before = seen(&catalog);
    let (done, is_last) = {
        let faults = &catalog.logs.data_folder().faults;
        let _fault = if goes_on {
            faults.fail_from(failing)
        } else {
            faults.fail_once(failing)
        };
        let done = change.make(&catalog).await;
        (done, faults.count() <= failing)
    };
    let after = seen(&catalog);
    if !matches!(change, Change::ProducerId | Change::CreateTopics) {
        assert_eq!(after != before, done, "{context}");
    }
    assert_eq!(on_disk(folder.path()), after, "{context}");
    let producer_id = catalog.new_producer_id().await.unwrap();

    // A kill, and a new life.
    drop(catalog);
    let catalog = start(folder.path());
    assert_eq!(seen(&catalog), after, "{context}");
    for topic in ["old", "other"] {
        if after.topics.contains_key(topic) {
            assert_eq!(record_count(&catalog, topic), 1, "{context}");
        } else {
            // Deleted: one of the same name starts empty.
            assert!(create(&catalog, &[new_topic(topic, 2)]).await, "{context}");
            assert_eq!(record_count(&catalog, topic), 0, "{context}");
        }
    }
    assert!(catalog.new_producer_id().await.unwrap() > producer_id);
    // What was refused works now; of several topics, some may have been created.
    if !done && !matches!(change, Change::CreateTopics) {
        assert!(change.make(&catalog).await, "{context}");
    }
    is_last
}

#[tokio::test]
async fn a_change_that_fails_has_not_happened_and_one_that_succeeds_has() {
    let template = tempfile::tempdir().unwrap();
    drop(prepared(template.path()).await);
    for change in ALL {
        for goes_on in [false, true] {
            let mut failing = 0;
            while !fails_at(template.path(), change, failing, goes_on).await {
                failing += 1;
            }
            // It went through the disk at all.
            assert!(failing >= 5, "{change:?} has {failing} operations");
        }
    }
}

#[tokio::test]
async fn a_deletion_that_was_interrupted_is_finished_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = prepared(folder.path()).await;
    // Saving the catalog takes seven operations; none of the folders can be removed.
    {
        let _fault = catalog.logs.data_folder().faults.fail_from(7);
        assert!(delete(&catalog, &["old"]).await);
    }
    assert!(folder.path().join("old-0").exists());
    drop(catalog);
    let catalog = start(folder.path());
    assert!(!folder.path().join("old-0").exists());
    assert_eq!(record_count(&catalog, "other"), 1);
}

#[tokio::test]
async fn a_topic_may_be_created_again_although_its_old_folders_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = prepared(folder.path()).await;
    {
        let _fault = catalog.logs.data_folder().faults.fail_from(7);
        assert!(delete(&catalog, &["old"]).await);
    }
    assert!(create(&catalog, &[new_topic("old", 2)]).await);
    assert_eq!(record_count(&catalog, "old"), 0);
}

#[tokio::test]
async fn a_partition_whose_folder_is_gone_is_not_taken_for_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = prepared(folder.path()).await;
    drop(catalog);
    fs::remove_dir_all(folder.path().join("old-0")).unwrap();
    let catalog = start(folder.path());
    let snapshot = catalog.snapshot();
    let error = snapshot.partition("old", 0).unwrap().log().unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    assert!(!folder.path().join("old-0").exists());
    assert!(snapshot.partition("old", 1).unwrap().log().is_ok());
}

#[tokio::test]
async fn one_request_creates_a_bounded_number_of_partitions() {
    let catalog = Arc::new(builder::open(None, Values::new(), 1, Clock::system()).unwrap());
    let both = [new_topic("a", 6000), new_topic("b", 6000)];
    let created = catalog.create_topics(both.to_vec(), 100_000, false).await;
    for error in created.into_iter().map(Result::unwrap_err) {
        assert_eq!(error, too_many_at_once());
    }
    assert!(catalog.snapshot().topics.is_empty());
}
