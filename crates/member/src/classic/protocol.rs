//! What members say, in the form of the protocol type `consumer`.

use std::collections::BTreeMap;

use bytes::Bytes;
use kohort_wire::{
    ByteString,
    codec::{Decoder, Encoder, Message},
    messages::*,
};

use super::{
    super::{MemberError, Subscription},
    ClassicConfig, Partitions,
};

/// The version of subscriptions and assignments that is written. Older readers skip what they do
/// not know.
const VERSION: i16 = 3;

/// The protocol type of consumers.
pub(super) const PROTOCOL_TYPE: ByteString = ByteString::from_static("consumer");

pub(super) fn join(
    config: &ClassicConfig,
    member_id: &ByteString,
    subscription: &Subscription,
    owned: &Partitions,
    generation: i32,
) -> Result<JoinGroupRequest, MemberError> {
    let protocols = config.assignors.iter().map(|assignor| {
        let user_data = assignor.subscription_user_data(&subscription.topics);
        let user_data = user_data.map_err(|error| MemberError::Assignor(error.to_string()))?;
        let metadata = ConsumerProtocolSubscription {
            topics: subscription.topics.clone(),
            user_data,
            owned_partitions: by_topic(owned),
            generation_id: generation,
            rack_id: config.rack_id.clone(),
        };
        Ok(JoinGroupProtocol {
            name: assignor.name().into(),
            metadata: with_version(&metadata)?,
        })
    });
    Ok(JoinGroupRequest {
        group_id: config.group_id.clone(),
        session_timeout_ms: config.session_timeout_ms,
        rebalance_timeout_ms: config.rebalance_timeout_ms,
        member_id: member_id.clone(),
        group_instance_id: config.instance_id.clone(),
        protocol_type: PROTOCOL_TYPE,
        protocols: protocols.collect::<Result<_, MemberError>>()?,
        reason: None,
    })
}

pub(super) fn heartbeat(
    config: &ClassicConfig,
    member_id: &ByteString,
    generation_id: i32,
) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: config.group_id.clone(),
        generation_id,
        member_id: member_id.clone(),
        group_instance_id: config.instance_id.clone(),
    }
}

/// In the form since version 3; the shell puts it into that of older ones.
pub(super) fn leave(config: &ClassicConfig, member_id: &ByteString) -> LeaveGroupRequest {
    LeaveGroupRequest {
        group_id: config.group_id.clone(),
        members: vec![MemberIdentity {
            member_id: member_id.clone(),
            group_instance_id: config.instance_id.clone(),
            reason: Some(ByteString::from_static("the consumer leaves")),
        }],
        ..Default::default()
    }
}

fn with_version<M: Message>(message: &M) -> Result<Bytes, MemberError> {
    let mut out = Encoder::new();
    out.buffer().extend_from_slice(&VERSION.to_be_bytes());
    message
        .encode(&mut out, VERSION)
        .map_err(|error| MemberError::Assignor(error.to_string()))?;
    Ok(out.finish().into_bytes())
}

/// The message that `bytes` hold, with its version in front; of a newer version, what is known of
/// it.
fn read<M: Message>(bytes: &Bytes, what: &str) -> Result<M, MemberError> {
    let broken = |problem: &dyn std::fmt::Display| {
        MemberError::Assignor(format!("{what} cannot be read: {problem}"))
    };
    let version = bytes
        .first_chunk::<2>()
        .map(|version| i16::from_be_bytes(*version))
        .filter(|version| *version >= 0)
        .ok_or_else(|| broken(&"it has no version"))?;
    let mut input = Decoder::new(bytes.slice(2..));
    M::decode(&mut input, version.min(VERSION)).map_err(|error| broken(&error))
}

pub(super) fn read_subscription(
    bytes: &Bytes,
) -> Result<ConsumerProtocolSubscription, MemberError> {
    read(bytes, "the subscription of a member")
}

pub(super) fn read_assignment(bytes: &Bytes) -> Result<ConsumerProtocolAssignment, MemberError> {
    // A member without partitions may get nothing at all.
    if bytes.is_empty() {
        Ok(ConsumerProtocolAssignment::default())
    } else {
        read(bytes, "the assignment")
    }
}

pub(super) fn write_assignment(
    assignment: &ConsumerProtocolAssignment,
) -> Result<Bytes, MemberError> {
    with_version(assignment)
}

fn by_topic(partitions: &Partitions) -> Vec<TopicPartitions> {
    let mut topics: BTreeMap<&ByteString, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in partitions {
        topics.entry(topic).or_default().push(*partition);
    }
    let topics = topics
        .into_iter()
        .map(|(topic, partitions)| TopicPartitions {
            topic: topic.clone(),
            partitions,
        });
    topics.collect()
}

pub(super) fn partitions_of(assignment: &ConsumerProtocolAssignment) -> Partitions {
    let topics = assignment.assigned_partitions.iter();
    topics
        .flat_map(|topic| topic.partitions.iter().map(|p| (topic.topic.clone(), *p)))
        .collect()
}
