//! The one place where topics and settings change.

use std::{io, sync::Arc};

use kohort_wire::{ErrorCode, Uuid};
use parking_lot::RwLock;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use super::{
    Document, Partition, Snapshot, Store, Topic,
    document::TopicEntry,
    is_internal,
    partition_config::{cache_bytes, partition_config},
};
use crate::{
    clock::Clock,
    logs::Logs,
    settings::{BROKER, Values, View},
};

/// How many producer ids are set aside at a time, as in Kafka: after a crash at most so many are
/// never used.
const PRODUCER_ID_BLOCK: i64 = 1000;

/// The topics and settings: who wants to look takes the [`Snapshot`], who wants to change waits for
/// his turn.
#[derive(Debug)]
pub(crate) struct Catalog {
    store: Store,
    pub(crate) logs: Arc<Logs>,
    pub(crate) cluster_id: String,
    pub(super) clock: Clock,
    document: Arc<Mutex<Document>>,
    snapshot: RwLock<Arc<Snapshot>>,
    changed: watch::Sender<i64>,
    producer_ids: Mutex<std::ops::Range<i64>>,
}

/// Why something was not changed, as the client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangeError {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl ChangeError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> ChangeError {
        ChangeError {
            code,
            message: message.into(),
        }
    }

    pub(super) fn storage(error: &io::Error) -> ChangeError {
        tracing::error!("saving the description of topics failed: {error}");
        ChangeError::new(
            ErrorCode::KAFKA_STORAGE_ERROR,
            format!("the broker could not save the change: {error}"),
        )
    }

    pub(super) fn folders(topic: &str, error: &io::Error) -> ChangeError {
        tracing::error!("creating the folders of topic {topic} failed: {error}");
        ChangeError::new(
            ErrorCode::KAFKA_STORAGE_ERROR,
            format!("the broker could not create the topic's folders: {error}"),
        )
    }
}

impl Catalog {
    /// The catalog of a document that has been read.
    pub(crate) fn new(
        store: Store,
        document: Document,
        started_with: Values,
        logs: Arc<Logs>,
        clock: Clock,
    ) -> Catalog {
        let effective = effective(&started_with, &document);
        let view = View {
            table: BROKER,
            values: &effective,
        };
        let cache_bytes = cache_bytes(partition_count(&document));
        let topics = document.topics.iter().map(|(name, entry)| {
            let topic = topic(name, entry, &[], &logs, view, cache_bytes);
            (Arc::clone(&topic.name), topic)
        });
        let topics = topics.collect();
        // Versions are kept with what was made of them, so none may come again after a restart: not
        // after many changes, and not if the clock was set back.
        let mut random = [0; 4];
        crate::random_bytes(&mut random);
        let version = clock.date_ms() << 20 | i64::from(u32::from_be_bytes(random) >> 12);
        let snapshot = Snapshot::new(
            version,
            topics,
            Arc::new(started_with),
            &document,
            effective,
            None,
        );
        Catalog {
            store,
            logs,
            cluster_id: document.cluster_id.clone(),
            clock,
            document: Arc::new(Mutex::new(document)),
            snapshot: RwLock::new(Arc::new(snapshot)),
            changed: watch::Sender::new(version),
            producer_ids: Mutex::new(0..0),
        }
    }

