//! The world of a run: time, the coordinator, the nodes, and what is on its way between them.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::Hasher,
};

use kohort_coordinator::{Reply, Request, inspect::Place};
use kohort_group::Id;
use kohort_member::{
    Millis, StepId,
    reader::{Target, TopicPartition},
};
use kohort_wire::{
    ByteString, Uuid,
    messages::{FetchRequest, FetchResponse},
};
use rustc_hash::FxHasher;

use crate::{
    cluster::Cluster,
    coordinator::{Coordinator, Origin},
    eras::Eras,
    invariants::{self, Happened, Invariant},
    ledger::Ledger,
    node::{CallId, ConnectionId, Key, Node, NodeId},
    profile::Profile,
    random::Random,
    rewinds::Administrators,
    trace::Trace,
};

/// Something that will happen.
#[derive(Debug)]
pub(crate) enum Event {
    /// A request gets to the coordinator.
    Arrive {
        node: NodeId,
        life: u64,
        connection: ConnectionId,
        call: CallId,
        request: Request,
        is_ghost: bool,
    },
    /// An answer gets to the node.
    Answer {
        node: NodeId,
        life: u64,
        connection: ConnectionId,
        call: CallId,
        /// `None`: the coordinator cannot answer now.
        reply: Option<Reply>,
    },
    /// A node has waited long enough for an answer, or its connection breaks.
    Cut {
        node: NodeId,
        life: u64,
        connection: ConnectionId,
        /// Only if this is still not answered.
        call: Option<CallId>,
    },
    /// A node learns that a request will not be answered.
    Failed {
        node: NodeId,
        life: u64,
        call: CallId,
    },
    /// The application asks for records.
    Poll {
        node: NodeId,
        life: u64,
    },
    /// The application has done what it was asked to.
    StepDone {
        node: NodeId,
        life: u64,
        step: StepId,
        /// Partitions that it has let go of.
        revoked: Vec<Key>,
    },
    /// A commit is tried again.
    CommitAgain {
        node: NodeId,
        life: u64,
        commit: crate::node::Commit,
    },
    /// The application has had long enough to finish records of revoked partitions.
    RevokeNow {
        node: NodeId,
        life: u64,
        step: StepId,
    },
    /// A fetch gets to the broker, or has waited there.
    Fetch {
        node: NodeId,
        life: u64,
        request: Box<FetchRequest>,
        waits_until: Millis,
    },
    /// The response to a fetch gets to the node; `None`: it is lost.
    Fetched {
        node: NodeId,
        life: u64,
        response: Box<Option<FetchResponse>>,
    },
    /// Offsets are looked up.
    FindOffsets {
        node: NodeId,
        life: u64,
        asked: Vec<(TopicPartition, Target, u64)>,
    },
    Names {
        node: NodeId,
        life: u64,
        ids: Vec<Uuid>,
    },
    Counts {
        node: NodeId,
        life: u64,
        topics: Vec<ByteString>,
    },
    /// A node notices that there are other topics.
    Metadata {
        node: NodeId,
        life: u64,
    },
    /// A process is started again.
    Start {
        node: NodeId,
    },
    Appended {
        life: u64,
    },
    Loaded {
        life: u64,
    },
    WorkDone {
        work: u64,
    },
    News,
    TopicsDeleted(Vec<ByteString>),
    /// The broker notices that a connection has closed.
    Closed(ConnectionId),
    /// What an administrator asks for gets to the coordinator.
    Asked {
        number: u64,
        request: Request,
    },
    /// An administrator has waited long enough, if it has not asked again meanwhile.
    AskAgain {
        number: u64,
        tries: u32,
    },
    /// An answer gets to an administrator; `None`: the coordinator cannot answer now.
    Told {
        number: u64,
        reply: Option<Reply>,
    },
    Produce,
    Adversity,
}

impl Event {
    /// The process that it happens to, if it is one.
    fn node(&self) -> Option<NodeId> {
        match self {
            Event::Answer { node, .. }
            | Event::Failed { node, .. }
            | Event::Poll { node, .. }
            | Event::StepDone { node, .. }
            | Event::CommitAgain { node, .. }
            | Event::RevokeNow { node, .. }
            | Event::Fetch { node, .. }
            | Event::Fetched { node, .. }
            | Event::FindOffsets { node, .. }
            | Event::Names { node, .. }
            | Event::Counts { node, .. }
            | Event::Metadata { node, .. } => Some(*node),
            _ => None,
        }
    }
}

/// Why a run ended badly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) invariant: &'static str,
    pub(crate) problem: String,
}

