//! What both sides of Kafka's group protocols share, without I/O.
//!
//! - [`assignor`] assigns partitions to members, as the coordinator does in the consumer protocol
//!   (KIP-848) and the leader of a group in the classic one.
//! - [`TopicPartitions`] holds sets of partitions, [`TopicIds`] sets of topics.
//! - [`history`] holds what happened to groups and why, and [`explain`] what groups are doing, in
//!   words for people.
//! - [`rewind`] reads the mark with which an administrator asks for a rewind.
//! - [`text`] makes names from peers safe to print.
//!
//! The state machines are in `kohort-coordinator` (server side) and `kohort-member` (client side).

pub mod assignor;
pub mod explain;
pub mod history;
pub mod rewind;
pub mod text;
mod topic_ids;
mod topic_partitions;

pub use topic_ids::TopicIds;
pub use topic_partitions::{Run, TopicPartitions};

/// A time in milliseconds since 1970. A coordinator's shell derives it from a monotonic clock, so that
/// no session ends because the wall clock was set.
pub type Millis = i64;

/// The id of a group, a member or an instance.
pub type Id = std::sync::Arc<str>;
