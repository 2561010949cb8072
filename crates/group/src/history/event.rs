//! What happened to a group.

use serde::{Deserialize, Serialize};

use super::{Cause, Causes, Few, Who};
use crate::{Id, Millis};

/// Something that happened to a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Millis,
    /// The group.
    pub group_id: Id,
    /// What.
    pub what: What,
}

/// What happened. `Display` says it in one line, without a trailing full stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum What {
    /// Something changed that begins no rebalance of its own: one is going on already, or none is
    /// needed, or it is told of next.
    Changed {
        /// What.
        cause: Cause,
    },
    /// A rebalance begins. In a classic group all members are to join again; in a consumer group
    /// those whose target changes are to give up partitions or are given some.
    RebalanceBegan {
        /// The generation that ends, in a classic group; the new group epoch in a consumer group.
        epoch: i32,
        /// Why.
        causes: Causes,
        /// Until when members may join, in a classic group.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline_at: Option<Millis>,
    },
    /// A rebalance goes on for some time, and this is whom it waits for. Repeated ever more rarely,
    /// and whenever one of the last few has done its part.
    Waiting {
        /// The generation or epoch.
        epoch: i32,
        /// What the group waits for.
        phase: Phase,
        /// When the phase began.
        since: Millis,
        /// When it ends at the latest, if there is one deadline for all members.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline_at: Option<Millis>,
        /// The members that the group waits for. With the phase `sync`, none means that all have asked
        /// for their assignment.
        members: Few<Waited>,
    },
    /// A new generation of a classic group: all members have joined, and the others were removed.
    JoinEnded {
        /// The new generation.
        epoch: i32,
        /// How many members it has.
        members: usize,
        /// The member that assigns.
        leader: Who,
        /// The assignment strategy, one that all members support.
        assignor: Id,
        /// How long the join phase took.
        took_ms: i64,
        /// The member that joined last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<Late>,
    },
    /// The leader of a classic group has assigned: the group is stable.
    Assigned {
        /// The generation.
        epoch: i32,
        /// How long the leader took.
        took_ms: i64,
        /// How long the rebalance took in all.
        total_ms: i64,
    },
    /// What each member of a consumer group is meant to own has been computed.
    TargetComputed {
        /// The epoch.
        epoch: i32,
        /// With which assignor.
        assignor: Id,
        /// How many members there are.
        members: usize,
        /// How many of them get another target.
        members_changed: usize,
        /// How many partitions go to another member, or to a first one.
        partitions_moved: usize,
        /// How long after the epoch began.
        took_ms: i64,
    },
    /// A member of a consumer group has to revoke partitions, which others wait for.
    RevocationAsked {
        /// The member.
        member: Who,
        /// The partitions, as `topic-partition`.
        partitions: Few<String>,
        /// How much time it has: its rebalance timeout, which Java clients take from
        /// `max.poll.interval.ms`.
        timeout_ms: i64,
        /// When it is fenced unless it revokes them.
        deadline_at: Millis,
    },
    /// All members of a consumer group have what they are meant to own.
    Stable {
        /// The epoch.
        epoch: i32,
        /// How long the rebalance took in all.
        total_ms: i64,
        /// How long it took from the target on.
        took_ms: i64,
        /// The member that finished last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<Late>,
    },
    /// The group has lost its last member.
    Emptied {
        /// The generation or epoch.
        epoch: i32,
    },
    /// The group changed its protocol.
    Converted {
        /// The protocol that it speaks now.
        to: Protocol,
        /// How many members it has.
        members: usize,
        /// The generation or epoch.
        epoch: i32,
        /// Why.
        #[serde(default, skip_serializing_if = "Few::is_empty")]
        causes: Causes,
    },
    /// The group was deleted.
    Deleted {
        /// Why.
        why: Deletion,
    },
    /// New partitions of topics that the group subscribes to: their first offsets are committed.
    NewPartitions {
        /// Which, and where they start.
        offsets: Few<Offset>,
    },
    /// Committed offsets expired.
    OffsetsExpired {
        /// How many.
        count: usize,
    },
    /// Committed offsets were deleted on request.
    OffsetsDeleted {
        /// The partitions, as `topic-partition`.
        partitions: Few<String>,
    },
    /// A client that is not a member committed offsets for a group whose members are away: an
    /// administrator's reset.
    OffsetsReset {
        /// The administrator.
        by: Who,
        /// The offsets.
        offsets: Few<Offset>,
    },
    /// An administrator asked for a rewind of partitions while the group runs.
    RewindAsked {
        /// The administrator.
        by: Who,
        /// What is committed, and where it is to go.
        offsets: Few<Offset>,
    },
    /// A rewind that was asked for is refused. Nothing has changed.
    RewindRefused {
        /// The administrator that asked for it.
        by: Who,
        /// Why.
        why: String,
    },
    /// A rewind is done: no member owned the partitions, and the new offsets are committed.
    Rewound {
        /// The administrator that asked for it.
        by: Who,
        /// What was committed just before, and what is now.
        offsets: Few<Offset>,
        /// How long it took since it was asked for.
        took_ms: i64,
    },
    /// A rewind that was under way cannot happen any more. No offset has changed.
    RewindGivenUp {
        /// The administrator that asked for it.
        by: Who,
        /// Why.
        why: String,
    },
    /// The coordinator loaded the group, after a start or after its log had failed. All sessions
    /// begin anew.
    Loaded {
        /// The protocol.
        protocol: Protocol,
        /// The generation or epoch.
        epoch: i32,
        /// How many members it has.
        members: usize,
    },
    /// Something else, in words.
    Note {
        /// The words: one line, no trailing full stop.
        text: String,
    },
}

