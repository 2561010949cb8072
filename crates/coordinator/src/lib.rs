//! Kafka's group coordinator as a state machine without I/O: it decides who is a member of a group,
//! who owns which partition, and which offsets are committed.
//!
//! A [`Shard`] coordinates the groups of one partition of `__consumer_offsets`. It is a plain value:
//! it takes a [`Request`] or an alarm and the time, and leaves in its [`Outbox`] the records to be
//! appended to that partition and the replies to be sent once they are durable. Its durable state
//! changes only where a record is applied, when deciding and when loading alike, so a shard that is
//! loaded from its log is the shard that wrote it. What a record does not hold (parked joins,
//! session deadlines) is rebuilt by the members themselves.
//!
//! Nothing here opens a socket, reads a clock or starts a task. Here is a shard driven by hand: a
//! member joins, and the shard is lost and loaded again from what it wrote.
//!
//! ```
//! use std::sync::Arc;
//!
//! use kohort_coordinator::{Caller, Config, Outbox, Reply, Request, Shard, Token, Topic, Topics};
//! use kohort_wire::{Uuid, messages::ConsumerGroupHeartbeatRequest};
//!
//! // A broker with one topic, and no groups yet.
//! let orders = Topic {
//!     id: Uuid(7),
//!     name: "orders".into(),
//!     partition_count: 3,
//!     is_internal: false,
//!     created_at: 0,
//! };
//! let topics = Arc::new(Topics::new(1, [orders]));
//! let config = Arc::new(Config::default());
//! let mut shard = Shard::new(config.clone(), topics.clone(), [0; 32]);
//! let mut out = Outbox::default();
//! shard.loaded(0, &mut out);
//!
//! // A member joins (epoch 0) and subscribes.
//! let join = ConsumerGroupHeartbeatRequest {
//!     group_id: "billing".into(),
//!     member_id: "member-1".into(),
//!     member_epoch: 0,
//!     rebalance_timeout_ms: 60_000,
//!     subscribed_topic_names: Some(vec!["orders".into()]),
//!     topic_partitions: Some(Vec::new()),
//!     ..Default::default()
//! };
//! let join = Request::ConsumerGroupHeartbeat { version: 1, request: join };
//! shard.request(Token(1), &Caller::default(), join, 1_000, &mut out);
//!
//! // A shell appends the records to the log and flushes it, then sends the replies.
//! let log: Vec<_> = out.records.drain(..).collect();
//! let Some((Token(1), Reply::ConsumerGroupHeartbeat(response))) = out.replies.pop() else {
//!     panic!("a heartbeat is answered at once")
//! };
//! let assignment = response.assignment.expect("it owns all partitions");
//! assert_eq!(assignment.topic_partitions[0].partitions, [0, 1, 2]);
//!
//! // Another shard reads the log and goes on.
//! let mut shard = Shard::new(config, topics, [0; 32]);
//! for record in &log {
//!     let (key, value) = record.encode().expect("it can be encoded");
//!     shard.load(key, value).expect("the shard wrote it");
//! }
//! shard.loaded(2_000, &mut out);
//! let heartbeat = ConsumerGroupHeartbeatRequest {
//!     group_id: "billing".into(),
//!     member_id: "member-1".into(),
//!     member_epoch: response.member_epoch,
//!     rebalance_timeout_ms: -1,
//!     ..Default::default()
//! };
//! let heartbeat = Request::ConsumerGroupHeartbeat { version: 1, request: heartbeat };
//! shard.request(Token(2), &Caller::default(), heartbeat, 3_000, &mut out);
//! let Some((Token(2), Reply::ConsumerGroupHeartbeat(response))) = out.replies.pop() else {
//!     panic!("a heartbeat is answered at once")
//! };
//! assert!(!response.error_code.is_error());
//! ```

mod alarm;
mod classic;
mod config;
mod consumer;
mod group;
mod groups;
pub mod inspect;
mod offsets;
mod outbox;
mod pace;
mod progress;
mod record;
mod request;
mod rewind;
mod shard;
mod starts;
mod step;
mod sweep;
mod topics;

pub use kohort_group::{Id, Millis};

pub use config::{Config, GroupOverrides, MigrationPolicy};
pub use outbox::{Outbox, Token, Work, WorkDone};
pub use pace::{Bounds, Load, Pace};
pub use record::{Record, RecordError};
pub use request::{Caller, Connection, Reply, Request};
pub use rewind::{
    RewindKey, RewindPartition, RewindTopic, RewindValue, RewoundKey, RewoundPartition,
    RewoundTopic, RewoundValue,
};
pub use shard::Shard;
pub use starts::{GroupSeenKey, GroupSeenValue, TopicSeenKey, TopicSeenValue};
pub use topics::{LogStarts, Topic, Topics};

/// The partition of `__consumer_offsets` that a group belongs to, as every Kafka broker computes it.
pub fn partition_of(group_id: &str, partition_count: i32) -> i32 {
    let hash = group_id.encode_utf16().fold(0i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(unit.into())
    });
    hash.checked_abs().unwrap_or(0) % partition_count
}

#[cfg(test)]
mod tests {
    use super::partition_of;

    #[test]
    fn groups_are_spread_as_by_java_hash_code() {
        assert_eq!(partition_of("", 50), 0);
        assert_eq!(partition_of("test", 50), 3556498 % 50);
        // Java: "polygenelubricants".hashCode() == Integer.MIN_VALUE.
        assert_eq!(partition_of("polygenelubricants", 50), 0);
        // Characters outside of the basic plane count as two, as in Java.
        assert_eq!(partition_of("😀", 1000), (0xd83d * 31 + 0xde00) % 1000);
    }
}
