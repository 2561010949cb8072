//! Kafka's group protocols as state machines without I/O.
//!
//! [`coordinator`] is the server's side, [`member`] the client's, [`assignor`] shares partitions
//! out. [`explain`] says in words what groups are doing, and [`text`] makes names from peers safe to
//! print.

pub mod assignor;
pub mod coordinator;
pub mod explain;
pub mod member;
pub mod text;
mod topic_ids;
mod topic_partitions;

pub use topic_ids::TopicIds;
pub use topic_partitions::{Run, TopicPartitions};
