//! Topics come, grow and go.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kohort_wire::{ErrorCode, Uuid};
use parking_lot::Mutex;
use tracing::info;

use super::{
    Catalog, ChangeError, DeletedTopic, Document, EVENTS_TOPIC, OFFSETS_TOPIC, Topic,
    catalog::new_topic_id,
    document::TopicEntry,
    name::{check, collision_form},
    partition::side_by_side,
};
use crate::settings::{TOPIC, Values, check_offsets_topic};

/// How many partitions one request may create, as in Kafka's controller.
pub(crate) const NEW_PARTITIONS_MAX: usize = 10_000;

/// A topic to be created.
#[derive(Debug, Clone)]
pub(crate) struct NewTopic {
    pub(crate) name: String,
    pub(crate) partitions: i32,
    pub(crate) configs: Values,
}

/// A topic that is to have more partitions.
#[derive(Debug, Clone)]
pub(crate) struct NewPartitions {
    pub(crate) name: String,
    /// How many it is to have in all.
    pub(crate) count: i32,
}

impl Catalog {
    /// Creates topics, each for itself: what is wrong with one does not keep the others away.
    pub(crate) async fn create_topics(
        self: &Arc<Self>,
        topics: Vec<NewTopic>,
        partitions_max: usize,
        validate_only: bool,
    ) -> Vec<Result<Arc<Topic>, ChangeError>> {
        let new = topics.iter().map(|topic| topic.partitions.max(0) as usize);
        if new.sum::<usize>() > NEW_PARTITIONS_MAX {
            return topics.iter().map(|_| Err(too_many_at_once())).collect();
        }
        let document = self.edit().await;
        let mut edited = document.clone();
        let mut collisions: BTreeMap<String, String> = BTreeMap::new();
        for name in edited.topics.keys() {
            collisions.insert(collision_form(name), name.clone());
        }
        let mut room = partitions_max.saturating_sub(self.snapshot().partition_count());
        let mut results = Vec::with_capacity(topics.len());
        let mut added = Vec::new();
        for topic in topics {
            let checked = check_new(&topic, &edited, &collisions, room)
                .and_then(|id| self.check_offsets(&topic).map(|()| id));
            if let Ok(id) = checked {
                room -= topic.partitions as usize;
                collisions.insert(collision_form(&topic.name), topic.name.clone());
                let entry = TopicEntry {
                    id,
                    partitions: topic.partitions,
                    created_at: self.clock.date_ms(),
                    has_folders: true,
                    configs: topic.configs,
                };
                edited.topics.insert(topic.name.clone(), entry);
                added.push(topic.name.clone());
            }
            results.push(checked.map(|_| topic.name));
        }
        if validate_only {
            let view = self.preview(&edited);
            return finish(results, |name| view.get(name).cloned());
        }
        if added.is_empty() {
            return finish(results, |_| None);
        }
        let (created, failed) = self
            .run(document, move |catalog, document| {
                catalog.create_now(document, edited, &added)
            })
            .await;
        let results = results.into_iter().map(|result| {
            let name = result?;
            failed.get(&name).cloned().map_or(Ok(name), Err)
        });
        finish(results.collect(), |name| created.get(name).cloned())
    }

