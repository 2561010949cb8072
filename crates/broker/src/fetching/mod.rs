//! Fetching: what a consumer is interested in (its session), and reading it.

mod backlog;
mod read;
mod session;
mod wanted;

pub(crate) use backlog::Backlog;
pub(crate) use read::{Batches, Limits, read};
pub(crate) use session::{Context, Sessions};
pub(crate) use wanted::{TopicKey, Wanted};
