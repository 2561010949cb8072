//! What there is to know of groups of both protocols.

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::future::join_all;
use kohort_wire::{
    ApiKey, ErrorCode,
    codec::{Decoder, Message},
    messages::*,
};

use super::{Admin, GroupState, GroupType, group, groups::subject};
use crate::{Each, Error, Result, TopicPartition, error::check};

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupDescription {
    /// Its id.
    pub group_id: ByteString,
    /// Its protocol.
    pub group_type: GroupType,
    /// What it does.
    pub state: GroupState,
    /// What its members are: `consumer`, `connect`, …
    pub protocol_type: ByteString,
    /// How the partitions are shared out; empty if that is not settled.
    pub assignor: ByteString,
    /// The group epoch (consumer protocol).
    pub group_epoch: Option<i32>,
    /// The epoch of the target assignment (consumer protocol).
    pub assignment_epoch: Option<i32>,
    /// The broker that coordinates it.
    pub coordinator: i32,
    /// Its members, by id.
    pub members: Vec<MemberDescription>,
}

/// The protocol that a member speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberProtocol {
    /// The classic one.
    Classic,
    /// The consumer protocol (KIP-848).
    Consumer,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberDescription {
    /// Its id.
    pub member_id: ByteString,
    /// Its instance id, if it is a static member.
    pub instance_id: Option<ByteString>,
    /// What its client calls itself.
    pub client_id: ByteString,
    /// From where it connects.
    pub client_host: ByteString,
    /// The rack in which it says it is.
    pub rack: Option<ByteString>,
    /// The protocol that it speaks: a consumer group may have classic members for a while.
    pub protocol: MemberProtocol,
    /// Its epoch (consumer protocol).
    pub epoch: Option<i32>,
    /// The topics to which it has subscribed by name.
    pub subscribed_topics: Vec<ByteString>,
    /// The regular expression by which it has subscribed.
    pub subscribed_regex: Option<ByteString>,
    /// What it has.
    pub assignment: Vec<TopicPartition>,
    /// What it is meant to have (consumer protocol).
    pub target_assignment: Option<Vec<TopicPartition>>,
}

impl Admin {
    /// Describes groups of both protocols. A group that does not exist is an error with
    /// [`ErrorCode::GROUP_ID_NOT_FOUND`].
    pub async fn describe_groups(
        &self,
        group_ids: &[ByteString],
    ) -> Each<ByteString, GroupDescription> {
        let each = group_ids
            .iter()
            .map(async |group_id| (group_id.clone(), self.describe_group(group_id).await));
        join_all(each).await
    }

    /// Describes a group of either protocol.
    pub async fn describe_group(&self, group_id: &str) -> Result<GroupDescription> {
        let described = match self.describe_consumer_group(group_id).await {
            Err(Error::UnsupportedVersion { .. }) => None,
            // That is the answer for a classic group too; and for one that the broker must not
            // describe while its consumer protocol is turned off.
            Err(error)
                if matches!(
                    error.code(),
                    Some(ErrorCode::GROUP_ID_NOT_FOUND | ErrorCode::UNSUPPORTED_VERSION)
                ) =>
            {
                None
            }
            described => Some(described),
        };
        match described {
            Some(described) => described,
            None => self.describe_classic_group(group_id).await,
        }
    }

    async fn describe_consumer_group(&self, group_id: &str) -> Result<GroupDescription> {
        let request = ConsumerGroupDescribeRequest {
            group_ids: vec![group_id.into()],
            include_authorized_operations: false,
        };
        let checked = |response: &ConsumerGroupDescribeResponse| {
            response.groups.iter().try_for_each(|described| {
                let (code, message) = (described.error_code, described.error_message.as_ref());
                check(ApiKey::ConsumerGroupDescribe, code, message, || {
                    subject(group_id)
                })
            })
        };
        let to = group(group_id);
        let ask = self.cluster.ask(&to, |_| request.clone(), checked);
        let Some(described) = ask.await?.groups.pop() else {
            return Err(not_found(ApiKey::ConsumerGroupDescribe, group_id));
        };
        let mut members: Vec<_> = described.members.into_iter().map(consumer_member).collect();
        members.sort_by(|a, b| a.member_id.cmp(&b.member_id));
        Ok(GroupDescription {
            group_id: group_id.into(),
            group_type: GroupType::Consumer,
            state: GroupState::from(&*described.group_state),
            protocol_type: ByteString::from_static("consumer"),
            assignor: described.assignor_name,
            group_epoch: Some(described.group_epoch),
            assignment_epoch: Some(described.assignment_epoch),
            coordinator: self.coordinator_of(group_id).await?,
            members,
        })
    }

