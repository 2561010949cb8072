//! What a sticky member tells the leader, in the Java client's encoding.

use bytes::Bytes;
use kohort_wire::{
    codec::{Decoder, EncodeError, Encoder, Message},
    messages::TopicPartitions,
};

use super::{Claim, NO_GENERATION};

kohort_wire::message! {
    /// Version 0 had no generation (before Kafka 2.3, KIP-341). Nothing in the bytes tells the
    /// versions apart but their length.
    pub struct StickyAssignorUserData: 0..=1 {
        /// The last assignment.
        previous_assignment: Vec<TopicPartitions> [0..],
        /// The generation in which it was given.
        generation: i32 [1.., ignorable] = NO_GENERATION,
    }
}

pub(super) fn write(
    previous_assignment: &[TopicPartitions],
    generation: i32,
) -> Result<Bytes, EncodeError> {
    let user_data = StickyAssignorUserData {
        previous_assignment: previous_assignment.to_vec(),
        generation,
    };
    let mut out = Encoder::new();
    user_data.encode(&mut out, 1)?;
    Ok(out.finish().into_bytes())
}

/// What a member claims. One that cannot be read claims nothing.
pub(super) fn read(user_data: Option<&Bytes>) -> Claim {
    let Some(user_data) = user_data else {
        return Claim::default();
    };
    let decode =
        |version| StickyAssignorUserData::decode(&mut Decoder::new(user_data.clone()), version);
    decode(1)
        .or_else(|_| decode(0))
        .map(|user_data| Claim {
            partitions: user_data.previous_assignment,
            generation: user_data.generation,
        })
        .unwrap_or_default()
}
