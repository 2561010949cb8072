//! The adversary: what goes wrong, and what people do to their groups.

use kohort_coordinator::{Request, inspect::MembersState};
use kohort_group::Id;
use kohort_member::{Millis, Subscription};
use kohort_wire::{
    ByteString,
    messages::{
        MemberIdentity, OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
    },
};

use crate::{
    coordinator::{Durable, Origin},
    invariants::Happened,
    node::{Clock, Connection, Node, NodeId, Role, reader},
    profile::Kind,
    world::{Event, TOPICS, World},
};

/// Something that goes wrong, or that people do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Adversity {
    /// Another process joins.
    Join,
    /// A process ends as it should.
    Leave,
    /// A process ends at once, and is started again some time later.
    Crash,
    /// A static member is started again under its instance id.
    StaticRestart,
    /// A process stands still, perhaps for longer than its session.
    Pause,
    /// An application does not ask for records for too long.
    Away,
    /// An application does not let go of partitions that it is asked for.
    Stuck,
    /// A connection breaks.
    Cut,
    /// A member subscribes to something else.
    Subscribe,
    /// A process is replaced by one that speaks the other protocol.
    Roll,
    /// Two processes have one instance id.
    Twin,
    /// An administrator removes a member.
    Remove,
    CoordinatorCrash,
    TopicDeleted,
    TopicGrows,
    /// The first records of a topic are removed, by retention or an administrator.
    RecordsRemoved,
    /// An administrator has committed offsets deleted.
    OffsetsDeleted,
    /// An administrator has a group deleted, if it has no members.
    GroupDeleted,
    /// Requests that are wrong.
    Stranger,
    /// An administrator has a group rewound.
    Rewind,
    /// Two administrators do.
    TwoRewinds,
    /// The last rewind is undone.
    Undo,
    /// The rewind that is under way is given up.
    Cancel,
}

impl Adversity {
    pub(crate) const ALL: &'static [Adversity] = &[
        Adversity::Join,
        Adversity::Leave,
        Adversity::Crash,
        Adversity::StaticRestart,
        Adversity::Pause,
        Adversity::Away,
        Adversity::Stuck,
        Adversity::Cut,
        Adversity::Subscribe,
        Adversity::Roll,
        Adversity::Twin,
        Adversity::Remove,
        Adversity::CoordinatorCrash,
        Adversity::TopicDeleted,
        Adversity::TopicGrows,
        Adversity::RecordsRemoved,
        Adversity::OffsetsDeleted,
        Adversity::GroupDeleted,
        Adversity::Stranger,
        Adversity::Rewind,
        Adversity::TwoRewinds,
        Adversity::Undo,
        Adversity::Cancel,
    ];
}

impl World {
    pub(crate) fn adversity(&mut self) {
        if self.is_calm {
            return;
        }
        let ms = self.random.between(1, self.profile.rest_ms);
        self.later(ms, Event::Adversity);
        if self.profile.adversities.is_empty() {
            return;
        }
        let index = self.random.below(self.profile.adversities.len());
        let adversity = self.profile.adversities[index];
        let up = self.those(Node::is_up);
        let node = self.random.any(&up);
        self.note(|| format!("adversary: {adversity:?} (node {node:?})"));
        match (adversity, node) {
            (Adversity::Join, _) => self.another_node(),
            (Adversity::Leave, Some(node)) => self.leave(node),
            (Adversity::Crash, Some(node)) => self.kill(node),
            (Adversity::StaticRestart, _) => self.restart_static(),
            (Adversity::Pause, Some(node)) => {
                let ms = *self.random.one_of(&[50, 1_000, 8_000, 50_000, 100_000]);
                let it = &mut self.nodes[node];
                it.paused_until = it.paused_until.max(self.now + ms);
            }
            (Adversity::Away, Some(node)) => self.go_away(node),
            (Adversity::Stuck, Some(node)) => {
                let ms = *self.random.one_of(&[10_000, 40_000, 70_000]);
                let it = &mut self.nodes[node];
                it.stuck_until = it.stuck_until.max(self.now + ms);
            }
            (Adversity::Cut, Some(node)) => self.cut(node, true),
            (Adversity::Subscribe, Some(node)) => {
                let subscription = self.subscription(self.nodes[node].role.kind);
                self.subscribe(node, subscription);
            }
            (Adversity::Roll, Some(node)) => self.roll(node),
            (Adversity::Twin, _) => self.twin(),
            (Adversity::Remove, _) => self.remove_somebody(),
            (Adversity::CoordinatorCrash, _) => self.crash(),
            (Adversity::TopicDeleted, _) => self.delete_or_create(),
            (Adversity::TopicGrows, _) => {
                let topic = *self.random.one_of(&TOPICS);
                let by = self.random.between(1, 3) as usize;
                if self.cluster.get(topic).is_some_and(|t| t.ends.len() < 12) {
                    self.cluster.grow(topic, by);
                    self.topics_changed();
                }
            }
            (Adversity::RecordsRemoved, _) => self.remove_records(),
            (Adversity::OffsetsDeleted, _) => self.delete_offsets(),
            (Adversity::GroupDeleted, _) => {
                let group = self.random.one_of(&self.groups()).clone();
                let groups = vec![(&*group).into()];
                self.arrive(Origin::Broker, Request::DeleteGroups { groups });
            }
            (Adversity::Stranger, _) => self.stranger(),
            (Adversity::Rewind, _) => self.rewind_somewhere(),
            (Adversity::TwoRewinds, _) => self.rewind_twice(),
            (Adversity::Undo, _) => self.undo_rewind(),
            (Adversity::Cancel, _) => self.cancel_rewind(),
            (_, None) => {}
        }
    }

