//! A member of a Kafka consumer group as a state machine without I/O: it joins a group and keeps the
//! application's partitions in step with it.
//!
//! A [`Member`] is a plain value. It is told what happens (the application subscribes or leaves, a
//! response arrives or is lost, the application has released partitions) and the time. After each of
//! these, [`Member::next_action`] is asked until there is nothing more to do, and
//! [`Member::next_wake`] says when to call [`Member::wake`]. [`ConsumerMember`] speaks the consumer
//! protocol (KIP-848), [`ClassicMember`] the classic one.
//!
//! What the application reads, holds, has finished and may commit is a state machine of its own: a
//! [`Reader`](reader::Reader).
//!
//! Nothing here opens a socket, reads a clock or starts a task. Here is a member driven by hand, with
//! a coordinator that assigns it one partition:
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use kohort_member::{
//!     Action, Answer, ConsumerMember, ConsumerMemberConfig, Member, MemberRequest, Subscription,
//! };
//! use kohort_wire::{ByteString, Uuid, messages::*};
//!
//! let mut member = Member::Consumer(Box::new(ConsumerMember::new(ConsumerMemberConfig {
//!     group_id: "billing".into(),
//!     member_id: "member-1".into(),
//!     instance_id: None,
//!     rack_id: None,
//!     rebalance_timeout_ms: 60_000,
//!     server_assignor: None,
//!     session_timeout_ms: 45_000,
//! })));
//! member.subscribe(Subscription::topics([ByteString::from("orders")]), 0);
//!
//! // It asks to join. The coordinator lets it in and names the partition by topic id.
//! let Some(Action::Send { id, request: MemberRequest::ConsumerHeartbeat(join) }) =
//!     member.next_action()
//! else {
//!     panic!("it joins")
//! };
//! assert_eq!(join.member_epoch, 0);
//! let response = ConsumerGroupHeartbeatResponse {
//!     member_id: Some(join.member_id),
//!     member_epoch: 1,
//!     heartbeat_interval_ms: 5_000,
//!     assignment: Some(ConsumerGroupHeartbeatAssignment {
//!         topic_partitions: vec![TopicIdPartitions { topic_id: Uuid(7), partitions: vec![0] }],
//!     }),
//!     ..Default::default()
//! };
//! member.answered(id, Answer::ConsumerHeartbeat(response), 10);
//!
//! // It asks for the topic's name, and then has the application take over the partition.
//! assert!(matches!(member.next_action(), Some(Action::ResolveTopics(_))));
//! member.topics(&BTreeMap::from([(Uuid(7), ByteString::from("orders"))]), 20);
//! let Some(Action::Assign { id, added, .. }) = member.next_action() else {
//!     panic!("it is assigned")
//! };
//! assert_eq!(added, [("orders".into(), 0)].into());
//! member.done(id, 30);
//!
//! // It tells the coordinator at once what it owns, and sleeps until the next heartbeat.
//! let Some(Action::Send { id, request: MemberRequest::ConsumerHeartbeat(acknowledgement) }) =
//!     member.next_action()
//! else {
//!     panic!("it acknowledges")
//! };
//! assert_eq!(acknowledgement.topic_partitions.unwrap()[0].partitions, [0]);
//! let response = ConsumerGroupHeartbeatResponse {
//!     member_epoch: 1,
//!     heartbeat_interval_ms: 5_000,
//!     ..Default::default()
//! };
//! member.answered(id, Answer::ConsumerHeartbeat(response), 40);
//! assert_eq!(member.next_action(), None);
//! assert_eq!(member.next_wake(), Some(5_040));
//! ```

mod action;
mod buffers;
mod classic;
mod consumer;
pub mod reader;

use std::collections::BTreeMap;

use kohort_group::assignor::classic::PartitionCounts;
use kohort_wire::{ByteString, ErrorCode, Uuid};

pub use action::{
    Action, Answer, Identity, MemberError, MemberRequest, Partitions, RequestId, StepId,
};
pub use buffers::BufferPool;
pub use classic::{ClassicConfig, ClassicMember, ClassicState};
pub use consumer::{ConsumerMember, ConsumerMemberConfig, MemberState};

/// A time in milliseconds, on a clock that only goes forward.
pub type Millis = i64;

/// To what a member subscribes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subscription {
    /// Topics by name, sorted.
    pub topics: Vec<ByteString>,
    /// A regular expression that the coordinator resolves (RE2; consumer protocol only).
    pub regex: Option<ByteString>,
}

