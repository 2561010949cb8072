//! Kafka's group protocols as state machines without I/O.
//!
//! [`coordinator`] is the server's side, [`assignor`] shares partitions out.

pub mod assignor;
pub mod coordinator;
