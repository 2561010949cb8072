//! A member of the classic protocol: the members join together, one of them assigns, and each
//! fetches its assignment (KIP-429 for the cooperative kind).

mod answers;
mod join;
mod protocol;

use kohort_group::assignor::classic::{
    ConsumerPartitionAssignor, RebalanceProtocol, rebalance_protocol,
};
use kohort_wire::{ByteString, ErrorCode};

use super::{
    Action, Identity, MemberError, MemberRequest, Millis, Partitions, RequestId, StepId,
    Subscription,
    action::{Actions, RetryBackoff, after},
};

/// Of no generation.
const NO_GENERATION: i32 = -1;

/// How a member of the classic protocol works.
#[derive(Debug)]
pub struct ClassicConfig {
    /// The group.
    pub group_id: ByteString,
    /// Its instance id, if it is a static member.
    pub instance_id: Option<ByteString>,
    /// The rack in which it is.
    pub rack_id: Option<ByteString>,
    /// How long the coordinator may be without a heartbeat.
    pub session_timeout_ms: i32,
    /// How long the application may take to let go of partitions.
    pub rebalance_timeout_ms: i32,
    /// How often to send heartbeats.
    pub heartbeat_interval_ms: i32,
    /// The assignors that it can use, the one that it wants most first. Never empty.
    pub assignors: Vec<Box<dyn ConsumerPartitionAssignor>>,
}

/// The state of a member of the classic protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClassicState {
    /// It is in no group.
    Unsubscribed,
    /// The application lets go of partitions before the member joins.
    Preparing,
    /// It waits for the others to join.
    Joining,
    /// It is the leader, and learns how many partitions there are to be assigned.
    Counting,
    /// It waits for its assignment.
    Syncing,
    /// The application takes its assignment over.
    Completing,
    /// It has its assignment.
    Stable,
    /// The application lets go of everything before the group is left.
    PrepareLeaving,
    /// It tells the coordinator that it leaves.
    Leaving,
    /// The application has not asked for records for too long.
    Stale,
    /// It has given up.
    Fatal,
}

/// What the application is doing.
#[derive(Debug)]
enum Step {
    Revoking(StepId, Partitions),
    Assigning(StepId),
    Losing(StepId),
}

impl Step {
    fn id(&self) -> StepId {
        match self {
            Step::Revoking(id, _) | Step::Assigning(id) | Step::Losing(id) => *id,
        }
    }
}

/// A member of the classic protocol.
#[derive(Debug)]
pub struct ClassicMember {
    config: ClassicConfig,
    protocol: RebalanceProtocol,
    state: ClassicState,
    member_id: ByteString,
    generation: i32,
    /// The name of the assignor that the group has chosen.
    assignor: Option<ByteString>,
    subscription: Subscription,
    owned: Partitions,
    step: Option<Step>,
    /// What was assigned, while what goes before it is done.
    assigned: Option<Partitions>,
    /// A rebalance is due: when the application is done with its step.
    rejoin: bool,
    /// Join no sooner than that.
    not_before: Millis,
    backoff: RetryBackoff,
    /// Set once the coordinator has let the member in.
    was_admitted: bool,
    next_heartbeat: Option<Millis>,
    heartbeat: Option<RequestId>,
    /// The join, sync or leave under way.
    request: Option<RequestId>,
    /// As the leader: the members that are to get assignments.
    members: Vec<kohort_group::assignor::classic::GroupMember>,
    poll_interval_exceeded: bool,
    polled: bool,
    actions: Actions,
}