    /// Records are written all the time.
    pub(crate) fn produce(&mut self) {
        if self.is_calm {
            return;
        }
        let names: Vec<ByteString> = self.cluster.iter().map(|(name, _)| name.clone()).collect();
        for name in names {
            let partitions = self.cluster.get(&name).map_or(0, |topic| topic.ends.len());
            for partition in 0..partitions {
                let records = self.random.between(0, 3);
                let random = &mut self.random;
                self.cluster.produce(&name, partition, records, random);
            }
        }
        self.later(700, Event::Produce);
    }

    pub(crate) fn another_node(&mut self) {
        let alive = self.those(|node| node.is_alive).len();
        if alive >= self.profile.nodes_max || self.nodes.len() >= 40 {
            return;
        }
        let groups = self.groups();
        let group = self.random.one_of(&groups).clone();
        let kinds = self.profile.kinds.clone();
        let kind = *self.random.one_of(&kinds);
        let commits = self.profile.commits.clone();
        let commits = *self.random.one_of(&commits);
        let instance_id = self
            .random
            .percent(self.profile.static_percent)
            .then(|| ByteString::from(format!("i{}", self.nodes.len())));
        let subscription = self.subscription(kind);
        let all_kinds = self.profile.kinds.contains(&Kind::Eager)
            && self.profile.kinds.contains(&Kind::Cooperative);
        let role = Role {
            group,
            kind,
            instance_id,
            commits,
            by_id: self.random.percent(50),
            subscription,
            session_timeout_ms: *self.random.one_of(&[6_000, 10_000]),
            rebalance_timeout_ms: *self.random.one_of(&[6_000, 20_000]),
            heartbeat_interval_ms: *self.random.one_of(&[1_000, 2_000]),
            both_assignors: all_kinds,
        };
        self.add(role);
    }

    pub(crate) fn add(&mut self, role: Role) {
        let own_id = ByteString::from("none yet");
        let member = role.member(&own_id);
        let node = Node {
            role,
            life: 0,
            is_alive: false,
            is_leaving: false,
            has_failed: false,
            member,
            own_id,
            clock: Clock {
                since: self.now,
                permille: 1000,
            },
            paused_until: 0,
            away_until: 0,
            stuck_until: 0,
            connection: Connection::default(),
            calls: Default::default(),
            partitions: Default::default(),
            reader: reader(self.profile.resets_to_latest),
            handle: 0,
            session: Default::default(),
            in_hand: Vec::new(),
            revocation: None,
            acknowledged: Default::default(),
            counted: None,
            told: Default::default(),
            told_subscription: Default::default(),
            admitted: -1,
            synced_at: 0,
            starts_at: None,
            last_auto_commit: 0,
            requests: 0,
        };
        self.nodes.push(node);
        self.start(self.nodes.len() - 1);
    }

    pub(crate) fn start_later(&mut self, node: NodeId, ms: Millis) {
        self.nodes[node].starts_at = Some(self.now + ms);
        self.later(ms, Event::Start { node });
    }

