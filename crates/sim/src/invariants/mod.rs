//! What must hold after every step, one promise a file.

mod commit_by_owner;
mod commit_order;
mod described;
mod durability;
mod epochs;
mod limits;
mod lost_answers;
mod new_partitions;
mod no_record_skipped;
mod offsets_kept;
mod one_owner;
mod replay;
mod rewind_begins;
mod rewind_interrupts_nobody;
mod rewind_keeps_others;
mod rewind_stands;
mod rewind_whole;
mod strangers;
mod targets;

use kohort_coordinator::{Record, Reply, Request, inspect::Place};

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
    Acted {
        /// The durable state before.
        before: &'a Durable,
        records: &'a [Record],
    },
    /// What was decided is durable, and these replies leave.
    Answers(&'a [(Origin, Reply)]),
    /// Another shard has been loaded from the log, and has gone on from there.
    Loaded {
        /// The durable state as it was loaded.
        before: &'a Durable,
        records: &'a [Record],
    },
    /// An application has another set of partitions.
    Owns,
    /// There are other topics or partitions, and nobody has heard of them yet.
    TopicsChanged,
    /// An application begins to read a partition.
    Begins {
        node: NodeId,
        place: Place,
        /// How often it had been rewound when the coordinator said where.
        era: u64,
        offset: i64,
        /// Nothing is committed: it begins where its client says.
        finds_nothing: bool,
        /// Something was committed when it was told where to begin.
        is_committed: bool,
    },
}

/// A step of the shard.
pub(crate) struct Step<'a> {
    /// The durable state before.
    pub(crate) before: &'a Durable,
    /// What it has decided.
    pub(crate) records: &'a [Record],
}

impl<'a> Happened<'a> {
    /// The step of the shard that has happened, if it is one.
    pub(crate) fn step(&self) -> Option<Step<'a>> {
        match *self {
            Happened::Decided {
                before, records, ..
            }
            | Happened::Acted { before, records }
            | Happened::Loaded { before, records } => Some(Step { before, records }),
            _ => None,
        }
    }
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
        Box::new(commit_order::CommitOrder),
        Box::new(no_record_skipped::NoRecordSkipped),
        Box::new(rewind_stands::RewindStands),
        Box::new(rewind_begins::RewindBegins),
        Box::new(rewind_interrupts_nobody::RewindInterruptsNobody),
        Box::new(rewind_keeps_others::RewindKeepsOthers),
        Box::new(rewind_whole::RewindWhole),
        Box::new(lost_answers::LostAnswers::default()),
        Box::new(offsets_kept::OffsetsKept::default()),
        Box::new(limits::Limits::default()),
        Box::new(new_partitions::NewPartitions::default()),
        Box::new(durability::Durability::default()),
        Box::new(described::Described::default()),
        Box::new(targets::Targets),
        Box::new(strangers::Strangers),
    ]
}
