//! Members and a coordinator's shard in one thread and virtual time, with a network that delays
//! and loses what it is told to.
#![allow(dead_code)]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kohort_coordinator::{Caller, Config, Outbox, Reply, Request, Shard, Token, Topic, Topics};
use kohort_group::assignor::classic::{
    ConsumerPartitionAssignor, CooperativeSticky, PartitionCounts, Range,
};
use kohort_member::*;
use kohort_wire::{ByteString, Uuid};
use rand::{Rng, SeedableRng, rngs::StdRng};

pub(crate) const GROUP: &str = "group";

/// How a member comes to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Consumer,
    Range,
    Cooperative,
    /// On the way from one to the other.
    RangeAndCooperative,
}

pub(crate) struct Node {
    pub(crate) member: Member,
    /// What the application has.
    pub(crate) has: Partitions,
    /// What it was asked, in order.
    pub(crate) story: Vec<(&'static str, Partitions)>,
    pub(crate) sent: Vec<MemberRequest>,
    pub(crate) left: bool,
    pub(crate) failed: Option<MemberError>,
    /// It does nothing any more.
    pub(crate) dead: bool,
    /// How long a step of the application takes.
    pub(crate) step_ms: Millis,
    wakes: usize,
}

enum Delivery {
    Request(usize, RequestId, MemberRequest),
    Answer(usize, RequestId, Option<Answer>),
    Done(usize, StepId, &'static str, Partitions),
    Names(usize, Vec<Uuid>),
    Counts(usize, Vec<ByteString>),
}

pub(crate) struct World {
    pub(crate) now: Millis,
    pub(crate) nodes: Vec<Node>,
    pub(crate) shard: Shard,
    pub(crate) topics: BTreeMap<&'static str, (Uuid, i32)>,
    /// Of a hundred messages, so many are lost.
    pub(crate) lost_percent: u32,
    /// The names of topics are not told.
    pub(crate) hide_names: bool,
    /// Somebody may be taken for dead who is not: for a while two may have the same.
    pub(crate) untold: bool,
    network: BTreeMap<(Millis, u64), Delivery>,
    tokens: BTreeMap<u64, (usize, RequestId)>,
    next: u64,
    random: StdRng,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let topics = BTreeMap::from([("a", (Uuid(1), 4)), ("b", (Uuid(2), 3))]);
        let config = Config {
            group_initial_rebalance_delay_ms: 0,
            consumer_shortest_heartbeat_interval_ms: 5_000,
            ..Config::default()
        };
        World {
            now: 1_000_000,
            nodes: Vec::new(),
            shard: Shard::new(Arc::new(config), Arc::new(known(1, &topics)), [7; 32]),
            topics,
            lost_percent: 0,
            hide_names: false,
            untold: false,
            network: BTreeMap::new(),
            tokens: BTreeMap::new(),
            next: 0,
            random: StdRng::seed_from_u64(seed),
        }
    }

    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.random.next_u32() % 100 < percent
    }

    pub(crate) fn any(&mut self, below: usize) -> usize {
        self.random.next_u32() as usize % below
    }

    pub(crate) fn join(&mut self, kind: Kind) -> usize {
        self.join_as(kind, None)
    }

    pub(crate) fn join_as(&mut self, kind: Kind, instance_id: Option<&str>) -> usize {
        let instance_id = instance_id.map(ByteString::from);
        let member = match kind {
            Kind::Consumer => {
                let member_id = format!("member-{}", self.nodes.len());
                Member::Consumer(Box::new(ConsumerMember::new(ConsumerMemberConfig {
                    group_id: GROUP.into(),
                    member_id: member_id.into(),
                    instance_id,
                    rack_id: None,
                    rebalance_timeout_ms: 30_000,
                    server_assignor: None,
                    session_timeout_ms: 45_000,
                })))
            }
            _ => {
                let range = || Box::<Range>::default() as Box<dyn ConsumerPartitionAssignor>;
                let sticky = || Box::<CooperativeSticky>::default();
                let config = ClassicConfig {
                    group_id: GROUP.into(),
                    instance_id,
                    rack_id: None,
                    session_timeout_ms: 10_000,
                    rebalance_timeout_ms: 30_000,
                    heartbeat_interval_ms: 1_000,
                    assignors: match kind {
                        Kind::Range => vec![range()],
                        Kind::Cooperative => vec![sticky()],
                        _ => vec![sticky(), range()],
                    },
                };
                Member::Classic(Box::new(ClassicMember::new(config).unwrap()))
            }
        };
        self.nodes.push(Node {
            member,
            has: Partitions::new(),
            story: Vec::new(),
            sent: Vec::new(),
            left: false,
            failed: None,
            dead: false,
            step_ms: 3,
            wakes: 0,
        });
        let node = self.nodes.len() - 1;
        self.subscribe(node, &["a", "b"]);
        node
    }