    async fn describe_classic_group(&self, group_id: &str) -> Result<GroupDescription> {
        const API: ApiKey = ApiKey::DescribeGroups;
        let request = DescribeGroupsRequest {
            groups: vec![group_id.into()],
            include_authorized_operations: false,
        };
        let checked = |response: &DescribeGroupsResponse| {
            response.groups.iter().try_for_each(|described| {
                let (code, message) = (described.error_code, described.error_message.as_ref());
                check(API, code, message, || subject(group_id))
            })
        };
        let to = group(group_id);
        let ask = self.cluster.ask(&to, |_| request.clone(), checked);
        let described = ask.await?.groups.pop();
        let state = described
            .as_ref()
            .map(|described| GroupState::from(&*described.group_state));
        let (Some(described), Some(state)) = (described, state) else {
            return Err(not_found(API, group_id));
        };
        // Brokers before version 6 say so of a group that does not exist.
        if state == GroupState::Dead {
            return Err(not_found(API, group_id));
        }
        let is_consumer = described.protocol_type == "consumer";
        let members = described.members.into_iter();
        let mut members: Vec<_> = members
            .map(|member| classic_member(member, is_consumer))
            .collect();
        members.sort_by(|a, b| a.member_id.cmp(&b.member_id));
        Ok(GroupDescription {
            group_id: group_id.into(),
            group_type: GroupType::Classic,
            state,
            protocol_type: described.protocol_type,
            assignor: described.protocol_data,
            group_epoch: None,
            assignment_epoch: None,
            coordinator: self.coordinator_of(group_id).await?,
            members,
        })
    }

    async fn coordinator_of(&self, group_id: &str) -> Result<i32> {
        let lane = crate::rpc::Lane::Main;
        Ok(self
            .cluster
            .connection(&group(group_id), lane)
            .await?
            .broker())
    }
}

fn not_found(api: ApiKey, group_id: &str) -> Error {
    Error::kafka(api, subject(group_id), ErrorCode::GROUP_ID_NOT_FOUND)
}

fn consumer_member(member: DescribedConsumerGroupMember) -> MemberDescription {
    let partitions = |assignment: DescribedAssignment| {
        let topics = assignment.topic_partitions.into_iter();
        let partitions = topics.flat_map(|topic| {
            let name = topic.topic_name;
            topic
                .partitions
                .into_iter()
                .map(move |p| TopicPartition::new(name.clone(), p))
        });
        let mut partitions: Vec<_> = partitions.collect();
        partitions.sort();
        partitions
    };
    MemberDescription {
        member_id: member.member_id,
        instance_id: member.instance_id,
        client_id: member.client_id,
        client_host: member.client_host,
        rack: member.rack_id,
        protocol: match member.member_type {
            0 => MemberProtocol::Classic,
            _ => MemberProtocol::Consumer,
        },
        epoch: Some(member.member_epoch),
        subscribed_topics: member.subscribed_topic_names,
        subscribed_regex: member
            .subscribed_topic_regex
            .filter(|regex| !regex.is_empty()),
        assignment: partitions(member.assignment),
        target_assignment: Some(partitions(member.target_assignment)),
    }
}

fn classic_member(member: DescribedGroupMember, is_consumer: bool) -> MemberDescription {
    let (subscribed_topics, rack) = if is_consumer {
        subscription(member.member_metadata)
    } else {
        Default::default()
    };
    MemberDescription {
        member_id: member.member_id,
        instance_id: member.group_instance_id,
        client_id: member.client_id,
        client_host: member.client_host,
        rack,
        protocol: MemberProtocol::Classic,
        epoch: None,
        subscribed_topics,
        subscribed_regex: None,
        assignment: if is_consumer {
            assignment(member.member_assignment)
        } else {
            Vec::new()
        },
        target_assignment: None,
    }
}

/// The topics and the rack in the metadata of a member that is a consumer; nothing if they cannot
/// be read, as while the group rebalances.
fn subscription(bytes: Bytes) -> (Vec<ByteString>, Option<ByteString>) {
    let read = versioned::<ConsumerProtocolSubscription>(bytes);
    read.map_or_else(Default::default, |read| (read.topics, read.rack_id))
}

fn assignment(bytes: Bytes) -> Vec<TopicPartition> {
    let read = versioned::<ConsumerProtocolAssignment>(bytes);
    let topics = read.map_or_else(Vec::new, |read| read.assigned_partitions);
    let partitions = topics.into_iter().flat_map(|topic| {
        let name = topic.topic;
        topic
            .partitions
            .into_iter()
            .map(move |p| TopicPartition::new(name.clone(), p))
    });
    let mut partitions: Vec<_> = partitions.collect();
    partitions.sort();
    partitions
}

/// A message with its version in front; of a newer version than is known, what is known of it.
fn versioned<M: Message>(bytes: Bytes) -> Option<M> {
    let mut input = Decoder::new(bytes);
    let version = i16::from_be_bytes(*input.take(2).ok()?.first_chunk()?);
    M::decode(&mut input, version.min(M::VERSIONS.last)).ok()
}