impl Subscription {
    /// These topics.
    pub fn topics(topics: impl IntoIterator<Item = ByteString>) -> Subscription {
        let mut topics: Vec<_> = topics.into_iter().collect();
        topics.sort();
        topics.dedup();
        Subscription {
            topics,
            regex: None,
        }
    }

    /// All topics whose whole names match a regular expression.
    pub fn regex(regex: ByteString) -> Subscription {
        Subscription {
            topics: Vec::new(),
            regex: Some(regex),
        }
    }
}

/// A member of either protocol.
#[derive(Debug)]
pub enum Member {
    /// Of the consumer protocol (KIP-848).
    Consumer(Box<ConsumerMember>),
    /// Of the classic protocol.
    Classic(Box<ClassicMember>),
}

macro_rules! both {
    ($self:expr, $member:ident => $call:expr) => {
        match $self {
            Member::Consumer($member) => $call,
            Member::Classic($member) => $call,
        }
    };
}

impl Member {
    /// The application subscribes, for the first time or anew.
    pub fn subscribe(&mut self, subscription: Subscription, now: Millis) {
        both!(self, member => member.subscribe(subscription, now))
    }

    /// The application leaves: its partitions are revoked, then the group is left.
    pub fn leave(&mut self, now: Millis) {
        both!(self, member => member.leave(now))
    }

    /// The application has asked for records.
    pub fn polled(&mut self, now: Millis) {
        both!(self, member => member.polled(now))
    }

    /// The application has not asked for records for `max.poll.interval.ms`: the group is left,
    /// the partitions are lost, until it asks again.
    pub fn poll_interval_exceeded(&mut self, now: Millis) {
        both!(self, member => member.poll_interval_exceeded(now))
    }

    /// A request was answered.
    pub fn answered(&mut self, id: RequestId, answer: Answer, now: Millis) {
        match (self, answer) {
            (Member::Consumer(member), Answer::ConsumerHeartbeat(answer)) => {
                member.answered(id, &answer, now);
            }
            (Member::Classic(member), answer) => member.answered(id, answer, now),
            // An answer to what this member never asks.
            (Member::Consumer(_), _) => {}
        }
    }

    /// A request was not answered; trying again may help, after `retry_ms`.
    pub fn failed(&mut self, id: RequestId, retry_ms: Millis, now: Millis) {
        both!(self, member => member.failed(id, retry_ms, now))
    }

    /// A request cannot be answered, whatever is tried.
    pub fn refused(&mut self, id: RequestId, code: ErrorCode, message: Option<ByteString>) {
        both!(self, member => member.refused(id, code, message))
    }

    /// The application has done what an action with this id asked for.
    pub fn done(&mut self, id: StepId, now: Millis) {
        both!(self, member => member.done(id, now))
    }

    /// The names of topics, asked for by [`Action::ResolveTopics`]; or news of them.
    pub fn topics(&mut self, names: &BTreeMap<Uuid, ByteString>, now: Millis) {
        if let Member::Consumer(member) = self {
            member.topics(names, now);
        }
    }

    /// How many partitions topics have, asked for by [`Action::CountPartitions`].
    pub fn partition_counts(&mut self, counts: PartitionCounts) {
        if let Member::Classic(member) = self {
            member.partition_counts(counts);
        }
    }

    /// The time has come that [`next_wake`](Member::next_wake) named.
    pub fn wake(&mut self, now: Millis) {
        both!(self, member => member.wake(now))
    }

    /// What is to be done next.
    pub fn next_action(&mut self) -> Option<Action> {
        both!(self, member => member.next_action())
    }

    /// When to wake the member, if nothing happens before.
    pub fn next_wake(&self) -> Option<Millis> {
        both!(self, member => member.next_wake())
    }

    /// The id of a topic of which the member has partitions, if it was assigned by id.
    pub fn topic_id(&self, topic: &str) -> Option<Uuid> {
        match self {
            Member::Consumer(member) => member.topic_id(topic),
            Member::Classic(_) => None,
        }
    }

    /// Under which name to commit and to ask for offsets: that of a member of the group.
    pub fn identity(&self) -> Option<Identity> {
        both!(self, member => member.identity())
    }
}
