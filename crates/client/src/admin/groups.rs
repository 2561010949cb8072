//! Listing and deleting groups, and removing members.

use std::{fmt, str::FromStr};

use bytestring::ByteString;
use futures_util::future::join_all;
use kohort_wire::{
    ApiKey, ErrorCode,
    codec::{Message, Versions},
    messages::*,
};

use super::{Admin, group, repeated, retriable, topics::one};
use crate::{
    Each, Error, Result, Subject,
    error::check,
    rpc::{Destination, Lane, Topics},
};

macro_rules! names {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            /// Another one, by Kafka's name.
            Other(ByteString),
        }

        impl $name {
            /// Kafka's name of it.
            pub fn name(&self) -> &str {
                match self {
                    $($name::$variant => $text,)*
                    $name::Other(name) => name,
                }
            }
        }

        impl FromStr for $name {
            type Err = std::convert::Infallible;

            fn from_str(name: &str) -> Result<$name, Self::Err> {
                $(if name.eq_ignore_ascii_case($text) {
                    return Ok($name::$variant);
                })*
                Ok($name::Other(name.into()))
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> $name {
                let Ok(value) = name.parse();
                value
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

names! {
    /// What a group is doing.
    GroupState {
        /// It has no members.
        Empty = "Empty",
        /// Its members are being collected (classic).
        PreparingRebalance = "PreparingRebalance",
        /// Its leader is sharing the partitions out (classic).
        CompletingRebalance = "CompletingRebalance",
        /// Its partitions are to be shared out anew (consumer).
        Assigning = "Assigning",
        /// Members are taking over what they were assigned (consumer).
        Reconciling = "Reconciling",
        /// All is as it should be.
        Stable = "Stable",
        /// It does not exist.
        Dead = "Dead",
    }
}

names! {
    /// The protocol of a group.
    GroupType {
        /// JoinGroup and SyncGroup.
        Classic = "classic",
        /// ConsumerGroupHeartbeat (KIP-848).
        Consumer = "consumer",
        /// Share groups (KIP-932).
        Share = "share",
        /// Streams groups (KIP-1071).
        Streams = "streams",
    }
}

/// Which groups to list; empty lists mean all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupFilter {
    /// Groups in one of these states.
    pub states: Vec<GroupState>,
    /// Groups of one of these protocols.
    pub types: Vec<GroupType>,
}

/// A group in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupListing {
    /// Its id.
    pub group_id: ByteString,
    /// Its protocol. Brokers before Kafka 3.8 do not tell; then it is taken for classic.
    pub group_type: GroupType,
    /// What it does. Brokers before Kafka 2.6 do not tell: then an empty name.
    pub state: GroupState,
    /// What its members are: `consumer`, `connect`, …; empty for a group that only has offsets.
    pub protocol_type: ByteString,
}

/// A member to be removed from a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberToRemove {
    /// By its member id.
    Id(ByteString),
    /// By its instance id (static membership).
    Instance(ByteString),
}

pub(super) fn subject(group_id: &str) -> Subject {
    Subject::Group(group_id.into())
}

impl Admin {
    /// The groups of all coordinators, by id.
    pub async fn list_groups(&self, filter: &GroupFilter) -> Result<Vec<GroupListing>> {
        let mut retry = self.cluster.retry("list the groups");
        loop {
            match retry.attempt(self.list_groups_once(filter)).await {
                Ok(groups) => return Ok(groups),
                Err(error) => retry.failed(error).await?,
            }
        }
    }

    async fn list_groups_once(&self, filter: &GroupFilter) -> Result<Vec<GroupListing>> {
        let metadata = self.cluster.refresh(&Topics::Named(Vec::new())).await?;
        let request = ListGroupsRequest {
            states_filter: filter
                .states
                .iter()
                .map(|state| state.name().into())
                .collect(),
            types_filter: filter.types.iter().map(|kind| kind.name().into()).collect(),
        };
        // Old brokers cannot filter.
        let since = match (filter.types.is_empty(), filter.states.is_empty()) {
            (false, _) => 5,
            (true, false) => 4,
            (true, true) => 0,
        };
        let brokers: Vec<_> = metadata.brokers().map(|broker| broker.id).collect();
        let answers = brokers.into_iter().map(async |id| {
            let connection = self
                .cluster
                .connection(&Destination::Broker(id), Lane::Main)
                .await?;
            let versions = Versions::new(since, i16::MAX);
            let version = connection.version_of::<ListGroupsRequest>(versions)?;
            let timeout = self.cluster.config().request_timeout;
            let response = connection.call(&request, version, timeout).await?;
            let broker = || Subject::Broker(id);
            check(ApiKey::ListGroups, response.error_code, None, broker)?;
            Ok::<_, Error>(response.groups)
        });
        let mut groups = Vec::new();
        for answer in join_all(answers).await {
            groups.extend(answer?.into_iter().map(|group| GroupListing {
                group_type: match &*group.group_type {
                    "" => GroupType::Classic,
                    name => GroupType::from(name),
                },
                state: GroupState::from(&*group.group_state),
                group_id: group.group_id,
                protocol_type: group.protocol_type,
            }));
        }
        groups.sort_by(|a, b| a.group_id.cmp(&b.group_id));
        groups.dedup_by(|a, b| a.group_id == b.group_id);
        Ok(groups)
    }

