//! A member of the consumer protocol (KIP-848): the coordinator assigns, and the member reconciles
//! what it has with what it is meant to have.

mod heartbeat;
mod reconcile;
mod state;

use std::collections::{BTreeMap, BTreeSet};

use kohort_wire::{ByteString, ErrorCode, Uuid};

pub use state::MemberState;

use super::{
    Action, Identity, MemberError, Millis, Partitions, RequestId, StepId, Subscription,
    action::{Actions, RetryBackoff},
};
use heartbeat::Known;
use reconcile::Step;

/// The epoch with which a member asks to be let in.
const JOIN_EPOCH: i32 = 0;
/// The epoch with which a member leaves.
const LEAVE_EPOCH: i32 = -1;
/// The epoch with which a static member leaves for a while.
const LEAVE_STATIC_EPOCH: i32 = -2;

/// How a member of the consumer protocol works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerMemberConfig {
    /// The group.
    pub group_id: ByteString,
    /// The member's id: chosen by itself, unique, and the same for as long as it runs.
    pub member_id: ByteString,
    /// Its instance id, if it is a static member.
    pub instance_id: Option<ByteString>,
    /// The rack in which it is.
    pub rack_id: Option<ByteString>,
    /// How long the application may take to let go of partitions.
    pub rebalance_timeout_ms: i32,
    /// The assignor that it wants; `None` leaves it to the coordinator.
    pub server_assignor: Option<ByteString>,
    /// How long the session of a static member may last that was killed and comes back: for so
    /// long it waits for its instance id to be released.
    pub session_timeout_ms: i32,
}

type Ids = BTreeSet<(Uuid, i32)>;

/// A member of the consumer protocol.
#[derive(Debug)]
pub struct ConsumerMember {
    config: ConsumerMemberConfig,
    state: MemberState,
    epoch: i32,
    subscription: Subscription,
    /// What it is meant to have.
    target: Ids,
    /// What it has, as far as the application has been told.
    owned: Ids,
    names: BTreeMap<Uuid, ByteString>,
    /// The topics whose names have been asked for.
    resolving: BTreeSet<Uuid>,
    /// What the application is doing.
    step: Option<Step>,
    /// The application has to be told of these before anything else: they are lost.
    losing: Option<StepId>,
    heartbeat_interval_ms: i32,
    next_heartbeat: Option<Millis>,
    in_flight: Option<RequestId>,
    backoff: RetryBackoff,
    /// Until when to wait for another member to release the instance id.
    release_deadline: Option<Millis>,
    /// Set once the coordinator has let the member in.
    was_admitted: bool,
    /// What the coordinator knows; `None` if everything is to be said again.
    known: Option<Known>,
    /// What the heartbeat under way says.
    saying: Option<Known>,
    /// The application has gone; after leaving comes `Stale`.
    poll_interval_exceeded: bool,
    /// The application has asked for records since.
    polled: bool,
    actions: Actions,
}

impl ConsumerMember {
    /// A member that is in no group yet.
    pub fn new(config: ConsumerMemberConfig) -> ConsumerMember {
        ConsumerMember {
            config,
            state: MemberState::Unsubscribed,
            epoch: JOIN_EPOCH,
            subscription: Subscription::default(),
            target: Ids::new(),
            owned: Ids::new(),
            names: BTreeMap::new(),
            resolving: BTreeSet::new(),
            step: None,
            losing: None,
            heartbeat_interval_ms: 0,
            next_heartbeat: None,
            in_flight: None,
            backoff: RetryBackoff::default(),
            release_deadline: None,
            was_admitted: false,
            known: None,
            saying: None,
            poll_interval_exceeded: false,
            polled: false,
            actions: Actions::default(),
        }
    }

    /// The member's state.
    pub fn state(&self) -> MemberState {
        self.state
    }

    /// The member's epoch.
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// The member's id.
    pub fn member_id(&self) -> &ByteString {
        &self.config.member_id
    }

    /// What it has.
    pub fn owned(&self) -> Partitions {
        self.named(&self.owned)
    }

    /// The id of a topic of which it has partitions: names can be used again, ids cannot.
    pub fn topic_id(&self, topic: &str) -> Option<Uuid> {
        let mut ids = self.owned.iter().map(|(id, _)| *id);
        ids.find(|id| self.names.get(id).is_some_and(|name| **name == *topic))
    }

    fn go(&mut self, to: MemberState) {
        debug_assert!(
            to == self.state || to.may_follow(self.state),
            "{:?} after {:?}",
            to,
            self.state
        );
        self.state = to;
    }

