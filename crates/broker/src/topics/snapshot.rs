//! All topics and settings at one moment.

use std::{collections::BTreeMap, sync::Arc};

use kohort_coordinator::{LogStarts, Topics};
use kohort_wire::{ErrorCode, Uuid};
use rustc_hash::FxHashMap;

use super::{Document, Partition};
use crate::settings::{BROKER, Levels, Live, Values, View};

/// A topic.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) id: Uuid,
    pub(crate) name: Arc<str>,
    pub(crate) is_internal: bool,
    /// In milliseconds since 1970; 0 when not known.
    pub(crate) created_at: i64,
    pub(crate) partitions: Vec<Arc<Partition>>,
    /// The settings that it has of its own.
    pub(crate) configs: Values,
}

impl Topic {
    pub(crate) fn partition(&self, index: i32) -> Result<&Arc<Partition>, ErrorCode> {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.partitions.get(index))
            .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    }
}

/// All topics and settings at one moment: an immutable value, replaced as a whole.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) topics: BTreeMap<Arc<str>, Arc<Topic>>,
    by_id: Arc<ById>,
    /// The settings that the broker was started with.
    pub(crate) started_with: Arc<Values>,
    /// Settings changed for the whole cluster.
    pub(crate) cluster: Values,
    /// Settings changed for this broker.
    pub(crate) broker: Values,
    /// All of them together, the strongest of each.
    pub(crate) effective: Values,
    pub(crate) groups: BTreeMap<String, Values>,
    pub(crate) live: Arc<Live>,
    /// What the coordinator knows of topics.
    pub(crate) coordinator: Arc<Topics>,
}

/// The topics by id.
#[derive(Debug)]
struct ById(FxHashMap<Uuid, Arc<Topic>>);

impl LogStarts for ById {
    fn log_start_offset(&self, topic_id: Uuid, partition: i32) -> Option<i64> {
        let partition = self.0.get(&topic_id)?.partition(partition).ok()?;
        Some(partition.opened()?.start_offset())
    }
}

impl Snapshot {
    pub(super) fn new(
        version: i64,
        topics: BTreeMap<Arc<str>, Arc<Topic>>,
        started_with: Arc<Values>,
        document: &Document,
        effective: Values,
        previous: Option<&Topics>,
    ) -> Snapshot {
        let by_id = topics.values().map(|topic| (topic.id, Arc::clone(topic)));
        let by_id = Arc::new(ById(by_id.collect()));
        let known = topics.values().map(|topic| kohort_coordinator::Topic {
            id: topic.id,
            name: Arc::clone(&topic.name),
            partition_count: topic.partitions.len() as i32,
            is_internal: topic.is_internal,
            created_at: topic.created_at,
        });
        let log_starts = Arc::clone(&by_id);
        let coordinator = Topics::new(version, known).with_log_starts(log_starts);
        let coordinator = Arc::new(match previous {
            Some(previous) => coordinator.after(previous),
            None => coordinator,
        });
        Snapshot {
            by_id,
            live: Arc::new(Live::new(&effective)),
            coordinator,
            topics,
            started_with,
            cluster: document.cluster.clone(),
            broker: document.broker.clone(),
            groups: document.groups.clone(),
            effective,
        }
    }

    pub(crate) fn version(&self) -> i64 {
        self.coordinator.version()
    }

    pub(crate) fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(name)
    }

    pub(crate) fn topic_by_id(&self, id: Uuid) -> Option<&Arc<Topic>> {
        self.by_id.0.get(&id)
    }

    /// The topic of a request that names it, or gives its id in the versions that do.
    pub(crate) fn find(&self, name: &str, id: Uuid, by_id: bool) -> Result<&Arc<Topic>, ErrorCode> {
        if by_id {
            self.topic_by_id(id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)
        } else {
            self.topic(name)
                .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        }
    }

    pub(crate) fn partition(&self, name: &str, index: i32) -> Result<&Arc<Partition>, ErrorCode> {
        self.topic(name)
            .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?
            .partition(index)
    }

    pub(crate) fn partition_count(&self) -> usize {
        self.topics
            .values()
            .map(|topic| topic.partitions.len())
            .sum()
    }

    /// The broker's settings, level by level.
    pub(crate) fn levels(&self) -> Levels<'_> {
        Levels {
            broker: &self.broker,
            cluster: &self.cluster,
            started_with: &self.started_with,
        }
    }

    /// The broker's settings.
    pub(crate) fn settings(&self) -> View<'_> {
        View {
            table: BROKER,
            values: &self.effective,
        }
    }
}
