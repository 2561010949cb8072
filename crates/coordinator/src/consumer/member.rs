//! A member of a consumer group.

use std::sync::Arc;

use kohort_group::history::Who;
use kohort_wire::{Uuid, messages::ClassicMemberMetadata};

use super::owned::Owned;
use crate::{Connection, Id, Millis, alarm::Deadline};

/// The epoch of a member that leaves.
pub(crate) const LEAVE_EPOCH: i32 = -1;
/// The epoch of a static member that leaves and means to come back.
pub(crate) const LEAVE_STATIC_EPOCH: i32 = -2;

/// Names, sorted and distinct.
pub(crate) type Names = Arc<[Id]>;

/// A member of a consumer group.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) id: Id,
    pub(crate) profile: Profile,
    pub(crate) current: Current,
    /// When it is fenced unless it heartbeats.
    pub(crate) session: Deadline,
    /// The connection of its last heartbeat, until that closes.
    pub(crate) connection: Option<Connection>,
    /// When the session would have ended, had the connection not closed.
    pub(crate) session_was: Option<Millis>,
    /// When it is fenced unless it revokes; as a classic member, unless it rejoins or syncs.
    pub(crate) rebalance: Rebalance,
}

/// What a member says of itself: the record `ConsumerGroupMemberMetadata`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Profile {
    pub(crate) instance_id: Option<Id>,
    pub(crate) rack_id: Option<Id>,
    pub(crate) client_id: Id,
    pub(crate) client_host: Id,
    /// The topics that it subscribes to by name.
    pub(crate) topics: Names,
    /// The regular expression that it subscribes with; never empty.
    pub(crate) regex: Option<Id>,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) server_assignor: Option<Id>,
    /// What a member brought that speaks the classic protocol.
    pub(crate) classic: Option<Box<ClassicMemberMetadata>>,
}

impl Profile {
    /// Bytes of metadata that the member brings.
    pub(crate) fn metadata_bytes(&self) -> usize {
        let names = self.topics.iter().map(|name| name.len());
        let texts = [&self.instance_id, &self.rack_id, &self.regex];
        let texts = texts.into_iter().flatten().map(|text| text.len());
        let classic = self.classic.as_deref().map_or(0, |classic| {
            let protocols = classic.supported_protocols.iter();
            protocols
                .map(|protocol| protocol.name.len() + protocol.metadata.len())
                .sum()
        });
        names.chain(texts).sum::<usize>() + classic
    }
}

/// What a member owns, and how far it has come towards its target: the record
/// `ConsumerGroupCurrentMemberAssignment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Current {
    pub(crate) epoch: i32,
    pub(crate) previous_epoch: i32,
    pub(crate) state: MemberState,
    pub(crate) assigned: Owned,
    /// What it is to give up and has not given up yet.
    pub(crate) revoking: Owned,
}

impl Current {
    /// Whether the member owns a partition, or has not given it up yet.
    pub(crate) fn has(&self, topic_id: Uuid, partition: i32) -> bool {
        [&self.assigned, &self.revoking]
            .iter()
            .any(|owned| owned.epoch_of(topic_id, partition).is_some())
    }
}

/// How far a member has come towards its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MemberState {
    /// It has all of it.
    #[default]
    Stable,
    /// It has to give up partitions first.
    UnrevokedPartitions,
    /// Others have to give up partitions first.
    UnreleasedPartitions,
    /// Written by a coordinator that knows of more states.
    Unknown,
}

/// For what a member has until when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rebalance {
    /// To revoke; set while it has to.
    pub(crate) revoke: Option<Deadline>,
    /// As a classic member that was told of a rebalance: to join.
    pub(crate) join: Option<Deadline>,
    /// As a classic member that has joined: to sync.
    pub(crate) sync: Option<Deadline>,
}

impl Member {
    pub(crate) fn new(id: Id) -> Member {
        Member {
            id,
            profile: Profile {
                rebalance_timeout_ms: -1,
                ..Profile::default()
            },
            current: Current::default(),
            session: Deadline::default(),
            connection: None,
            session_was: None,
            rebalance: Rebalance::default(),
        }
    }

    /// The member as events name it.
    pub(crate) fn who(&self) -> Who {
        let profile = &self.profile;
        let instance_id = profile.instance_id.as_ref();
        Who::new(
            &self.id,
            instance_id,
            &profile.client_id,
            &profile.client_host,
        )
    }

    pub(crate) fn is_classic(&self) -> bool {
        self.profile.classic.is_some()
    }

    pub(crate) fn is_static(&self) -> bool {
        self.profile.instance_id.is_some()
    }

    pub(crate) fn is_reconciled_to(&self, assignment_epoch: i32) -> bool {
        self.current.state == MemberState::Stable && self.current.epoch == assignment_epoch
    }
}

impl Default for Current {
    fn default() -> Current {
        Current {
            epoch: 0,
            previous_epoch: -1,
            state: MemberState::Stable,
            assigned: Owned::default(),
            revoking: Owned::default(),
        }
    }
}

impl MemberState {
    pub(crate) fn from_value(value: i8) -> MemberState {
        match value {
            0 => MemberState::Stable,
            1 => MemberState::UnrevokedPartitions,
            2 => MemberState::UnreleasedPartitions,
            _ => MemberState::Unknown,
        }
    }

    pub(crate) fn value(self) -> i8 {
        match self {
            MemberState::Stable => 0,
            MemberState::UnrevokedPartitions => 1,
            MemberState::UnreleasedPartitions => 2,
            MemberState::Unknown => 127,
        }
    }
}
