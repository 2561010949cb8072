//! Any request to any broker.
//!
//! [`Cluster`] finds brokers, coordinators and leaders, keeps the connections to them and tries
//! again what can be tried again. The requests are those of [`kohort_wire::messages`]
//! (re-exported as [`messages`]).
//!
//! ```no_run
//! use kohort::rpc::{ClientConfig, Cluster, Destination, messages::ListGroupsRequest};
//!
//! # async fn example() -> kohort::Result<()> {
//! let cluster = Cluster::connect(ClientConfig::new("localhost:9092")).await?;
//!
//! // One request, one answer, from any broker.
//! let groups = cluster.call(&Destination::Any, &ListGroupsRequest::default()).await?;
//! for group in groups.groups {
//!     println!("{} {}", group.group_id, group.group_state);
//! }
//!
//! // Many requests at once: `send` returns when the request is on its way.
//! let mut answers = Vec::new();
//! for broker in cluster.metadata().brokers() {
//!     let to = Destination::Broker(broker.id);
//!     answers.push(cluster.send(&to, &ListGroupsRequest::default()).await?);
//! }
//! for answer in answers {
//!     println!("{} groups", answer.await?.groups.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Cancelling
//!
//! Every future may be dropped at any time. A request that was on its way stays on its way; its
//! answer is read and thrown away, and the connection goes on.

mod brokers;
mod cluster;
mod cluster_metadata;
mod config;
mod connection;
mod dial;
mod exchange;
mod foreign;
mod frames;
mod jaas;
mod metadata;
mod oauth;
mod opening;
mod retry;
mod sasl;
mod scram;
mod security;
mod tls;
mod transport;
mod versions;

pub use brokers::Lane;
pub use cluster::{Cluster, Destination};
pub use cluster_metadata::Topics;
pub use config::ClientConfig;
pub(crate) use config::{check_time, split_list};
pub use connection::{Connection, PendingResponse};
pub use kohort_wire::messages;
pub use metadata::{BrokerMetadata, Metadata, PartitionMetadata, TopicMetadata};
pub(crate) use retry::random_u32;
pub use retry::{Backoff, Retry};
pub use sasl::{Sasl, TokenSource};
pub use security::Security;
pub(crate) use security::is_setting;
pub use tls::{Tls, TlsBuilder};
pub use versions::ApiVersions;