    /// See [`Member::subscribe`](super::Member::subscribe).
    pub fn subscribe(&mut self, subscription: Subscription, now: Millis) {
        let changed = self.subscription != subscription;
        self.subscription = subscription;
        match self.state {
            MemberState::Unsubscribed => self.join(now),
            MemberState::Joining
            | MemberState::Stable
            | MemberState::Reconciling
            | MemberState::Acknowledging
                if changed =>
            {
                self.next_heartbeat = Some(now);
                self.beat(now);
            }
            _ => {}
        }
    }

    fn join(&mut self, now: Millis) {
        self.go(MemberState::Joining);
        self.epoch = JOIN_EPOCH;
        self.known = None;
        self.target.clear();
        self.poll_interval_exceeded = false;
        self.next_heartbeat = Some(now);
        self.beat(now);
    }

    /// See [`Member::leave`](super::Member::leave).
    pub fn leave(&mut self, now: Millis) {
        match self.state {
            MemberState::PrepareLeaving | MemberState::Leaving if !self.poll_interval_exceeded => {}
            MemberState::Fatal => self.actions.push(Action::Left),
            // Already on the way out; nothing is left to be let go of.
            MemberState::Leaving => self.poll_interval_exceeded = false,
            MemberState::Fenced => {
                self.go(MemberState::Unsubscribed);
                self.actions.push(Action::Left);
            }
            _ => {
                self.poll_interval_exceeded = false;
                self.go(MemberState::PrepareLeaving);
                self.let_go_of_all(now);
            }
        }
    }

    /// See [`Member::poll_interval_exceeded`](super::Member::poll_interval_exceeded).
    pub fn poll_interval_exceeded(&mut self, now: Millis) {
        match self.state {
            MemberState::Joining
            | MemberState::Stable
            | MemberState::Reconciling
            | MemberState::Acknowledging => {
                self.poll_interval_exceeded = true;
                self.polled = false;
                self.lose_all();
                self.go(MemberState::Leaving);
                self.next_heartbeat = Some(now);
                self.beat(now);
            }
            _ => {}
        }
    }

    /// See [`Member::polled`](super::Member::polled).
    pub fn polled(&mut self, now: Millis) {
        self.polled = true;
        if self.state == MemberState::Stale && self.losing.is_none() {
            self.join(now);
        }
    }

    /// The coordinator is told, or cannot be.
    fn has_left(&mut self, now: Millis) {
        self.epoch = JOIN_EPOCH;
        self.known = None;
        self.next_heartbeat = None;
        if self.poll_interval_exceeded {
            self.go(MemberState::Stale);
            if self.polled && self.losing.is_none() {
                self.join(now);
            }
        } else {
            self.go(MemberState::Unsubscribed);
            self.actions.push(Action::Left);
        }
    }

    /// The coordinator does not know the member any more.
    fn fenced(&mut self, now: Millis) {
        match self.state {
            // That is what was wanted.
            MemberState::Leaving => return self.has_left(now),
            // The application is letting go of what others may have already.
            MemberState::PrepareLeaving => {
                self.lose_all();
                self.go(MemberState::Fenced);
                self.go(MemberState::Unsubscribed);
                self.epoch = JOIN_EPOCH;
                self.actions.push(Action::Left);
                return;
            }
            _ => {}
        }
        self.go(MemberState::Fenced);
        self.epoch = JOIN_EPOCH;
        self.known = None;
        self.next_heartbeat = None;
        self.lose_all();
        if self.losing.is_none() {
            self.join(now);
        }
    }

    fn fatal(&mut self, code: ErrorCode, message: Option<ByteString>) {
        self.lose_all();
        self.go(MemberState::Fatal);
        self.next_heartbeat = None;
        self.epoch = JOIN_EPOCH;
        let error = MemberError::Refused { code, message };
        self.actions.push(Action::Fail(error));
    }

    /// See [`Member::wake`](super::Member::wake).
    pub fn wake(&mut self, now: Millis) {
        self.beat(now);
    }

    /// See [`Member::next_action`](super::Member::next_action).
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.next()
    }

    /// See [`Member::next_wake`](super::Member::next_wake).
    pub fn next_wake(&self) -> Option<Millis> {
        self.next_heartbeat.filter(|_| self.in_flight.is_none())
    }

    /// See [`Member::identity`](super::Member::identity).
    pub fn identity(&self) -> Option<Identity> {
        (self.epoch > JOIN_EPOCH).then(|| Identity {
            member_id: self.config.member_id.clone(),
            instance_id: self.config.instance_id.clone(),
            epoch: self.epoch,
            consumer_protocol: true,
        })
    }
}
