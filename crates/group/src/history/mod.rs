//! What happened to groups, and why.
//!
//! Whatever changes a group is an [`Event`]: data, with a line of words for people ([`What`] is
//! `Display`) and a JSON form for programs ([`Event::to_json`]). Most have a [`Cause`]: what somebody
//! did or failed to do. Events are made where something changes, never for a heartbeat or a commit
//! that goes its way; lists in them are bounded ([`Few`]), so that the event of a huge group is no
//! larger than that of a small one.

mod cause;
mod event;
mod json;
#[cfg(test)]
mod tests;
mod who;
mod words;

pub use cause::{Cause, Causes, Change, Failure, TopicChange, reason};
pub use event::{Deletion, Event, Late, Needs, Offset, Phase, Protocol, Waited, What};
pub use json::{EventError, SCHEMA_VERSION};
pub use who::{Few, Who, clean, short};
pub use words::{clock_span, partitions_in_words};