impl ClassicMember {
    /// A member that is in no group yet; an error if its assignors have no rebalance protocol in
    /// common.
    pub fn new(config: ClassicConfig) -> Result<ClassicMember, MemberError> {
        let assignors = config.assignors.iter().map(|assignor| &**assignor);
        let protocol = rebalance_protocol(assignors).ok_or_else(|| {
            MemberError::Assignor("the assignors have no rebalance protocol in common".to_owned())
        })?;
        Ok(ClassicMember {
            config,
            protocol,
            state: ClassicState::Unsubscribed,
            member_id: ByteString::new(),
            generation: NO_GENERATION,
            assignor: None,
            subscription: Subscription::default(),
            owned: Partitions::new(),
            step: None,
            assigned: None,
            rejoin: false,
            not_before: 0,
            backoff: RetryBackoff::default(),
            was_admitted: false,
            next_heartbeat: None,
            heartbeat: None,
            request: None,
            members: Vec::new(),
            poll_interval_exceeded: false,
            polled: false,
            actions: Actions::default(),
        })
    }

    /// The member's state.
    pub fn state(&self) -> ClassicState {
        self.state
    }

    /// What it has.
    pub fn owned(&self) -> &Partitions {
        &self.owned
    }

    /// The generation, or −1.
    pub fn generation(&self) -> i32 {
        self.generation
    }

    /// See [`Member::subscribe`](super::Member::subscribe). A regular expression is not for the
    /// coordinator of this protocol: who subscribes by one subscribes to the topics that match.
    pub fn subscribe(&mut self, subscription: Subscription, now: Millis) {
        let changed = self.subscription != subscription;
        self.subscription = subscription;
        match self.state {
            ClassicState::Unsubscribed => self.rejoin_now(now),
            ClassicState::PrepareLeaving | ClassicState::Leaving | ClassicState::Fatal => {}
            _ if changed => {
                self.rejoin = true;
                self.go_on(now);
            }
            _ => {}
        }
    }

    /// How many partitions there are has changed: the leader assigns anew.
    pub fn metadata_changed(&mut self, now: Millis) {
        match self.state {
            // What was assigned, or is being, is out of date.
            ClassicState::Stable | ClassicState::Completing | ClassicState::Syncing => {
                self.rejoin_now(now);
            }
            // It has not been counted yet, or is no matter of this member's.
            _ => {}
        }
    }

    fn rejoin_now(&mut self, now: Millis) {
        self.rejoin = true;
        self.go_on(now);
    }

    /// See [`Member::leave`](super::Member::leave).
    pub fn leave(&mut self, now: Millis) {
        match self.state {
            ClassicState::PrepareLeaving | ClassicState::Leaving
                if !self.poll_interval_exceeded => {}
            ClassicState::Fatal => self.actions.push(Action::Left),
            ClassicState::Leaving => self.poll_interval_exceeded = false,
            _ => {
                self.poll_interval_exceeded = false;
                self.rejoin = false;
                self.request = None;
                self.assigned = None;
                self.state = ClassicState::PrepareLeaving;
                self.go_on(now);
            }
        }
    }

    /// See [`Member::poll_interval_exceeded`](super::Member::poll_interval_exceeded).
    pub fn poll_interval_exceeded(&mut self, now: Millis) {
        match self.state {
            ClassicState::Unsubscribed
            | ClassicState::PrepareLeaving
            | ClassicState::Leaving
            | ClassicState::Stale
            | ClassicState::Fatal => {}
            _ => {
                self.poll_interval_exceeded = true;
                self.polled = false;
                self.rejoin = false;
                self.lose_all();
                self.say_goodbye(now);
            }
        }
    }

    /// See [`Member::polled`](super::Member::polled).
    pub fn polled(&mut self, now: Millis) {
        self.polled = true;
        if self.state == ClassicState::Stale && self.step.is_none() {
            self.state = ClassicState::Unsubscribed;
            self.rejoin_now(now);
        }
    }

    /// Tells the coordinator, if it knows the member and is to know: a static member that only
    /// closes keeps its place until its session ends.
    fn say_goodbye(&mut self, now: Millis) {
        self.state = ClassicState::Leaving;
        self.next_heartbeat = None;
        // What a last one is answered is no reason to join again.
        self.heartbeat = None;
        self.request = None;
        if self.member_id.is_empty() || self.config.instance_id.is_some() {
            return self.has_left(now);
        }
        let request = protocol::leave(&self.config, &self.member_id);
        self.request = Some(self.actions.send(MemberRequest::Leave(request)));
    }