pub(crate) struct World {
    pub(crate) now: Millis,
    pub(crate) random: Random,
    pub(crate) profile: Profile,
    pub(crate) cluster: Cluster,
    pub(crate) coordinator: Coordinator,
    pub(crate) nodes: Vec<Node>,
    pub(crate) ledger: Ledger,
    pub(crate) eras: Eras,
    pub(crate) administrators: Administrators,
    pub(crate) trace: Trace,
    /// The adversary has stopped.
    pub(crate) is_calm: bool,
    pub(crate) failure: Option<Failure>,
    pub(crate) steps: u64,
    /// What connections that were given up still carry arrives so much later.
    pub(crate) ghosts: BTreeMap<ConnectionId, Millis>,
    /// Topics for which somebody has committed by name what was meant for another topic that had
    /// the name before: nobody can tell.
    pub(crate) confused: BTreeSet<ByteString>,
    queue: BTreeMap<(Millis, u64), Event>,
    sequence: u64,
    digest: FxHasher,
    invariants: Vec<Box<dyn Invariant>>,
}

impl World {
    pub(crate) fn new(seed: u64, trace: Trace) -> World {
        let mut random = Random::new(seed);
        let profile = Profile::new(&mut random);
        let mut cluster = Cluster::default();
        for topic in &TOPICS[..profile.topics] {
            let partitions = random.between(1, profile.partitions_max.into());
            cluster.create(topic, partitions as i32, BEGIN - LONG_AGO_MS);
        }
        let config = profile.config.clone();
        let coordinator = Coordinator::new(config, cluster.snapshot(), &mut random);
        let mut world = World {
            now: BEGIN,
            random,
            profile,
            cluster,
            coordinator,
            nodes: Vec::new(),
            ledger: Ledger::default(),
            eras: Eras::default(),
            administrators: Administrators::default(),
            trace,
            is_calm: false,
            failure: None,
            steps: 0,
            ghosts: BTreeMap::new(),
            confused: BTreeSet::new(),
            queue: BTreeMap::new(),
            sequence: 0,
            digest: FxHasher::default(),
            invariants: invariants::all(),
        };
        let nodes = world.random.between(1, world.profile.nodes_max as i64);
        for _ in 0..nodes {
            world.another_node();
        }
        world.later(0, Event::Produce);
        world.later(world.profile.rest_ms, Event::Adversity);
        world
    }

    /// Lets time pass up to some moment, or to the first failure.
    pub(crate) fn run_until(&mut self, end: Millis) {
        while self.failure.is_none() && self.step(end) {}
        self.now = self.now.max(end);
    }

    /// Does what comes next. `false`: nothing does before `end`.
    fn step(&mut self, end: Millis) -> bool {
        let event = self.queue.first_key_value().map(|((time, _), _)| *time);
        let alarm = self.coordinator.next_alarm();
        let wake = self.next_wake();
        let times = [event, alarm, wake.map(|(time, _)| time)];
        let Some(time) = times.into_iter().flatten().min().filter(|t| *t <= end) else {
            return false;
        };
        self.now = self.now.max(time);
        self.steps += 1;
        self.digest.write_i64(self.now);
        if event.is_some_and(|time| time <= self.now) {
            if let Some((_, event)) = self.queue.pop_first() {
                self.digest.write_u8(1);
                self.happen(event);
            }
        } else if alarm.is_some_and(|time| time <= self.now) {
            self.digest.write_u8(2);
            self.coordinator_turn();
        } else if let Some((_, node)) = wake {
            self.digest.write_usize(3 + node);
            self.wake(node);
        }
        true
    }

    fn happen(&mut self, event: Event) {
        match event {
            // The last of them is lost.
            Event::Arrive { is_ghost: true, .. } if self.is_calm => {}
            Event::Arrive {
                node,
                life,
                connection,
                call,
                request,
                is_ghost,
            } => self.arrive(
                Origin::Node {
                    node,
                    life,
                    connection,
                    call,
                    is_ghost,
                },
                request,
            ),
            Event::Appended { life } => self.appended(life),
            Event::Loaded { life } => self.load(life),
            Event::WorkDone { work } => self.work_done(work),
            Event::News => self.news(),
            Event::TopicsDeleted(topics) => self.topics_deleted(topics),
            Event::Closed(connection) => self.closed(connection),
            Event::Asked { number, request } => self.asked(number, request),
            Event::AskAgain { number, tries } => self.ask(number, tries),
            Event::Told { number, reply } => self.told(number, reply),
            Event::Produce => self.produce(),
            Event::Adversity => self.adversity(),
            Event::Start { node } => self.start_if_due(node),
            Event::Cut {
                node,
                life,
                connection,
                call,
            } => self.cut_if(node, life, connection, call),
            event => self.happen_to_node(event),
        }
    }

