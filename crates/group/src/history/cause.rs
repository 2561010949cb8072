//! Why a group changes.

use serde::{Deserialize, Serialize};

use super::{Few, Who, clean};
use crate::Id;

/// Why something began: almost always one cause, sometimes several at once.
pub type Causes = Few<Cause>;

/// What a client did, or failed to do, that changes a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// A new member joined.
    MemberJoined {
        /// The member.
        member: Who,
        /// Why, in the client's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Id>,
    },
    /// A member of a classic group joined again, which asks for a rebalance.
    MemberRejoined {
        /// The member.
        member: Who,
        /// Whether it leads the group. A leader joins again when it has seen new partitions, or has
        /// other reasons that the coordinator does not see; others do when their metadata changes.
        leads: bool,
        /// Why, in the client's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Id>,
    },
    /// A static member came back, and took its place and its partitions.
    MemberReturned {
        /// The member as it is now.
        member: Who,
        /// The member id that it had before.
        old_member_id: Id,
        /// Why, in the client's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Id>,
    },
    /// A member left.
    MemberLeft {
        /// The member.
        member: Who,
        /// Why, in the client's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Id>,
    },
    /// A static member left and will come back. It keeps its partitions for its session timeout.
    MemberPaused {
        /// The member.
        member: Who,
    },
    /// An administrator removed a member.
    MemberRemoved {
        /// The removed member.
        member: Who,
        /// The administrator.
        by: Who,
        /// Why, in the administrator's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Id>,
    },
    /// A member sent no heartbeat for the time of its session.
    SessionExpired {
        /// The member.
        member: Who,
        /// The session timeout.
        timeout_ms: i64,
    },
    /// A member's connection closed, and it did not come back in time.
    ConnectionLost {
        /// The member.
        member: Who,
        /// How much time it had.
        grace_ms: i64,
    },
    /// A new member sent nothing after its first join.
    FirstJoinExpired {
        /// The member.
        member: Who,
    },
    /// A client did not use the member id that it was given (KIP-394).
    MemberIdUnused {
        /// The member id.
        member_id: Id,
    },
    /// Members did not do their part of a rebalance in time, and were removed.
    MembersFenced {
        /// The member.
        members: Few<Who>,
        /// What they did not do.
        failure: Failure,
        /// How much time they had: the rebalance timeout, which a Java client calls
        /// `max.poll.interval.ms`.
        timeout_ms: i64,
        /// What they did not revoke, as `topic-partition`.
        #[serde(default, skip_serializing_if = "Few::is_empty")]
        partitions: Few<String>,
    },
    /// A member subscribes to other topics.
    SubscriptionChanged {
        /// The member.
        member: Who,
        /// The topics that it names.
        topics: Few<Id>,
        /// The regular expression that it brings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        regex: Option<Id>,
    },
    /// Most members ask for another assignor.
    AssignorChanged {
        /// The assignor before.
        from: Id,
        /// The assignor now.
        to: Id,
    },
    /// Subscribed topics were created, deleted, or got more partitions.
    TopicsChanged {
        /// The topics; empty if they are not known.
        topics: Few<TopicChange>,
    },
    /// A regular expression matches other topics than before.
    RegexResolved {
        /// The expression.
        regex: Id,
        /// What it matches now.
        topics: Few<Id>,
    },
    /// An administrator rewinds partitions while the group runs.
    Rewind {
        /// The administrator.
        by: Who,
        /// The partitions, as `topic-partition`.
        partitions: Few<String>,
    },
    /// A rewind has ended: what it withheld is handed out again.
    RewindEnded {
        /// Which partitions, as `topic-partition`.
        partitions: Few<String>,
    },
    /// A member of a classic group is removed for a rewind, because it would keep its partitions
    /// through the rebalance. It is expected to rejoin.
    PutOutForRewind {
        /// The member.
        member: Who,
    },
    /// A coordinator that took over found a rewind done and its generation not assigned yet.
    RestartedAfterRewind,
    /// Something else, in words.
    Other {
        /// The words: one line, no trailing full stop.
        text: String,
    },
}

/// What a member did not do in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// Revoke partitions.
    Revoke,
    /// Join again.
    Rejoin,
    /// Ask for its assignment.
    Sync,
}

/// What became of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicChange {
    /// The topic.
    pub topic: Id,
    /// What.
    pub change: Change,
    /// How many partitions it had; 0 for a new one.
    pub partitions_before: i32,
    /// How many it has; 0 for one that is gone.
    pub partitions: i32,
}

/// What became of a topic, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Created,
    /// It is gone.
    Deleted,
    /// It was deleted, and created again.
    Recreated,
    /// It has more partitions.
    Grown,
}

impl From<String> for Cause {
    fn from(text: String) -> Cause {
        Cause::Other { text }
    }
}

impl From<&str> for Cause {
    fn from(text: &str) -> Cause {
        Cause::Other {
            text: text.to_owned(),
        }
    }
}

impl<T: Into<Cause>> From<T> for Causes {
    fn from(cause: T) -> Causes {
        std::iter::once(cause.into()).collect()
    }
}

/// A client's reason, if it gave one.
pub fn reason(text: Option<&str>) -> Option<Id> {
    text.filter(|text| !text.is_empty()).map(clean)
}
