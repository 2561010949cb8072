//! A Kafka client in pure Rust.
//!
//! - [`Admin`] looks after topics, configurations and groups.
//! - [`Consumer`] reads records, alone or as a member of a group.
//! - [`Producer`] writes records.
//! - [`rpc`]: any request to any broker.

pub mod admin;
#[cfg(feature = "blocking")]
pub mod blocking;
mod by_leader;
mod committed;
pub mod consumer;
mod error;
mod list_offsets;
pub mod producer;
mod properties;
pub mod rpc;
#[cfg(feature = "test-broker")]
pub mod testing;
mod time;
mod topic_partition;

pub use admin::Admin;
pub use bytestring::ByteString;
pub use committed::CommittedOffset;
pub use consumer::{Consumer, ConsumerConfig};
pub use error::{Each, Error, Result, Subject};
pub use kohort_wire::{ApiKey, ErrorCode, Uuid};
pub use list_offsets::{IsolationLevel, ListedOffset, OffsetSpec};
pub use producer::{Producer, ProducerConfig, ProducerRecord};
pub use properties::Properties;
pub use rpc::ClientConfig;
pub use topic_partition::TopicPartition;