    fn has_left(&mut self, now: Millis) {
        self.reset();
        self.member_id = ByteString::new();
        if self.poll_interval_exceeded {
            self.state = ClassicState::Stale;
            if self.polled {
                self.polled(now);
            }
        } else {
            self.state = ClassicState::Unsubscribed;
            self.actions.push(Action::Left);
        }
    }

    /// The member is in no generation any more.
    fn reset(&mut self) {
        self.generation = NO_GENERATION;
        self.next_heartbeat = None;
        self.heartbeat = None;
        self.request = None;
        self.assigned = None;
    }

    /// Everything the member had is lost.
    fn lose_all(&mut self) {
        self.actions.forget_steps();
        self.assigned = None;
        if self.owned.is_empty() {
            // A step may be under way for partitions that have been let go of.
            self.step = None;
            return;
        }
        let id = self.actions.id();
        self.step = Some(Step::Losing(id));
        let partitions = std::mem::take(&mut self.owned);
        self.actions.push(Action::Lose { id, partitions });
    }

    fn fatal(&mut self, error: MemberError) {
        self.lose_all();
        self.reset();
        self.rejoin = false;
        self.state = ClassicState::Fatal;
        self.actions.push(Action::Fail(error));
    }

    /// See [`Member::done`](super::Member::done).
    pub fn done(&mut self, id: StepId, now: Millis) {
        let Some(step) = self.step.take_if(|step| step.id() == id) else {
            return;
        };
        if let Step::Revoking(_, partitions) = &step {
            self.owned
                .retain(|partition| !partitions.contains(partition));
        }
        match self.state {
            ClassicState::Stale if self.polled => self.polled(now),
            _ => self.go_on(now),
        }
    }

    /// See [`Member::wake`](super::Member::wake).
    pub fn wake(&mut self, now: Millis) {
        self.go_on(now);
        let due = self.next_heartbeat.is_some_and(|next| next <= now);
        if due && self.beats() {
            self.next_heartbeat = Some(after(now, self.config.heartbeat_interval_ms));
            let request = protocol::heartbeat(&self.config, &self.member_id, self.generation);
            self.heartbeat = Some(self.actions.send(MemberRequest::Heartbeat(request)));
        }
    }

    /// Whether heartbeats are to be sent, and none is under way. Waiting to join is one by itself.
    fn beats(&self) -> bool {
        let waits = matches!(
            self.state,
            ClassicState::Joining | ClassicState::Leaving | ClassicState::Fatal
        );
        !waits && self.generation != NO_GENERATION && self.heartbeat.is_none()
    }

    /// See [`Member::next_action`](super::Member::next_action).
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.next()
    }

    /// See [`Member::next_wake`](super::Member::next_wake).
    pub fn next_wake(&self) -> Option<Millis> {
        let heartbeat = self.next_heartbeat.filter(|_| self.beats());
        let waits = match self.state {
            ClassicState::Unsubscribed | ClassicState::Preparing | ClassicState::Stable => {
                self.rejoin
            }
            ClassicState::Leaving => true,
            _ => false,
        };
        let waits = waits && self.step.is_none() && self.request.is_none();
        let again = waits.then_some(self.not_before);
        heartbeat.into_iter().chain(again).min()
    }

    /// See [`Member::identity`](super::Member::identity).
    pub fn identity(&self) -> Option<Identity> {
        (self.generation != NO_GENERATION).then(|| Identity {
            member_id: self.member_id.clone(),
            instance_id: self.config.instance_id.clone(),
            epoch: self.generation,
            consumer_protocol: false,
        })
    }

    /// See [`Member::refused`](super::Member::refused).
    pub fn refused(&mut self, id: RequestId, code: ErrorCode, message: Option<ByteString>) {
        if self.request == Some(id) || self.heartbeat == Some(id) {
            self.fatal(MemberError::Refused { code, message });
        }
    }
}