    /// Deletes groups that have no members, with their offsets.
    ///
    /// If the answer to an attempt was lost and the next one finds that a group does not exist, that
    /// is [`Error::Repeated`]: it may have been deleted by the first.
    pub async fn delete_groups(&self, group_ids: &[ByteString]) -> Each<ByteString, ()> {
        let each = group_ids
            .iter()
            .map(async |group_id| (group_id.clone(), self.delete_group(group_id).await));
        join_all(each).await
    }

    /// Deletes a group that has no members, with its offsets, as
    /// [`delete_groups`](Admin::delete_groups) does.
    pub async fn delete_group(&self, group_id: &str) -> Result<()> {
        let request = DeleteGroupsRequest {
            groups_names: vec![group_id.into()],
        };
        const API: ApiKey = ApiKey::DeleteGroups;
        let codes = |response: &DeleteGroupsResponse| {
            response.results.iter().try_for_each(|result| {
                retriable(check(API, result.error_code, None, || subject(group_id)))
            })
        };
        let (to, versions) = (group(group_id), DeleteGroupsRequest::VERSIONS);
        let ask = self.ask_again(to, versions, |_| request.clone(), codes);
        let (response, earlier) = ask.await?;
        response.results.iter().try_for_each(|result| {
            let message = result.error_message.as_ref();
            let result = check(API, result.error_code, message, || subject(group_id));
            repeated(result, ErrorCode::GROUP_ID_NOT_FOUND, earlier.as_ref())
        })
    }

    /// Removes members from a group; `reason` is for the coordinator's log.
    ///
    /// If the answer to an attempt was lost and the next one finds that there is no such member,
    /// that is [`Error::Repeated`]: it may have been removed by the first. One that has come back
    /// between two attempts, as members do, is removed again.
    pub async fn remove_members(
        &self,
        group_id: &str,
        members: &[MemberToRemove],
        reason: &str,
    ) -> Result<Each<ByteString, ()>> {
        const API: ApiKey = ApiKey::LeaveGroup;
        let identities = members.iter().map(|member| match member {
            MemberToRemove::Id(id) => MemberIdentity {
                member_id: id.clone(),
                group_instance_id: None,
                reason: Some(reason.into()),
            },
            MemberToRemove::Instance(id) => MemberIdentity {
                member_id: ByteString::new(),
                group_instance_id: Some(id.clone()),
                reason: Some(reason.into()),
            },
        });
        let request = LeaveGroupRequest {
            group_id: group_id.into(),
            members: identities.collect(),
            ..Default::default()
        };
        // Before version 3 only one member can leave, by its id.
        let versions = Versions::new(3, i16::MAX);
        let checked = |response: &LeaveGroupResponse| {
            check(API, response.error_code, None, || subject(group_id))
        };
        let ask = self.ask_again(group(group_id), versions, |_| request.clone(), checked);
        let (response, earlier) = ask.await?;
        let results = response.members.into_iter().map(|member| {
            let name = match member.group_instance_id {
                Some(id) if !id.is_empty() => id,
                _ => member.member_id,
            };
            let who = || Subject::Member {
                group: group_id.into(),
                member: name.clone(),
            };
            let result = check(API, member.error_code, None, who);
            let gone = ErrorCode::UNKNOWN_MEMBER_ID;
            (name, repeated(result, gone, earlier.as_ref()))
        });
        Ok(results.collect())
    }

    /// Removes one member from a group, as [`remove_members`](Admin::remove_members) does.
    pub async fn remove_member(&self, group_id: &str, member: MemberToRemove) -> Result<()> {
        let reason = "removed by an administrator";
        let results = self.remove_members(group_id, &[member], reason).await?;
        one(results, ApiKey::LeaveGroup, || subject(group_id))
    }
}
