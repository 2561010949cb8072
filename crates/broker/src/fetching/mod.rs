//! Fetching: what a consumer is interested in (its session), and reading it.

mod read;
mod session;
mod wanted;

pub(crate) use read::{Batches, Limits, read};
pub(crate) use session::{Context, Sessions};
pub(crate) use wanted::{TopicKey, Wanted};
