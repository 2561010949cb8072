//! The messages of the Kafka protocol that kohort speaks, one file an API.
//!
//! Field by field they are Kafka 4.4.0's, which a test checks against Kafka's own schemas. A
//! message's default has Kafka's defaults, so code that builds one names only what differs:
//!
//! ```
//! use kohort_wire::messages::HeartbeatRequest;
//!
//! let heartbeat = HeartbeatRequest {
//!     group_id: "orders-billing".into(),
//!     generation_id: 3,
//!     member_id: "billing-1".into(),
//!     ..Default::default()
//! };
//! ```
//!
//! Note that where Kafka gives no default, a text, list or struct that may be null is empty, which
//! is not the same as `None`.
//!
//! # Names that recur
//!
//! - `throttle_time_ms`: how long the client shall send nothing on this connection, for having
//!   exceeded a quota; 0 for no time.
//! - `error_code`, `error_message`: what went wrong with the thing in whose struct they stand; the
//!   text is for people, and `None` or empty where there is nothing to add.
//! - `topic_id`: a topic's id (KIP-516), zero for none. Messages that know topics by name
//!   in old versions and by id in new ones have both fields, and each version carries its own.
//! - `producer_id`, `producer_epoch`: who writes with idempotence or transactions (KIP-98).
//! - `*_authorized_operations`: what the client may do, a bit for each of Kafka's `AclOperation`s;
//!   `i32::MIN` when the request did not ask.
//! - `rack`, `rack_id`: where a broker or client stands (KIP-36, KIP-392).
//!
//! # Kinds of resources
//!
//! 2 topic, 4 broker, 8 a broker's loggers, 16 client metrics (KIP-714), 32 group (KIP-848).
//!
//! # Sources of options
//!
//! 1 set for the topic, 2 set for the broker, 3 set for all brokers, 4 from the broker's properties
//! file, 5 the default, 6 set for a broker's logger, 7 set for client metrics, 8 set for the group.

mod add_offsets_to_txn;
mod add_partitions_to_txn;
mod alter_configs;
mod api_versions;
mod consumer_group_describe;
mod consumer_group_heartbeat;
mod consumer_protocol;
mod create_partitions;
mod create_topics;
mod delete_groups;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_topic_partitions;
mod describe_transactions;
mod end_txn;
mod fetch;
mod find_coordinator;
mod group_records;
mod heartbeat;
mod incremental_alter_configs;
mod init_producer_id;
mod join_group;
mod leave_group;
mod list_config_resources;
mod list_groups;
mod list_offsets;
mod list_transactions;
mod metadata;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod produce;
mod sasl_authenticate;
mod sasl_handshake;
mod shared;
mod sync_group;
mod txn_offset_commit;

pub use add_offsets_to_txn::*;
pub use add_partitions_to_txn::*;
pub use alter_configs::*;
pub use api_versions::*;
pub use consumer_group_describe::*;
pub use consumer_group_heartbeat::*;
pub use consumer_protocol::*;
pub use create_partitions::*;
pub use create_topics::*;
pub use delete_groups::*;
pub use delete_records::*;
pub use delete_topics::*;
pub use describe_cluster::*;
pub use describe_configs::*;
pub use describe_groups::*;
pub use describe_log_dirs::*;
pub use describe_producers::*;
pub use describe_topic_partitions::*;
pub use describe_transactions::*;
pub use end_txn::*;
pub use fetch::*;
pub use find_coordinator::*;
pub use group_records::*;
pub use heartbeat::*;
pub use incremental_alter_configs::*;
pub use init_producer_id::*;
pub use join_group::*;
pub use leave_group::*;
pub use list_config_resources::*;
pub use list_groups::*;
pub use list_offsets::*;
pub use list_transactions::*;
pub use metadata::*;
pub use offset_commit::*;
pub use offset_delete::*;
pub use offset_fetch::*;
pub use offset_for_leader_epoch::*;
pub use produce::*;
pub use sasl_authenticate::*;
pub use sasl_handshake::*;
pub use shared::*;
pub use sync_group::*;
pub use txn_offset_commit::*;