    pub(crate) fn subscribe(&mut self, node: usize, topics: &[&str]) {
        let topics = topics.iter().map(|topic| ByteString::from(*topic));
        let now = self.now;
        let subscription = Subscription::topics(topics);
        self.nodes[node].member.subscribe(subscription, now);
        self.act(node);
    }

    pub(crate) fn leave(&mut self, node: usize) {
        let now = self.now;
        self.nodes[node].left = false;
        self.nodes[node].member.leave(now);
        self.act(node);
    }

    pub(crate) fn set_partitions(&mut self, topic: &'static str, id: Uuid, count: i32) {
        self.topics.insert(topic, (id, count));
        let topics = known(self.now, &self.topics);
        let mut out = Outbox::default();
        self.shard
            .topics_changed(Arc::new(topics), self.now, &mut out);
        self.reply(out);
    }

    /// Lets so much time pass.
    pub(crate) fn run(&mut self, ms: Millis) {
        let end = self.now + ms;
        loop {
            let network = self.network.first_key_value().map(|((time, _), _)| *time);
            let alarm = self.shard.next_alarm();
            let alive = self.nodes.iter().filter(|node| !node.dead);
            let wake = alive.filter_map(|node| node.member.next_wake()).min();
            let times = [network, alarm, wake].into_iter().flatten();
            let Some(time) = times.min().filter(|time| *time <= end) else {
                break;
            };
            self.now = self.now.max(time);
            if network.is_some_and(|time| time <= self.now) {
                let (_, delivery) = self.network.pop_first().unwrap();
                self.deliver(delivery);
            } else if alarm.is_some_and(|time| time <= self.now) {
                let mut out = Outbox::default();
                self.shard.on_alarm(self.now, &mut out);
                self.reply(out);
            } else {
                for node in 0..self.nodes.len() {
                    let due = self.nodes[node].member.next_wake();
                    if !self.nodes[node].dead && due.is_some_and(|time| time <= self.now) {
                        self.nodes[node].wakes += 1;
                        assert!(self.nodes[node].wakes < 100_000, "the member spins");
                        let now = self.now;
                        self.nodes[node].member.wake(now);
                        self.act(node);
                    }
                }
            }
            self.check();
        }
        self.now = end;
    }

    /// Lets time pass until something is so.
    pub(crate) fn until(&mut self, mut condition: impl FnMut(&World) -> bool) {
        for _ in 0..200_000 {
            if condition(self) {
                return;
            }
            self.run(5);
        }
        panic!("it should have happened");
    }

    pub(crate) fn wakes(&self, node: usize) -> usize {
        self.nodes[node].wakes
    }

    /// No partition is with two applications.
    fn check(&self) {
        if self.untold {
            return;
        }
        let mut seen = BTreeSet::new();
        for partition in self.nodes.iter().flat_map(|node| &node.has) {
            assert!(seen.insert(partition), "{partition:?} is with two members");
        }
    }

    /// Every partition is with exactly one living member.
    pub(crate) fn is_shared_out(&self) -> bool {
        let mut all = Vec::new();
        for node in self.nodes.iter().filter(|node| !node.dead) {
            all.extend(node.has.iter().cloned());
        }
        let total: i32 = self.topics.values().map(|(_, count)| count).sum();
        let count = all.len();
        all.sort();
        all.dedup();
        count == total as usize && all.len() == count
    }

    pub(crate) fn members(&mut self) -> usize {
        let mut out = Outbox::default();
        let (token, caller) = (Token(u64::MAX), Caller::default());
        let groups = vec![GROUP.into()];
        let request = Request::ConsumerGroupDescribe { groups };
        self.shard
            .request(token, &caller, request, self.now, &mut out);
        let groups = vec![GROUP.into()];
        let request = Request::DescribeGroups { version: 5, groups };
        self.shard
            .request(token, &caller, request, self.now, &mut out);
        out.replies
            .iter()
            .map(|(_, reply)| match reply {
                Reply::ConsumerGroupDescribe(groups) => groups[0].members.len(),
                Reply::DescribeGroups(groups) => groups[0].members.len(),
                _ => 0,
            })
            .max()
            .unwrap_or(0)
    }

    fn later(&mut self, ms: Millis, delivery: Delivery) {
        self.next += 1;
        self.network.insert((self.now + ms, self.next), delivery);
    }

