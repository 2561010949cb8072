//! Kafka's group protocols as state machines without I/O.
//!
//! [`coordinator`] is the server's side, [`member`] the client's, [`assignor`] shares partitions
//! out. [`explain`] says in words what groups are doing.

pub mod assignor;
pub mod coordinator;
pub mod explain;
pub mod member;
mod topic_ids;
mod topic_partitions;

pub use topic_ids::TopicIds;
pub use topic_partitions::{Run, TopicPartitions};