    /// Creates the folders of new topics, and then the topics. One whose folders cannot be created
    /// is left out.
    fn create_now(
        &self,
        document: &mut Document,
        mut edited: Document,
        added: &[String],
    ) -> (BTreeMap<String, Arc<Topic>>, BTreeMap<String, ChangeError>) {
        let mut failed = BTreeMap::new();
        let mut added: BTreeMap<&String, (Uuid, i32)> = added
            .iter()
            .map(|name| {
                (
                    name,
                    (edited.topics[name].id, edited.topics[name].partitions),
                )
            })
            .collect();
        added.retain(|name, (id, partitions)| {
            let is_deleted = |id| document.is_deleted(id);
            let folders = self.logs.create(name, *id, 0..*partitions, is_deleted);
            if let Err(error) = &folders {
                edited.topics.remove(*name);
                failed.insert((*name).clone(), ChangeError::folders(name, error));
            }
            folders.is_ok()
        });
        if added.is_empty() {
            return (BTreeMap::new(), failed);
        }
        let synced = self.logs.sync().map_err(|e| ChangeError::storage(&e));
        let snapshot = match synced.and_then(|()| self.commit(document, edited)) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                for (name, (id, partitions)) in added {
                    self.logs.undo_create(name, id, 0..partitions);
                    failed.insert(name.clone(), error.clone());
                }
                return (BTreeMap::new(), failed);
            }
        };
        let created = added.into_keys().filter_map(|name| {
            let topic = snapshot.topic(name)?;
            let count = topic.partitions.len();
            info!(
                "topic {name} created with {count} partitions (id {})",
                topic.id
            );
            Some((name.clone(), Arc::clone(topic)))
        });
        (created.collect(), failed)
    }

    /// A client may create the groups' topic, but not one that loses their offsets.
    fn check_offsets(&self, topic: &NewTopic) -> Result<(), ChangeError> {
        if topic.name != OFFSETS_TOPIC {
            return Ok(());
        }
        check_offsets_topic(&topic.configs, self.snapshot().settings())
            .map_err(|message| ChangeError::new(ErrorCode::INVALID_CONFIG, message))
    }

    /// The topics as they would be.
    fn preview(&self, document: &Document) -> BTreeMap<String, Arc<Topic>> {
        let entries = document.topics.iter();
        entries
            .map(|(name, entry)| {
                let topic = Topic {
                    id: Uuid::ZERO,
                    name: name.as_str().into(),
                    is_internal: super::is_internal(name),
                    partitions: Vec::new(),
                    created_at: entry.created_at,
                    configs: entry.configs.clone(),
                };
                (name.clone(), Arc::new(topic))
            })
            .collect()
    }

    /// Gives topics more partitions.
    pub(crate) async fn create_partitions(
        self: &Arc<Self>,
        wanted: NewPartitions,
        partitions_max: usize,
        validate_only: bool,
    ) -> Result<(), ChangeError> {
        let document = self.edit().await;
        let mut edited = document.clone();
        let total = self.snapshot().partition_count();
        let entry = edited.topics.get_mut(&wanted.name).ok_or_else(|| {
            ChangeError::new(
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                "there is no such topic",
            )
        })?;
        let invalid =
            |message: String| Err(ChangeError::new(ErrorCode::INVALID_PARTITIONS, message));
        if wanted.count == entry.partitions {
            return invalid(format!("it has {} partitions as it is", entry.partitions));
        }
        if wanted.count < entry.partitions {
            return invalid(format!(
                "the topic has {} partitions; {} would not be more",
                entry.partitions, wanted.count
            ));
        }
        if wanted.name == OFFSETS_TOPIC {
            return Err(ChangeError::new(
                ErrorCode::INVALID_REQUEST,
                "the number of partitions of __consumer_offsets decides which group belongs where, and never changes",
            ));
        }
        let more = (wanted.count - entry.partitions) as usize;
        if total + more > partitions_max {
            return invalid(too_many(total, more, partitions_max));
        }
        entry.partitions = wanted.count;
        if validate_only {
            return Ok(());
        }
        self.run(document, move |catalog, document| {
            catalog.grow_now(document, edited, &wanted)
        })
        .await
    }

    /// Creates the folders of new partitions, and then the partitions.
    fn grow_now(
        &self,
        document: &mut Document,
        edited: Document,
        wanted: &NewPartitions,
    ) -> Result<(), ChangeError> {
        let NewPartitions { name, count } = wanted;
        let before = &document.topics[name];
        let (id, new) = (before.id, before.partitions..*count);
        let is_deleted = |id| document.is_deleted(id);
        self.logs
            .create(name, id, new.clone(), is_deleted)
            .map_err(|error| ChangeError::folders(name, &error))?;
        let synced = self.logs.sync().map_err(|e| ChangeError::storage(&e));
        synced
            .and_then(|()| self.commit(document, edited))
            .inspect_err(|_| self.logs.undo_create(name, id, new))?;
        info!("topic {name} now has {count} partitions");
        Ok(())
    }

    /// Deletes topics and their records. Gives back those that there were.
    pub(crate) async fn delete_topics(
        self: &Arc<Self>,
        ids: &[Uuid],
    ) -> Result<Vec<Arc<Topic>>, ChangeError> {
        let document = self.edit().await;
        let before = self.snapshot();
        let gone: Vec<_> = ids
            .iter()
            .filter_map(|&id| before.topic_by_id(id).cloned())
            .collect();
        if gone.is_empty() {
            return Ok(gone);
        }
        let mut edited = document.clone();
        for topic in &gone {
            edited.topics.remove(&*topic.name);
            let deleted = DeletedTopic {
                name: topic.name.to_string(),
                partitions: topic.partitions.len() as i32,
            };
            edited.deleted.insert(topic.id.to_string(), deleted);
        }
        self.run(document, move |catalog, document| {
            catalog.commit(document, edited)?;
            for topic in &gone {
                info!("topic {} deleted (id {})", topic.name, topic.id);
            }
            // Still under the lock: a topic of the same name must not be created before the folders
            // are out of its way.
            let partitions: Vec<_> = gone.iter().flat_map(|topic| &topic.partitions).collect();
            let left = Mutex::new(BTreeSet::new());
            side_by_side(&partitions, |partition| {
                if partition.delete().is_err() {
                    left.lock().insert(partition.topic_id);
                }
            });
            let left = left.into_inner();
            for topic in gone.iter().filter(|topic| !left.contains(&topic.id)) {
                // On disk with the next change: until then it makes the next start look for them.
                document.deleted.remove(&topic.id.to_string());
            }
            Ok(gone)
        })
        .await
    }

    /// The topic of the groups' state, created when it is first needed.
    pub(crate) async fn offsets_topic(
        self: &Arc<Self>,
        partitions: i32,
        segment_bytes: i32,
    ) -> Result<Arc<Topic>, ChangeError> {
        if let Some(topic) = self.snapshot().topic(OFFSETS_TOPIC) {
            return Ok(Arc::clone(topic));
        }
        let configs = [
            ("cleanup.policy", "compact".to_owned()),
            ("compression.type", "producer".to_owned()),
            ("segment.bytes", segment_bytes.to_string()),
        ];
        self.own_topic(OFFSETS_TOPIC, partitions, configs).await
    }

    /// The topic of what happened to groups, created when it is first needed. One partition: its
    /// records are few, and in it they stand in the order in which they happened.
    pub(crate) async fn events_topic(
        self: &Arc<Self>,
        retention_ms: i64,
    ) -> Result<Arc<Topic>, ChangeError> {
        if let Some(topic) = self.snapshot().topic(EVENTS_TOPIC) {
            return Ok(Arc::clone(topic));
        }
        let configs = [
            ("cleanup.policy", "delete".to_owned()),
            ("retention.ms", retention_ms.to_string()),
            // Whole segments expire: with one a day, about that day more than asked for is kept.
            ("segment.ms", "86400000".to_owned()),
            ("segment.bytes", (64 << 20).to_string()),
        ];
        self.own_topic(EVENTS_TOPIC, 1, configs).await
    }

    /// A topic of the broker's own.
    async fn own_topic<const N: usize>(
        self: &Arc<Self>,
        name: &str,
        partitions: i32,
        configs: [(&str, String); N],
    ) -> Result<Arc<Topic>, ChangeError> {
        let topic = NewTopic {
            name: name.to_owned(),
            partitions,
            configs: configs
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        };
        let created = self.create_topics(vec![topic], usize::MAX, false).await;
        if let Some(topic) = self.snapshot().topic(name) {
            return Ok(Arc::clone(topic));
        }
        Err(created
            .into_iter()
            .find_map(Result::err)
            .unwrap_or_else(|| ChangeError::new(ErrorCode::COORDINATOR_NOT_AVAILABLE, "")))
    }
}

