//! What a consumer wants of one partition.

use std::sync::Arc;

use kohort_wire::{ErrorCode, Uuid};

use crate::topics::{Partition, Snapshot};

/// How a request calls a topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum TopicKey {
    Name(Arc<str>),
    Id(Uuid),
}

/// What a consumer wants of one partition.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) topic: TopicKey,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) bytes_max: i32,
    pub(crate) current_leader_epoch: i32,
    pub(crate) last_fetched_epoch: i32,
}

impl Wanted {
    /// The partition, if it is there.
    pub(crate) fn find(&self, snapshot: &Snapshot) -> Result<Arc<Partition>, ErrorCode> {
        let topic = match &self.topic {
            TopicKey::Name(name) => snapshot
                .topic(name)
                .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?,
            TopicKey::Id(id) => snapshot
                .topic_by_id(*id)
                .ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?,
        };
        topic.partition(self.partition).cloned()
    }
}
