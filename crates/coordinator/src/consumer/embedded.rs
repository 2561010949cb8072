//! What consumers tell each other in classic groups: their subscriptions and assignments.

use bytes::{BufMut, Bytes};
use kohort_group::TopicPartitions;
use kohort_wire::{
    ByteString,
    codec::{DecodeError, Decoder, Encoder, Message},
    messages::*,
};

use super::member::Member;
use crate::Topics;

/// The newest version of these messages. A newer one is read as this: fields are only ever appended.
const VERSION_MAX: i16 = 3;

/// Reads what a consumer sends along with JoinGroup.
pub(crate) fn read_subscription(
    metadata: &Bytes,
) -> Result<ConsumerProtocolSubscription, DecodeError> {
    let mut input = Decoder::new(metadata.clone());
    let version = input.i16()?.min(VERSION_MAX);
    ConsumerProtocolSubscription::decode(&mut input, version)
}

/// Reads what a consumer is assigned by SyncGroup; nothing if it has not been assigned anything
/// (KAFKA-17733).
pub(crate) fn read_assignment(
    assignment: &Bytes,
) -> Result<ConsumerProtocolAssignment, DecodeError> {
    if assignment.is_empty() {
        return Ok(ConsumerProtocolAssignment::default());
    }
    let mut input = Decoder::new(assignment.clone());
    let version = input.i16()?.min(VERSION_MAX);
    ConsumerProtocolAssignment::decode(&mut input, version)
}

/// Writes an assignment for a member, in the version that it used itself.
pub(super) fn write_assignment(
    partitions: &TopicPartitions,
    metadata: &Bytes,
    topics: &Topics,
) -> Bytes {
    let version = Decoder::new(metadata.clone())
        .i16()
        .unwrap_or_default()
        .clamp(0, VERSION_MAX);
    let assigned = partitions.topics().filter_map(|(topic_id, runs)| {
        Some(kohort_wire::messages::TopicPartitions {
            topic: (&*topics.by_id(topic_id)?.name).into(),
            partitions: runs.iter().flat_map(|run| run.partitions()).collect(),
        })
    });
    let assignment = ConsumerProtocolAssignment {
        assigned_partitions: assigned.collect(),
        user_data: None,
    };
    let mut out = Encoder::new();
    out.buffer().put_i16(version);
    match assignment.encode(&mut out, version) {
        Ok(()) => out.finish().into_bytes(),
        // Versions 0 to 3 carry all of it.
        Err(_) => Bytes::new(),
    }
}

/// The partitions of a consumer's message by topic id. Topics that do not exist are left out.
pub(super) fn to_ids(
    partitions: &[kohort_wire::messages::TopicPartitions],
    topics: &Topics,
) -> Vec<TopicIdPartitions> {
    partitions
        .iter()
        .filter_map(|topic| {
            Some(TopicIdPartitions {
                topic_id: topics.get(&topic.topic)?.id,
                partitions: topic
                    .partitions
                    .iter()
                    .copied()
                    .filter(|&p| p >= 0)
                    .collect(),
            })
        })
        .collect()
}

/// An empty rack is none.
pub(super) fn rack(subscription: &ConsumerProtocolSubscription) -> Option<&ByteString> {
    subscription
        .rack_id
        .as_ref()
        .filter(|rack| !rack.is_empty())
}

/// The first protocol of a classic member of a consumer group. Consumers subscribe to the same with
/// all of their protocols, so any will do.
pub(super) fn first_protocol(member: &Member) -> Option<&ClassicProtocol> {
    member.profile.classic.as_ref()?.supported_protocols.first()
}
