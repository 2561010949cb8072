//! A consumer as its group's coordinator knows it.

use crate::ByteString;

/// A consumer as its group's coordinator knows it: [`Consumer::group_metadata`](super::Consumer::group_metadata).
///
/// The names are those of Kafka's Java client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerGroupMetadata {
    /// The group.
    pub group_id: ByteString,
    /// The generation, or in the consumer protocol the member epoch.
    pub generation_id: i32,
    /// The member's id.
    pub member_id: ByteString,
    /// The instance id of a static member.
    pub group_instance_id: Option<ByteString>,
}
