//! What must hold after every step, one promise a file.

mod commit_by_owner;
mod described;
mod durability;
mod epochs;
mod no_record_skipped;
mod one_owner;
mod replay;
mod strangers;
mod targets;

use kohort_group::coordinator::{Record, Reply, Request, inspect::Place};

use crate::{
    coordinator::{Durable, Origin},
    node::NodeId,
    world::World,
};

/// What has just happened.
pub(crate) enum Happened<'a> {
    /// The shard has taken a request; its reply may come later.
    Decided {
        origin: Origin,
        request: &'a Request,
        /// The durable state before.
        before: &'a Durable,
        reply: Option<&'a Reply>,
        records: &'a [Record],
    },
    /// The shard has done something by itself.
    Acted,
    /// What was decided is durable, and these replies leave.
    Answers(&'a [(Origin, Reply)]),
    /// Another shard has been loaded from the log.
    Loaded,
    /// An application has another set of partitions.
    Owns,
    /// An application begins to read a partition.
    Begins {
        node: NodeId,
        place: Place,
        offset: i64,
    },
}

/// Something that must hold after every step.
pub(crate) trait Invariant {
    fn name(&self) -> &'static str;

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String>;
}

pub(crate) fn all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(replay::Replay::default()),
        Box::new(one_owner::OneOwner),
        Box::new(epochs::Epochs::default()),
        Box::new(commit_by_owner::CommitByOwner),
        Box::new(no_record_skipped::NoRecordSkipped),
        Box::new(durability::Durability::default()),
        Box::new(described::Described),
        Box::new(targets::Targets),
        Box::new(strangers::Strangers),
    ]
}
