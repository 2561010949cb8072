//! What a step of a shard leaves to its shell.

use kohort_group::history::Event;

use super::{Record, Reply};

/// The address of a reply: chosen by the shell for each request, kept by the shard until it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// What steps of a shard leave to its shell.
///
/// The shell appends all records as one batch; once it is durable, it sends the replies. If the
/// append fails, it drops the shard and the replies, and loads the shard again.
#[derive(Debug, Default)]
pub struct Outbox {
    /// To be appended, in this order.
    pub records: Vec<Record>,
    /// To be sent once the records are durable.
    pub replies: Vec<(Token, Reply)>,
    /// To be computed outside of the shard, and brought back with [`Shard::done`](super::Shard::done).
    pub work: Vec<Work>,
    /// What happened to groups, and why; for logs and history.
    pub events: Vec<Event>,
}

impl Outbox {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
            && self.replies.is_empty()
            && self.work.is_empty()
            && self.events.is_empty()
    }
}

pub use super::consumer::{Work, WorkDone};