    /// Events of a process that is gone are dropped; those of one that is paused wait.
    fn happen_to_node(&mut self, event: Event) {
        let (node, life) = match &event {
            Event::Answer { node, life, .. }
            | Event::Failed { node, life, .. }
            | Event::Poll { node, life }
            | Event::StepDone { node, life, .. }
            | Event::CommitAgain { node, life, .. }
            | Event::RevokeNow { node, life, .. }
            | Event::Fetch { node, life, .. }
            | Event::Fetched { node, life, .. }
            | Event::FindOffsets { node, life, .. }
            | Event::Names { node, life, .. }
            | Event::Counts { node, life, .. }
            | Event::Metadata { node, life } => (*node, *life),
            _ => return,
        };
        let it = &self.nodes[node];
        if it.life != life || !it.is_alive {
            return;
        }
        let wait = it.paused_until - self.now;
        if wait > 0 {
            return self.later(wait, event);
        }
        match event {
            Event::Answer {
                connection,
                call,
                reply,
                ..
            } => self.answered(node, connection, call, reply),
            Event::Failed { call, .. } => self.call_failed(node, call),
            Event::Poll { .. } => self.poll(node),
            Event::StepDone { step, revoked, .. } => self.step_done(node, step, &revoked),
            Event::CommitAgain { commit, .. } => self.commit(node, commit),
            Event::RevokeNow { step, .. } => self.revoke_now(node, step),
            Event::Fetch {
                request,
                waits_until,
                ..
            } => self.fetch(node, life, request, waits_until),
            Event::Fetched { response, .. } => self.fetched(node, *response),
            Event::FindOffsets { asked, .. } => self.find_offsets(node, asked),
            Event::Names { ids, .. } => self.names(node, ids),
            Event::Counts { topics, .. } => self.counts(node, topics),
            Event::Metadata { .. } => self.metadata_changed(node),
            _ => {}
        }
        self.act(node);
    }

    /// Has what waits for the end of a pause, or for an application to let go, happen now.
    pub(crate) fn end_pauses(&mut self) {
        let nodes = self.nodes.iter();
        let until: Vec<_> = nodes.map(|it| (it.paused_until, it.stuck_until)).collect();
        let now = self.now;
        let queue = std::mem::take(&mut self.queue);
        for ((at, number), event) in queue {
            let is_step = matches!(event, Event::StepDone { .. });
            let waits = event.node().is_some_and(|node| {
                let (paused, stuck) = until[node];
                at > now && (at <= paused || is_step && at <= stuck)
            });
            if waits {
                // A new number keeps the events in their order.
                self.later(0, event);
            } else {
                self.queue.insert((at, number), event);
            }
        }
    }

    /// The first member that wants to be woken.
    fn next_wake(&self) -> Option<(Millis, NodeId)> {
        let nodes = self.nodes.iter().enumerate();
        let wakes = nodes
            .filter(|(_, node)| node.is_up())
            .filter_map(|(id, node)| {
                let at = node.clock.when(node.member.next_wake()?);
                Some((at.max(node.paused_until), id))
            });
        wakes.min()
    }

    pub(crate) fn later(&mut self, ms: Millis, event: Event) {
        self.sequence += 1;
        let at = self.now + ms.max(0);
        self.queue.insert((at, self.sequence), event);
    }

    pub(crate) fn at(&mut self, at: Millis, event: Event) {
        self.later(at - self.now, event);
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// What has happened so far, in a number.
    pub(crate) fn digest(&self) -> u64 {
        self.digest.finish()
    }

    pub(crate) fn mix(&mut self, bytes: &[u8]) {
        self.digest.write(bytes);
    }

    pub(crate) fn note(&mut self, words: impl FnOnce() -> String) {
        self.trace.note(self.now, words);
    }

    pub(crate) fn fail(&mut self, invariant: &'static str, problem: String) {
        if self.failure.is_none() {
            self.note(|| format!("BROKEN {invariant}: {problem}"));
            self.failure = Some(Failure { invariant, problem });
        }
    }

    pub(crate) fn check(&mut self, happened: &Happened<'_>) {
        if self.failure.is_some() {
            return;
        }
        let mut invariants = std::mem::take(&mut self.invariants);
        for invariant in &mut invariants {
            if let Err(problem) = invariant.after(self, happened) {
                self.fail(invariant.name(), problem);
            }
        }
        self.invariants = invariants;
    }

    /// Up to which offset a group has processed every record of a partition that is there for
    /// applications.
    pub(crate) fn done(&self, group: &Id, place: Place) -> i64 {
        let done = self.ledger.account(group, place).done;
        self.cluster.logs.next_record(place, done)
    }

    pub(crate) fn groups(&self) -> Vec<Id> {
        GROUPS[..self.profile.groups]
            .iter()
            .map(|group| Id::from(*group))
            .collect()
    }

    /// The nodes that satisfy something.
    pub(crate) fn those(&self, condition: impl Fn(&Node) -> bool) -> Vec<NodeId> {
        let nodes = self.nodes.iter().enumerate();
        nodes
            .filter(|(_, node)| condition(node))
            .map(|(id, _)| id)
            .collect()
    }
}

/// When runs begin.
const BEGIN: Millis = 1_000_000;

/// How old the topics are then.
const LONG_AGO_MS: Millis = 100_000;

pub(crate) const TOPICS: [&str; 3] = ["ta", "tb", "tc"];
const GROUPS: [&str; 2] = ["g", "h"];
