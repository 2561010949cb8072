//! What the tests share: every message as a value of one type, and frames made up from schemas.

#![allow(dead_code, missing_docs, unreachable_pub)] // Each test uses its part.

mod generator;

use std::fmt::Debug;

use bytes::Bytes;
use kohort_wire::{
    codec::{DecodeError, Decoder, EncodeError, Encoder, Message, Versions, schema::MessageSchema},
    messages::*,
};

#[allow(unused_imports)]
pub use generator::{Generator, Shape};

/// A message, with what tests do to messages of any kind.
pub struct AnyMessage {
    pub name: &'static str,
    pub versions: Versions,
    pub schema: MessageSchema,
    /// Reads a frame and drops what it found.
    pub decode: fn(&Bytes, i16) -> Result<(), DecodeError>,
    /// Reads a frame and writes what it found, having read it once more to compare.
    pub recode: fn(&Bytes, i16) -> Result<Bytes, String>,
    /// Writes the message's default.
    pub encode_default: fn(i16) -> Result<Bytes, EncodeError>,
}

impl AnyMessage {
    fn new<M: Message + PartialEq + Debug>() -> AnyMessage {
        AnyMessage {
            name: M::NAME,
            versions: M::VERSIONS,
            schema: M::message_schema(),
            decode: |frame, version| decode::<M>(frame, version).map(drop),
            recode: |frame, version| {
                let text = |error: DecodeError| error.to_string();
                let value = decode::<M>(frame, version).map_err(text)?;
                let written = encode(&value, version).map_err(|error| error.to_string())?;
                let again = decode::<M>(&written, version).map_err(text)?;
                if again != value {
                    return Err(format!("{value:?} became {again:?}"));
                }
                Ok(written)
            },
            encode_default: |version| encode(&M::default(), version),
        }
    }

    pub fn every_version(&self) -> std::ops::RangeInclusive<i16> {
        self.versions.first..=self.versions.last
    }
}

pub fn decode<M: Message>(frame: &Bytes, version: i16) -> Result<M, DecodeError> {
    let mut input = Decoder::new(frame.clone());
    let value = M::decode(&mut input, version)?;
    input.finish()?;
    Ok(value)
}

pub fn encode<M: Message>(value: &M, version: i16) -> Result<Bytes, EncodeError> {
    let mut out = Encoder::new();
    value.encode(&mut out, version)?;
    Ok(out.finish().into_bytes())
}

macro_rules! requests_and_responses {
    ($($name:ident: $request:ident => $response:ident;)*) => {
        /// The requests and responses of every API.
        pub fn api_messages() -> Vec<AnyMessage> {
            vec![$(AnyMessage::new::<$request>(), AnyMessage::new::<$response>(),)*]
        }
    };
}
kohort_wire::for_each_api!(requests_and_responses);

macro_rules! others {
    ($($name:ident)*) => {
        /// What the client's assignors exchange, and the records of `__consumer_offsets`.
        pub fn other_messages() -> Vec<AnyMessage> {
            vec![$(AnyMessage::new::<$name>(),)*]
        }
    };
}
others! {
    ConsumerProtocolSubscription
    ConsumerProtocolAssignment
    LegacyOffsetCommitKey
    LegacyOffsetCommitValue
    OffsetCommitKey
    OffsetCommitValue
    GroupMetadataKey
    GroupMetadataValue
    ConsumerGroupMetadataKey
    ConsumerGroupMetadataValue
    ConsumerGroupPartitionMetadataKey
    ConsumerGroupPartitionMetadataValue
    ConsumerGroupMemberMetadataKey
    ConsumerGroupMemberMetadataValue
    ConsumerGroupTargetAssignmentMetadataKey
    ConsumerGroupTargetAssignmentMetadataValue
    ConsumerGroupTargetAssignmentMemberKey
    ConsumerGroupTargetAssignmentMemberValue
    ConsumerGroupCurrentMemberAssignmentKey
    ConsumerGroupCurrentMemberAssignmentValue
    ConsumerGroupRegularExpressionKey
    ConsumerGroupRegularExpressionValue
}

/// Every message of the crate.
pub fn every_message() -> Vec<AnyMessage> {
    let mut messages = api_messages();
    messages.extend(other_messages());
    messages
}

/// A seed from the environment, or the one that every run uses.
pub fn seed() -> u64 {
    std::env::var("KOHORT_TEST_SEED").map_or(0x6b6f686f7274, |text| {
        text.parse().expect("KOHORT_TEST_SEED is a number")
    })
}

/// A random generator for one case, so that a case can be run again without those before it.
pub fn case_rng(seed: u64, name: &str, version: i16, case: u64) -> fastrand::Rng {
    let mut state = seed ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in name.bytes().chain(version.to_be_bytes()) {
        state = (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    fastrand::Rng::with_seed(state)
}

pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(2048) {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