/// What a rebalance waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A classic group that was empty: for more members, so that one rebalance is enough
    /// (`group.initial.rebalance.delay.ms`).
    MoreMembers,
    /// A classic group: for all members to join.
    Join,
    /// A classic group: for the leader to assign.
    Assign,
    /// A classic group that is stable: for members to ask for what they were assigned.
    Sync,
    /// A consumer group: for members to give up partitions, or to take what they were given.
    Reconcile,
}

impl Event {
    /// Moves everything in it that is a date.
    pub fn move_dates(&mut self, by_ms: Millis) {
        self.at += by_ms;
        match &mut self.what {
            What::RebalanceBegan { deadline_at, .. } => {
                *deadline_at = deadline_at.map(|at| at + by_ms);
            }
            What::Waiting {
                since,
                deadline_at,
                members,
                ..
            } => {
                *since += by_ms;
                *deadline_at = deadline_at.map(|at| at + by_ms);
                for waited in &mut members.first {
                    waited.deadline_at = waited.deadline_at.map(|at| at + by_ms);
                }
            }
            What::RevocationAsked { deadline_at, .. } => *deadline_at += by_ms,
            _ => {}
        }
    }
}

/// A member that others wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waited {
    /// The member.
    pub member: Who,
    /// What it has to do.
    pub needs: Needs,
    /// What it has to revoke, as `topic-partition`.
    #[serde(default, skip_serializing_if = "Few::is_empty")]
    pub partitions: Few<String>,
    /// When it is removed unless it responds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Millis>,
    /// The members that cannot continue before.
    #[serde(default, skip_serializing_if = "Few::is_empty")]
    pub blocks: Few<Who>,
}

/// What a member has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    /// To join again.
    Rejoin,
    /// To come back with the member id that it was given (KIP-394).
    Join,
    /// To assign, as the leader.
    Assign,
    /// To ask for its assignment.
    Sync,
    /// To revoke partitions.
    Revoke,
    /// To take what it was given, with its next heartbeat.
    Heartbeat,
}

/// The last member to do its part of a rebalance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// The member.
    pub member: Who,
    /// What it did.
    pub needs: Needs,
    /// How long that took.
    pub took_ms: i64,
}

/// A group protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// The classic protocol.
    Classic,
    /// The consumer protocol (KIP-848).
    Consumer,
}

/// Why a group was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deletion {
    /// On request.
    Requested,
    /// It had neither members nor offsets.
    Unused,
}

/// A committed offset that was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// The partition, as `topic-partition`.
    pub partition: String,
    /// The offset before, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// The offset now; −1 when nothing is committed any more.
    pub to: i64,
}

impl From<String> for What {
    fn from(text: String) -> What {
        What::Note { text }
    }
}

impl From<&str> for What {
    fn from(text: &str) -> What {
        What::Note {
            text: text.to_owned(),
        }
    }
}

impl From<Cause> for What {
    fn from(cause: Cause) -> What {
        What::Changed { cause }
    }
}