    /// Starts a process if it is time for that: it may have been started meanwhile.
    pub(crate) fn start_if_due(&mut self, node: NodeId) {
        if self.nodes[node].starts_at == Some(self.now) {
            self.start(node);
        }
    }

    /// Starts a process anew; what it was before is gone.
    pub(crate) fn start(&mut self, node: NodeId) {
        let number = self.number();
        let drift = self.profile.drift_permille;
        let permille = 1000 + self.random.between(-drift, drift);
        let it = &mut self.nodes[node];
        it.life += 1;
        it.admitted = -1;
        it.starts_at = None;
        it.own_id = ByteString::from(format!("m{node}.{}", it.life));
        it.member = it.role.member(&it.own_id);
        it.is_alive = true;
        it.is_leaving = false;
        it.has_failed = false;
        it.clock = Clock {
            since: self.now,
            permille,
        };
        it.paused_until = 0;
        it.away_until = 0;
        it.stuck_until = 0;
        it.connection = Connection {
            id: number,
            ..Connection::default()
        };
        it.calls.clear();
        it.partitions.clear();
        it.reader = reader(self.profile.resets_to_latest);
        it.handle = it.reader.add_handle();
        it.in_hand.clear();
        it.revocation = None;
        it.acknowledged.clear();
        it.counted = None;
        it.told.clear();
        it.requests = 0;
        let life = it.life;
        let name = self.nodes[node].name(node);
        self.note(|| format!("{name} starts"));
        let subscription = self.nodes[node].role.subscription.clone();
        self.subscribe(node, subscription);
        let ms = self.random.between(1, self.profile.poll_ms);
        self.later(ms, Event::Poll { node, life });
    }

    fn subscription(&mut self, kind: Kind) -> Subscription {
        if kind == Kind::Consumer && self.random.percent(self.profile.regex_percent) {
            let regex = *self.random.one_of(&["t.*", "ta|tb", "t[bc]"]);
            return Subscription::regex(regex.into());
        }
        let bits = match self.random.percent(70) {
            true => 7,
            false => self.random.between(1, 7),
        };
        let topics = TOPICS.iter().enumerate();
        let topics = topics.filter(|(index, _)| bits >> index & 1 == 1);
        Subscription::topics(topics.map(|(_, topic)| ByteString::from(*topic)))
    }

    pub(crate) fn subscribe(&mut self, node: NodeId, subscription: Subscription) {
        let it = &mut self.nodes[node];
        it.role.subscription = subscription.clone();
        let now = it.clock.read(self.now);
        it.member.subscribe(subscription, now);
        self.act(node);
    }

    pub(crate) fn leave(&mut self, node: NodeId) {
        let it = &mut self.nodes[node];
        it.is_leaving = true;
        let now = it.clock.read(self.now);
        it.member.leave(now);
        self.act(node);
    }

    /// Ends a process: its connection with it, what it had sent may still arrive.
    fn kill(&mut self, node: NodeId) {
        self.end(node);
        if self.random.percent(60) {
            let ms = *self.random.one_of(&[100, 3_000, 20_000]);
            self.start_later(node, ms);
        }
    }

    pub(crate) fn end(&mut self, node: NodeId) {
        self.cut(node, true);
        let it = &mut self.nodes[node];
        it.is_alive = false;
        it.calls.clear();
        it.partitions.clear();
    }

    fn restart_static(&mut self) {
        let those = self.those(|node| node.is_up() && node.role.instance_id.is_some());
        let Some(node) = self.random.any(&those) else {
            return;
        };
        if self.random.percent(50) {
            // As it should: it says that it means to come back.
            self.leave(node);
            let ms = *self.random.one_of(&[200, 2_000]);
            return self.start_later(node, ms);
        }
        self.end(node);
        self.start(node);
    }

    fn go_away(&mut self, node: NodeId) {
        let ms = *self.random.one_of(&[1_000, 10_000]);
        let it = &mut self.nodes[node];
        it.away_until = self.now + ms;
        let now = it.clock.read(self.now);
        it.member.poll_interval_exceeded(now);
        self.act(node);
    }