fn check_new(
    topic: &NewTopic,
    document: &Document,
    collisions: &BTreeMap<String, String>,
    room: usize,
) -> Result<Uuid, ChangeError> {
    check(&topic.name)
        .map_err(|message| ChangeError::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message))?;
    if document.topics.contains_key(&topic.name) {
        return Err(ChangeError::new(
            ErrorCode::TOPIC_ALREADY_EXISTS,
            format!("a topic {} already exists", topic.name),
        ));
    }
    if let Some(other) = collisions.get(&collision_form(&topic.name)) {
        return Err(ChangeError::new(
            ErrorCode::INVALID_TOPIC_EXCEPTION,
            format!(
                "the topic {} would be taken for {other}, which exists: in the names of metrics . and _ are the same",
                topic.name
            ),
        ));
    }
    for (name, value) in &topic.configs {
        let invalid = |message| ChangeError::new(ErrorCode::INVALID_CONFIG, message);
        let definition = TOPIC
            .get(name)
            .ok_or_else(|| invalid(format!("topics have no setting {name}")))?;
        definition
            .check(value)
            .map_err(|error| invalid(error.to_string()))?;
    }
    if topic.partitions as usize > room {
        return Err(ChangeError::new(
            ErrorCode::INVALID_PARTITIONS,
            format!(
                "{} partitions are more than the {room} that there is still room for (kohort.max.partitions)",
                topic.partitions
            ),
        ));
    }
    Ok(new_topic_id())
}

/// A request asks for more than one request may create.
pub(crate) fn too_many_at_once() -> ChangeError {
    ChangeError::new(
        ErrorCode::POLICY_VIOLATION,
        format!("one request may create at most {NEW_PARTITIONS_MAX} partitions"),
    )
}

fn too_many(total: usize, more: usize, limit: usize) -> String {
    format!(
        "{total} partitions and {more} more would be over the limit of {limit} (kohort.max.partitions)"
    )
}

fn finish(
    results: Vec<Result<String, ChangeError>>,
    topic: impl Fn(&str) -> Option<Arc<Topic>>,
) -> Vec<Result<Arc<Topic>, ChangeError>> {
    let gone = || ChangeError::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "deleted meanwhile");
    results
        .into_iter()
        .map(|result| result.and_then(|name| topic(&name).ok_or_else(gone)))
        .collect()
}
