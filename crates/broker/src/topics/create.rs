//! Topics come, grow and go.

use std::{collections::BTreeMap, sync::Arc};

use kohort_wire::{ErrorCode, Uuid};
use tracing::{error, info};

use super::{
    Catalog, ChangeError, Document, EVENTS_TOPIC, OFFSETS_TOPIC, Partition, Topic,
    catalog::new_topic_id,
    document::TopicEntry,
    name::{check, collision_form},
    partition::side_by_side,
};
use crate::{
    logs::Logs,
    settings::{TOPIC, Values},
};

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
            let checked = check_new(&topic, &edited, &collisions, room);
            if let Ok(id) = checked {
                room -= topic.partitions as usize;
                collisions.insert(collision_form(&topic.name), topic.name.clone());
                let entry = TopicEntry {
                    id,
                    partitions: topic.partitions,
                    created_at: self.clock.now_ms(),
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
        let committed = self
            .commit(document, edited, move |snapshot| {
                let created: Vec<_> = added
                    .iter()
                    .filter_map(|name| snapshot.topic(name).cloned())
                    .collect();
                for topic in &created {
                    let count = topic.partitions.len();
                    info!(
                        "topic {} created with {count} partitions (id {})",
                        topic.name, topic.id
                    );
                }
                (snapshot, created)
            })
            .await;
        let (snapshot, created) = match committed {
            Ok(committed) => committed,
            Err(error) => {
                let failed = results
                    .into_iter()
                    .map(|result| result.and_then(|_| Err(error.clone())));
                return failed.collect();
            }
        };
        open(Arc::clone(&self.logs), created).await;
        finish(results, |name| snapshot.topic(name).cloned())
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
        let snapshot = self.commit(document, edited, |snapshot| snapshot).await?;
        info!("topic {} now has {} partitions", wanted.name, wanted.count);
        open(
            Arc::clone(&self.logs),
            snapshot.topic(&wanted.name).cloned().into_iter().collect(),
        )
        .await;
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
        }
        // All of it under the lock: a topic of the same name must not be created before the folders
        // are out of its way.
        self.commit(document, edited, move |_| {
            for topic in &gone {
                info!("topic {} deleted (id {})", topic.name, topic.id);
            }
            let partitions: Vec<_> = gone.iter().flat_map(|topic| &topic.partitions).collect();
            side_by_side(&partitions, Partition::delete);
            gone
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
            ("segment.bytes", segment_bytes.max(1 << 20).to_string()),
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

fn too_many(total: usize, more: usize, limit: usize) -> String {
    format!(
        "{total} partitions and {more} more would be over the limit of {limit} (kohort.max.partitions)"
    )
}

/// Opens the logs of new partitions, so that the first producer need not wait for it. The groups'
/// topic is left alone: of its many partitions most are never used.
async fn open(logs: Arc<Logs>, topics: Vec<Arc<Topic>>) {
    let task = tokio::task::spawn_blocking(move || {
        let topics = topics.iter().filter(|topic| &*topic.name != OFFSETS_TOPIC);
        let partitions: Vec<_> = topics.flat_map(|topic| &topic.partitions).collect();
        side_by_side(&partitions, Partition::open_with_others);
        if !partitions.is_empty()
            && let Err(error) = logs.sync()
        {
            error!("the folders of new partitions may not survive a power failure: {error}");
        }
    });
    if let Err(panic) = task.await {
        std::panic::resume_unwind(panic.into_panic());
    }
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
