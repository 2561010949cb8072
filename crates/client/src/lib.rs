//! A Kafka client in pure Rust.
//!
//! - [`rpc`]: any request to any broker.

mod error;
pub mod rpc;
mod topic_partition;

pub use bytestring::ByteString;
pub use error::{Error, Result, Subject};
pub use kohort_wire::{ApiKey, ErrorCode, Uuid};
pub use topic_partition::TopicPartition;