    pub(crate) fn act(&mut self, node: usize) {
        while let Some(action) = self.nodes[node].member.next_action() {
            let step_ms = self.nodes[node].step_ms;
            match action {
                Action::Send { id, request } => {
                    self.nodes[node].sent.push(request.clone());
                    if self.chance(self.lost_percent) {
                        self.later(20, Delivery::Answer(node, id, None));
                    } else {
                        self.later(1, Delivery::Request(node, id, request));
                    }
                }
                Action::Assign { id, added, .. } => {
                    self.nodes[node].has.extend(added.iter().cloned());
                    self.later(step_ms, Delivery::Done(node, id, "assigned", added));
                }
                Action::Revoke { id, partitions } => {
                    self.later(step_ms, Delivery::Done(node, id, "revoked", partitions));
                }
                Action::Lose { id, partitions } => {
                    self.nodes[node]
                        .has
                        .retain(|partition| !partitions.contains(partition));
                    self.later(step_ms, Delivery::Done(node, id, "lost", partitions));
                }
                Action::ResolveTopics(ids) => self.later(2, Delivery::Names(node, ids)),
                Action::CountPartitions(topics) => self.later(2, Delivery::Counts(node, topics)),
                Action::Report(_) | Action::Waiting(_) => {}
                Action::Fail(error) => self.nodes[node].failed = Some(error),
                Action::Left => self.nodes[node].left = true,
            }
        }
    }

    fn deliver(&mut self, delivery: Delivery) {
        let now = self.now;
        let node = match delivery {
            Delivery::Request(node, id, request) => {
                self.next += 1;
                let token = self.next;
                self.tokens.insert(token, (node, id));
                let request = match request {
                    MemberRequest::ConsumerHeartbeat(request) => Request::ConsumerGroupHeartbeat {
                        version: 1,
                        request,
                    },
                    MemberRequest::Join(request) => Request::JoinGroup {
                        version: 9,
                        request,
                    },
                    MemberRequest::Sync(request) => Request::SyncGroup {
                        version: 5,
                        request,
                    },
                    MemberRequest::Heartbeat(request) => Request::Heartbeat { request },
                    MemberRequest::Leave(request) => Request::LeaveGroup {
                        version: 5,
                        request,
                    },
                };
                let mut out = Outbox::default();
                let caller = Caller::default();
                self.shard
                    .request(Token(token), &caller, request, now, &mut out);
                return self.reply(out);
            }
            Delivery::Answer(node, id, answer) => {
                match answer {
                    Some(answer) => self.nodes[node].member.answered(id, answer, now),
                    None => self.nodes[node].member.failed(id, 100, now),
                }
                node
            }
            Delivery::Done(node, id, what, partitions) => {
                if what == "revoked" {
                    self.nodes[node]
                        .has
                        .retain(|partition| !partitions.contains(partition));
                }
                self.nodes[node].story.push((what, partitions));
                self.nodes[node].member.done(id, now);
                node
            }
            Delivery::Names(node, ids) => {
                if self.hide_names {
                    return self.later(50, Delivery::Names(node, ids));
                }
                let names = self.topics.iter();
                let names = names.filter(|(_, (id, _))| ids.contains(id));
                let names = names.map(|(name, (id, _))| (*id, ByteString::from(*name)));
                let names = names.collect();
                self.nodes[node].member.topics(&names, now);
                node
            }
            Delivery::Counts(node, topics) => {
                let counts = topics.into_iter().filter_map(|topic| {
                    let count = self.topics.get(&*topic)?.1;
                    Some((topic, count))
                });
                let counts: PartitionCounts = counts.collect();
                self.nodes[node].member.partition_counts(counts);
                node
            }
        };
        if !self.nodes[node].dead {
            self.act(node);
        }
    }

    fn reply(&mut self, out: Outbox) {
        for (token, reply) in out.replies {
            let Some((node, id)) = self.tokens.remove(&token.0) else {
                continue;
            };
            let answer = match reply {
                Reply::ConsumerGroupHeartbeat(answer) => Answer::ConsumerHeartbeat(answer),
                Reply::JoinGroup(answer) => Answer::Join(answer),
                Reply::SyncGroup(answer) => Answer::Sync(answer),
                Reply::Heartbeat(answer) => Answer::Heartbeat(answer),
                Reply::LeaveGroup(answer) => Answer::Leave(answer),
                _ => continue,
            };
            let answer = (!self.chance(self.lost_percent)).then_some(answer);
            self.later(1, Delivery::Answer(node, id, answer));
        }
    }
}

fn known(version: i64, topics: &BTreeMap<&'static str, (Uuid, i32)>) -> Topics {
    let topics = topics.iter().map(|(name, (id, count))| Topic {
        id: *id,
        name: Arc::from(*name),
        partition_count: *count,
        is_internal: false,
        created_at: 0,
    });
    Topics::new(version, topics)
}