    /// The topics and settings as they are now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read())
    }

    /// Tells of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<i64> {
        self.changed.subscribe()
    }

    /// The document, for who is going to change it.
    pub(super) async fn edit(&self) -> OwnedMutexGuard<Document> {
        Arc::clone(&self.document).lock_owned().await
    }

    /// Runs a change to its end, on a thread that may wait for the disk. The lock is held until
    /// then even if the caller is gone: a request ends with its connection, and the next change must
    /// neither overtake this one on disk nor undo it.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        mut document: OwnedMutexGuard<Document>,
        change: impl FnOnce(&Catalog, &mut Document) -> T + Send + 'static,
    ) -> T {
        let catalog = Arc::clone(self);
        let task = tokio::task::spawn_blocking(move || change(&catalog, &mut document));
        match task.await {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// Makes the edited document durable and shows it to everybody. If it cannot be saved, nothing
    /// has changed, on disk or in memory.
    pub(super) fn commit(
        &self,
        document: &mut Document,
        edited: Document,
    ) -> Result<Arc<Snapshot>, ChangeError> {
        self.save(document, edited)?;
        Ok(self.publish(document))
    }

    fn save(&self, document: &mut Document, edited: Document) -> Result<(), ChangeError> {
        self.store
            .save(&edited)
            .map_err(|error| ChangeError::storage(&error))?;
        *document = edited;
        Ok(())
    }

    fn publish(&self, document: &Document) -> Arc<Snapshot> {
        let before = self.snapshot();
        let effective = effective(&before.started_with, document);
        let view = View {
            table: BROKER,
            values: &effective,
        };
        let cache_bytes_before = cache_bytes(before.partition_count());
        let cache_bytes = cache_bytes(partition_count(document));
        let defaults_changed = effective != before.effective || cache_bytes != cache_bytes_before;
        let topics = document.topics.iter().map(|(name, entry)| {
            let known = before.topic(name).filter(|topic| topic.id == entry.id);
            let topic = match known {
                Some(known)
                    if !defaults_changed
                        && known.configs == entry.configs
                        && known.partitions.len() == entry.partitions as usize =>
                {
                    Arc::clone(known)
                }
                known => {
                    let partitions = known.map_or(&[][..], |known| &known.partitions);
                    topic(name, entry, partitions, &self.logs, view, cache_bytes)
                }
            };
            (Arc::clone(&topic.name), topic)
        });
        let topics = topics.collect();
        let started_with = Arc::clone(&before.started_with);
        let next = Snapshot::new(
            before.version() + 1,
            topics,
            started_with,
            document,
            effective,
            Some(&before.coordinator),
        );
        let next = Arc::new(next);
        *self.snapshot.write() = Arc::clone(&next);
        self.changed.send_replace(next.version());
        next
    }

    /// Replaces settings of topics, the broker or groups.
    pub(crate) async fn change_settings<T>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut SettingsEdit<'_>) -> Result<T, ChangeError>,
    ) -> Result<T, ChangeError> {
        let document = self.edit().await;
        let mut edited = document.clone();
        let result = change(&mut SettingsEdit {
            document: &mut edited,
        })?;
        if edited != *document {
            self.run(document, |catalog, document| {
                catalog.commit(document, edited).map(|_| ())
            })
            .await?;
        }
        Ok(result)
    }

    /// A producer id that was never assigned before, not even before a restart.
    pub(crate) async fn new_producer_id(self: &Arc<Self>) -> Result<i64, ChangeError> {
        let mut ids = self.producer_ids.lock().await;
        if ids.is_empty() {
            let document = self.edit().await;
            let mut edited = document.clone();
            let first = edited.next_producer_id;
            edited.next_producer_id += PRODUCER_ID_BLOCK;
            let end = edited.next_producer_id;
            self.run(document, |catalog, document| catalog.save(document, edited))
                .await?;
            *ids = first..end;
        }
        ids.next().ok_or_else(|| {
            ChangeError::new(ErrorCode::UNKNOWN_SERVER_ERROR, "no producer ids left")
        })
    }
}

/// Settings being changed.
pub(crate) struct SettingsEdit<'a> {
    document: &'a mut Document,
}

impl SettingsEdit<'_> {
    pub(crate) fn topic(&mut self, name: &str) -> Option<&mut Values> {
        self.document
            .topics
            .get_mut(name)
            .map(|entry| &mut entry.configs)
    }

    pub(crate) fn broker(&mut self) -> &mut Values {
        &mut self.document.broker
    }

    pub(crate) fn cluster(&mut self) -> &mut Values {
        &mut self.document.cluster
    }

    pub(crate) fn group(&mut self, group_id: &str) -> &mut Values {
        self.document.groups.entry(group_id.to_owned()).or_default()
    }

    /// Forgets groups that have no settings.
    pub(crate) fn tidy(&mut self) {
        self.document.groups.retain(|_, values| !values.is_empty());
    }
}

/// The broker's settings, the strongest of each.
fn effective(started_with: &Values, document: &Document) -> Values {
    let mut values = started_with.clone();
    values.extend(document.cluster.clone());
    values.extend(document.broker.clone());
    values
}

fn partition_count(document: &Document) -> usize {
    let topics = document.topics.values();
    topics.map(|entry| entry.partitions as usize).sum()
}

/// A topic, with the partitions that it has already and those that it is to get.
fn topic(
    name: &str,
    entry: &TopicEntry,
    known: &[Arc<Partition>],
    logs: &Arc<Logs>,
    broker: View<'_>,
    cache_bytes: usize,
) -> Arc<Topic> {
    let config = partition_config(name, &entry.configs, broker, cache_bytes);
    let config = Arc::new(config);
    let partitions = (0..entry.partitions).map(|index| match known.get(index as usize) {
        Some(partition) => {
            partition.set_config(&config);
            Arc::clone(partition)
        }
        None => Partition::new(
            name,
            index,
            entry.id,
            entry.has_folders,
            Arc::clone(&config),
            Arc::clone(logs),
        ),
    });
    Arc::new(Topic {
        id: entry.id,
        name: name.into(),
        is_internal: is_internal(name),
        created_at: entry.created_at,
        partitions: partitions.collect(),
        configs: entry.configs.clone(),
    })
}

/// The id of a topic, when there is none yet.
pub(super) fn new_topic_id() -> Uuid {
    crate::random_uuid()
}
