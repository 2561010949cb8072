//! The coordinator: it decides who is a member of a group, who owns which partition, and which
//! offsets are committed.
//!
//! A [`Shard`] coordinates the groups of one partition of `__consumer_offsets`. It is a plain value:
//! it takes a [`Request`] or an alarm and the time, and leaves in its [`Outbox`] the records to be
//! appended to that partition and the replies to be sent once they are durable. Its durable state
//! changes only where a record is applied, when deciding and when loading alike, so a shard that is
//! loaded from its log is the shard that wrote it. What a record does not hold (parked joins,
//! session deadlines) is rebuilt by the members themselves.

mod alarm;
mod classic;
mod config;
mod consumer;
mod group;
mod groups;
pub mod history;
pub mod inspect;
mod offsets;
mod outbox;
mod pace;
mod record;
mod request;
mod rewind;
mod shard;
mod starts;
mod sweep;
mod topics;

pub use config::{Config, GroupOverrides, MigrationPolicy};
pub use history::Event;
pub use outbox::{Outbox, Token, Work, WorkDone};
pub use pace::{Bounds, Load, Pace};
pub use record::{Record, RecordError};
pub use request::{Caller, Connection, Reply, Request};
pub use rewind::{
    BEFORE_MEMBER as BEFORE_REWIND_MEMBER, MARK as REWIND_MARK, MarkError,
    PENDING_MEMBER as PENDING_REWIND_MEMBER, RewindKey, RewindMark, RewindPartition, RewindTopic,
    RewindValue, RewoundKey, RewoundPartition, RewoundTopic, RewoundValue,
};
pub use shard::Shard;
pub use starts::{GroupSeenKey, GroupSeenValue, TopicSeenKey, TopicSeenValue};
pub use topics::{LogStarts, Topic, Topics};

/// A time in milliseconds since 1970. The shell derives it from a monotonic clock, so that no session
/// ends because the wall clock was set; [`Shard::set_date_offset`] says how far the two are apart.
pub type Millis = i64;

/// The id of a group, a member or an instance.
pub type Id = std::sync::Arc<str>;

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
