//! What a member wants done.

use std::collections::BTreeSet;

use kohort_wire::{ByteString, ErrorCode, Uuid, messages::*};

use super::Millis;

/// Partitions by topic name and number.
pub type Partitions = BTreeSet<(ByteString, i32)>;

/// Tells one request from another. Answers to requests that do not matter any more are ignored.
pub type RequestId = u64;

/// Tells one thing that the application must do from another.
pub type StepId = u64;

/// What a member wants done. Those that concern the application come one at a time: the next comes
/// after [`done`](super::Member::done), except that [`Action::Lose`] may come before.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send a request to the coordinator. Then call [`answered`](super::Member::answered),
    /// [`failed`](super::Member::failed) or [`refused`](super::Member::refused).
    Send {
        /// The request's id.
        id: RequestId,
        /// The request.
        request: MemberRequest,
    },
    /// The application must let go of partitions that it has, and may commit before. Then call
    /// [`done`](super::Member::done).
    Revoke {
        /// The id of this step.
        id: StepId,
        /// The partitions.
        partitions: Partitions,
    },
    /// The application has lost partitions: others may have them already, and it must not commit.
    /// A revocation that is under way has lost its point. Then call
    /// [`done`](super::Member::done).
    Lose {
        /// The id of this step.
        id: StepId,
        /// The partitions.
        partitions: Partitions,
    },
    /// The application has an assignment. Then call [`done`](super::Member::done).
    Assign {
        /// The id of this step.
        id: StepId,
        /// The partitions that it did not have before.
        added: Partitions,
        /// All that it has now.
        all: Partitions,
    },
    /// The names of these topics are needed: call [`topics`](super::Member::topics) when they are
    /// known.
    ResolveTopics(Vec<Uuid>),
    /// How many partitions these topics have is needed, of those that exist: call
    /// [`partition_counts`](super::Member::partition_counts).
    CountPartitions(Vec<ByteString>),
    /// Something is wrong that the application should know; the member goes on.
    Report(MemberError),
    /// The coordinator doesn't let the member in yet. It asks again by itself, for a limited time;
    /// the application has nothing to do, but the log should say why there are no partitions.
    Waiting(MemberError),
    /// The member has given up.
    Fail(MemberError),
    /// The member has left the group, after [`leave`](super::Member::leave).
    Left,
}

/// A request to the coordinator.
#[derive(Debug, Clone, PartialEq)]
pub enum MemberRequest {
    /// Of the consumer protocol.
    ConsumerHeartbeat(ConsumerGroupHeartbeatRequest),
    /// Answered when all members have joined: wait for longer than the rebalance timeout.
    Join(JoinGroupRequest),
    /// Answered when the leader has assigned.
    Sync(SyncGroupRequest),
    /// Of the classic protocol.
    Heartbeat(HeartbeatRequest),
    /// Of the classic protocol.
    Leave(LeaveGroupRequest),
}

/// The answer to a [`MemberRequest`].
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// To [`MemberRequest::ConsumerHeartbeat`].
    ConsumerHeartbeat(ConsumerGroupHeartbeatResponse),
    /// To [`MemberRequest::Join`].
    Join(JoinGroupResponse),
    /// To [`MemberRequest::Sync`].
    Sync(SyncGroupResponse),
    /// To [`MemberRequest::Heartbeat`].
    Heartbeat(HeartbeatResponse),
    /// To [`MemberRequest::Leave`].
    Leave(LeaveGroupResponse),
}

/// Why a member cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// The coordinator refuses it.
    #[error("the coordinator refuses the member: {code}{}", .message.as_deref().map_or(String::new(), |m| format!(": {m}")))]
    Refused {
        /// The code of its answer.
        code: ErrorCode,
        /// What it says about it.
        message: Option<ByteString>,
    },
    /// An assignor has no assignment, or what another member or the leader sent cannot be read.
    #[error("{0}")]
    Assignor(String),
}

/// The name under which a member commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The member's id.
    pub member_id: ByteString,
    /// Its instance id, if it is a static member.
    pub instance_id: Option<ByteString>,
    /// The member epoch, or the generation in the classic protocol.
    pub epoch: i32,
    /// Whether it is a member of the consumer protocol.
    pub consumer_protocol: bool,
}

/// How long to wait before the coordinator is asked again after it could not answer: doubling from
/// 100 ms to 1 s.
#[derive(Debug, Default)]
pub(super) struct RetryBackoff {
    failures: u32,
}

impl RetryBackoff {
    pub(super) fn next(&mut self) -> i32 {
        let doublings = self.failures.min(4);
        self.failures += 1;
        (100 << doublings).min(1000)
    }

    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}

/// How long to wait before the coordinator is asked again after it refused, which an administrator
/// may undo.
pub(super) const REFUSED_RETRY_MS: i32 = 1000;

/// Collects actions, and numbers requests and steps.
#[derive(Debug, Default)]
pub(super) struct Actions {
    queue: std::collections::VecDeque<Action>,
    last_id: u64,
}

impl Actions {
    pub(super) fn next(&mut self) -> Option<Action> {
        self.queue.pop_front()
    }

    pub(super) fn push(&mut self, action: Action) {
        self.queue.push_back(action);
    }

    pub(super) fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn send(&mut self, request: MemberRequest) -> RequestId {
        let id = self.id();
        self.push(Action::Send { id, request });
        id
    }

    /// Takes back what the application was to be asked and has not been yet.
    pub(super) fn forget_steps(&mut self) {
        self.queue
            .retain(|action| !matches!(action, Action::Revoke { .. } | Action::Assign { .. }));
    }
}

/// A deadline some time from now.
pub(super) fn after(now: Millis, wait_ms: i32) -> Millis {
    now.saturating_add(wait_ms.max(0).into())
}
