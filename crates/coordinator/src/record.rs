//! The records of `__consumer_offsets`.

use bytes::{BufMut, Bytes};
use kohort_wire::{
    codec::{DecodeError, Decoder, EncodeError, Encoder, Message, Problem},
    messages::*,
};

use super::{
    rewind::{RewindKey, RewindValue, RewoundKey, RewoundValue},
    starts::{GroupSeenKey, GroupSeenValue, TopicSeenKey, TopicSeenValue},
};

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident = $kind:literal, $key:ident => $value:ident |$v:ident| $version:expr;)*) => {
        /// A record of `__consumer_offsets`: what it is about, and what holds from now on; `None`
        /// for a tombstone.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Record {
            $(
                $(#[$doc])*
                $name($key, Option<$value>),
            )*
        }

        impl Record {
            /// The key and the value as Kafka's coordinator writes them.
            pub fn encode(&self) -> Result<(Bytes, Option<Bytes>), EncodeError> {
                match self {
                    $(
                        Record::$name(key, value) => Ok((
                            encode($kind, 0, key)?,
                            value
                                .as_ref()
                                .map(|$v| {
                                    let version = $version;
                                    encode(version, version, $v)
                                })
                                .transpose()?,
                        )),
                    )*
                }
            }

            /// Reads a record. `None`: of a type that kohort does not know, to be passed over.
            pub fn decode(
                key: Bytes,
                value: Option<Bytes>,
            ) -> Result<Option<Record>, RecordError> {
                let mut key = Decoder::new(key);
                let kind = key.i16().map_err(RecordError::Key)?;
                match kind {
                    $(
                        $kind => {
                            let key = $key::decode(&mut key, 0).map_err(RecordError::Key)?;
                            let value = value.map(decode::<$value>).transpose().map_err(
                                |error| RecordError::Value { kind, error },
                            )?;
                            Ok(Some(Record::$name(key, value)))
                        }
                    )*
                    _ => Ok(None),
                }
            }
        }
    };
}

records! {
    /// A committed offset, as brokers before 0.10 wrote it. Never written by kohort.
    LegacyOffsetCommit = 0, LegacyOffsetCommitKey => LegacyOffsetCommitValue |_value| 0;
    /// A committed offset.
    OffsetCommit = 1, OffsetCommitKey => OffsetCommitValue
        |value| if value.expire_timestamp >= 0 { 1 } else { 4 };
    /// A classic group.
    GroupMetadata = 2, GroupMetadataKey => GroupMetadataValue |_value| 3;
    /// A consumer group's epoch.
    ConsumerMetadata = 3, ConsumerGroupMetadataKey => ConsumerGroupMetadataValue |_value| 0;
    /// The partitions a consumer group knew of, as brokers before 4.1 wrote them.
    ConsumerPartitionMetadata = 4,
        ConsumerGroupPartitionMetadataKey => ConsumerGroupPartitionMetadataValue |_value| 0;
    /// A consumer group's member.
    ConsumerMemberMetadata = 5,
        ConsumerGroupMemberMetadataKey => ConsumerGroupMemberMetadataValue |_value| 0;
    /// The epoch of a consumer group's target assignment.
    ConsumerTargetAssignmentMetadata = 6,
        ConsumerGroupTargetAssignmentMetadataKey => ConsumerGroupTargetAssignmentMetadataValue |_value| 0;
    /// What a member is meant to own.
    ConsumerTargetAssignmentMember = 7,
        ConsumerGroupTargetAssignmentMemberKey => ConsumerGroupTargetAssignmentMemberValue |_value| 0;
    /// What a member owns.
    ConsumerCurrentMemberAssignment = 8,
        ConsumerGroupCurrentMemberAssignmentKey => ConsumerGroupCurrentMemberAssignmentValue |_value| 0;
    /// When a group began to look at its topics: kohort's own type, as is the next.
    GroupSeen = 27_505, GroupSeenKey => GroupSeenValue |_value| 0;
    /// What a group has seen of a topic.
    TopicSeen = 27_506, TopicSeenKey => TopicSeenValue |_value| 0;
    /// The topics that a regular expression matched.
    ConsumerRegularExpression = 16,
        ConsumerGroupRegularExpressionKey => ConsumerGroupRegularExpressionValue |_value| 0;
    /// A rewind that is under way: kohort's own type, as is the next.
    Rewind = 27_503, RewindKey => RewindValue |_value| 0;
    /// The last rewind.
    Rewound = 27_504, RewoundKey => RewoundValue |_value| 0;
}

/// A record that is not what its type says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The key.
    #[error("unreadable key: {0}")]
    Key(DecodeError),
    /// The value.
    #[error("unreadable value of a record of type {kind}: {error}")]
    Value {
        /// The type.
        kind: i16,
        /// What is wrong.
        error: DecodeError,
    },
}

fn encode<M: Message>(prefix: i16, version: i16, message: &M) -> Result<Bytes, EncodeError> {
    let mut out = Encoder::new();
    out.buffer().put_i16(prefix);
    message.encode(&mut out, version)?;
    Ok(out.finish().into_bytes())
}

fn decode<M: Message>(value: Bytes) -> Result<M, DecodeError> {
    let mut input = Decoder::new(value);
    let version = input.i16()?;
    match M::decode(&mut input, version) {
        // A newer version is read as far as it is known: Kafka promises only to add tagged fields
        // (KIP-915).
        Err(DecodeError {
            problem: Problem::Version(newer),
            ..
        }) if newer > M::VERSIONS.last && M::FLEXIBLE.contains(M::VERSIONS.last) => {
            M::decode(&mut input, M::VERSIONS.last)
        }
        decoded => decoded,
    }
}
