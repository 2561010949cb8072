//! A Kafka client in pure Rust.
//!
//! - [`Consumer`] reads records, alone or as a member of a group.
//! - [`Producer`] writes records.
//! - [`Admin`] looks after topics, configurations and groups.
//! - [`rpc`]: any request to any broker.
//! - [`guide`]: how to do what most programs do.
//!
//! ```no_run
//! use kohort::{Consumer, Producer, ProducerRecord, consumer::OffsetReset};
//!
//! # async fn example() -> kohort::Result<()> {
//! let producer = Producer::builder().bootstrap_servers("localhost:9092").build().await?;
//! let record = ProducerRecord::new("orders").key("customer-7").value("three pears");
//! producer.send(record).await?.await?;
//!
//! let mut consumer = Consumer::builder()
//!     .bootstrap_servers("localhost:9092")
//!     .group_id("billing")
//!     .offset_reset(OffsetReset::Earliest)
//!     .build()
//!     .await?;
//! consumer.subscribe(["orders"])?;
//! loop {
//!     for record in &consumer.poll().await? {
//!         println!("{:?}: {:?}", record.key, record.value);
//!     }
//! }
//! # }
//! ```
//!
//! Options are methods of builders ([`ConsumerBuilder`], [`ProducerBuilder`], [`AdminBuilder`]),
//! fields of plain configurations of the same names ([`ConsumerConfig`], [`ProducerConfig`],
//! [`ClientConfig`]), or [`Properties`] under Kafka's names. What contradicts itself is an error
//! that names the setting.
//!
//! Everything runs on the tokio runtime of the program; programs without one use
//! `kohort::blocking` (feature `blocking`, on by default). Logs and spans go through `tracing`.

pub mod admin;
#[cfg(feature = "blocking")]
pub mod blocking;
mod builder;
mod by_leader;
mod committed;
pub mod consumer;
mod error;
pub mod guide;
pub mod history;
mod list_offsets;
mod measure;
mod panics;
pub mod producer;
mod properties;
mod rewind;
pub mod rpc;
mod runtime;
#[cfg(feature = "test-broker")]
pub mod testing;
mod time;

pub use admin::Admin;
pub use builder::{AdminBuilder, ConsumerBuilder, ProducerBuilder};
pub use bytestring::ByteString;
pub use consumer::{Consumer, ConsumerConfig};
pub use error::{Each, Error, Result, Subject};
pub use kohort_group::text;
pub use kohort_member::reader::{CommittedOffset, TopicPartition};
pub use kohort_wire::{ApiKey, ErrorCode, Uuid};
pub use list_offsets::{IsolationLevel, ListedOffset, OffsetSpec};
pub use producer::{Producer, ProducerConfig, ProducerRecord};
pub use properties::Properties;
pub use rpc::ClientConfig;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