    fn roll(&mut self, node: NodeId) {
        let kinds = self.profile.kinds.clone();
        let kind = *self.random.one_of(&kinds);
        let subscription = self.subscription(kind);
        if self.random.percent(50) {
            self.leave(node);
            // What is on its way out goes on in a process of its own.
            let mut role = self.nodes[node].role.clone();
            role.kind = kind;
            role.subscription = subscription.clone();
            let waits = role.instance_id.is_some();
            if !waits && self.nodes.len() < 40 {
                return self.add(role);
            }
        }
        self.end(node);
        let role = &mut self.nodes[node].role;
        role.kind = kind;
        role.subscription = subscription;
        self.start(node);
    }

    fn twin(&mut self) {
        let those = self.those(|node| node.is_up() && node.role.instance_id.is_some());
        if let Some(node) = self.random.any(&those)
            && self.nodes.len() < 40
        {
            let role = self.nodes[node].role.clone();
            self.add(role);
        }
    }

    fn remove_somebody(&mut self) {
        let group = self.random.one_of(&self.groups()).clone();
        let Some((member_id, instance_id)) = self.some_member(&group) else {
            return;
        };
        let member = match instance_id {
            Some(instance_id) => MemberIdentity {
                group_instance_id: Some((&*instance_id).into()),
                ..MemberIdentity::default()
            },
            None => MemberIdentity {
                member_id: (&*member_id).into(),
                ..MemberIdentity::default()
            },
        };
        self.remove_as_administrator(&group, member);
    }

    /// A member that the coordinator knows, and its instance id.
    pub(crate) fn some_member(&mut self, group: &Id) -> Option<(Id, Option<Id>)> {
        let members = members(&self.coordinator.live, group);
        (!members.is_empty()).then(|| self.random.one_of(&members).clone())
    }

    fn delete_or_create(&mut self) {
        let topic = *self.random.one_of(&TOPICS[..self.profile.topics]);
        if self.cluster.get(topic).is_none() {
            return self.create(topic);
        }
        self.cluster.delete(topic);
        self.topics_changed();
        let ms = self.random.between(0, 200);
        self.later(ms, Event::TopicsDeleted(vec![topic.into()]));
        if self.random.percent(40) {
            self.create(topic);
        }
    }

    fn remove_records(&mut self) {
        let topic = *self.random.one_of(&TOPICS);
        let Some(known) = self.cluster.get(topic) else {
            return;
        };
        let (id, ends) = (known.id, known.ends.clone());
        for (partition, end) in ends.into_iter().enumerate() {
            let place = (id, partition as i32);
            let start = self.cluster.start(place.0, place.1);
            let to = match self.random.below(4) {
                0 => start,
                1 => end,
                _ => self.random.between(start, end),
            };
            self.cluster.remove_before(place, to);
            self.ledger.remove_before(place, to);
        }
    }

    fn delete_offsets(&mut self) {
        let group = self.random.one_of(&self.groups()).clone();
        let name = *self.random.one_of(&TOPICS);
        let partitions = (0..12).filter(|_| self.random.percent(60));
        let partitions =
            partitions.map(|partition_index| OffsetDeleteRequestPartition { partition_index });
        let topic = OffsetDeleteRequestTopic {
            name: name.into(),
            partitions: partitions.collect(),
        };
        let request = OffsetDeleteRequest {
            group_id: (&*group).into(),
            topics: vec![topic],
        };
        self.arrive(Origin::Broker, Request::OffsetDelete { request });
    }

    pub(crate) fn create(&mut self, topic: &str) {
        let partitions = self.random.between(1, self.profile.partitions_max.into());
        let now = self.coordinator.clock(self.now);
        self.cluster.create(topic, partitions as i32, now);
        self.topics_changed();
    }

    /// Whoever has to know of topics learns of them.
    pub(crate) fn topics_changed(&mut self) {
        self.check(&Happened::TopicsChanged);
        let ms = self.random.between(0, 100);
        self.later(ms, Event::News);
        for node in 0..self.nodes.len() {
            let life = self.nodes[node].life;
            let ms: Millis = self.random.between(0, 3_000);
            self.later(ms, Event::Metadata { node, life });
        }
    }
}

fn members(live: &Durable, group: &str) -> Vec<(Id, Option<Id>)> {
    match live.get(group).map(|group| &group.members) {
        Some(MembersState::Consumer(group)) => group
            .members
            .iter()
            .map(|(id, member)| (id.clone(), member.instance_id.clone()))
            .collect(),
        Some(MembersState::Classic(group)) => group
            .members
            .iter()
            .map(|(id, (instance_id, _))| (id.clone(), instance_id.clone()))
            .collect(),
        None => Vec::new(),
    }
}
