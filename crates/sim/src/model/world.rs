//! The small worlds.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use kohort_coordinator::{
    Caller, Config, MigrationPolicy, Outbox, Reply, Request, Shard, Token, Topic, Topics,
    inspect::{GroupState, MembersState, Place},
};
use kohort_group::Id;
use kohort_wire::messages::{LeaveGroupRequest, MemberIdentity};

use super::{
    canonical::{View, fingerprint},
    client::{Client, GROUP, Phase, SESSION_TIMEOUT_MS, TOPIC, TOPIC_ID},
};

/// How large a world is, and what may happen in it.
#[derive(Debug, Clone, Copy)]
pub struct Small {
    /// Partitions of the one topic.
    pub partitions: i32,
    /// Members of the consumer protocol.
    pub consumers: usize,
    /// How many of those have an instance id.
    pub statics: usize,
    /// Members of the classic protocol.
    pub classics: usize,
    /// Whether the coordinator may be lost.
    pub crashes: bool,
    /// Whether requests and answers may be lost, and requests arrive twice.
    pub losses: bool,
    /// Whether members may leave, and be put out.
    pub departures: bool,
    /// Whether static members may come back in the other protocol.
    pub changes: bool,
}

/// Something that may happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A member's request and its answer. One that waits for an answer gives that up first.
    Beat(u8),
    /// A member's request, which is lost.
    Miss(u8),
    /// A member's request, whose answer is lost.
    Lose(u8),
    /// A member's request, which arrives twice; the second answer finds nobody.
    Twice(u8),
    /// A member has let go of what it has to.
    Settle(u8),
    /// A member lets go of everything and leaves.
    Leave(u8),
    /// A static member is started again, after it has said so.
    Restart(u8),
    /// A static member stops without a word, and is started again in the other protocol.
    Change(u8),
    /// The coordinator puts a member out, as when its session ends; it does not know.
    Fence(u8),
    /// The coordinator is lost, and loads its log again. After `Lose` that is a coordinator that
    /// has written and not answered; after `Miss`, one that has not written.
    Crash,
}

pub(super) struct World {
    small: Small,
    config: Arc<Config>,
    topics: Arc<Topics>,
    shard: Shard,
    /// One that was fed with nothing but the log: what there is after a crash.
    standby: Arc<Shard>,
    /// What has been written since.
    written: Vec<(Bytes, Option<Bytes>)>,
    pub(super) clients: Vec<Client>,
    now: i64,
    /// How many requests there were.
    asked: u64,
}

const START: i64 = 1_000_000;
/// How much time passes in a round of heartbeats.
const ROUND_MS: i32 = 5_000;

impl World {
    pub(super) fn new(small: &Small) -> World {
        let config = Arc::new(Config {
            group_initial_rebalance_delay_ms: 0,
            consumer_assignment_interval_ms: 0,
            consumer_connection_grace_ms: 0,
            consumer_migration_policy: MigrationPolicy::Bidirectional,
            ..Config::default()
        });
        let topic = Topic {
            id: TOPIC_ID,
            name: TOPIC.into(),
            partition_count: small.partitions,
            is_internal: false,
            created_at: 0,
        };
        let topics = Arc::new(Topics::new(1, [topic]));
        let consumers =
            (0..small.consumers).map(|index| Client::new(index, false, index < small.statics));
        let classics =
            (0..small.classics).map(|index| Client::new(small.consumers + index, true, false));
        let shard = Shard::new(config.clone(), topics.clone(), SEED);
        World {
            standby: Arc::new(shard.fork(SEED)),
            shard,
            small: *small,
            config,
            topics,
            written: Vec::new(),
            clients: consumers.chain(classics).collect(),
            now: START,
            asked: 0,
        }
    }

    pub(super) fn fork(&self) -> World {
        World {
            small: self.small,
            config: self.config.clone(),
            topics: self.topics.clone(),
            shard: self.shard.fork(SEED),
            standby: self.standby.clone(),
            written: self.written.clone(),
            clients: self.clients.clone(),
            now: self.now,
            asked: self.asked,
        }
    }

    pub(super) fn view(&self) -> View {
        View {
            durable: self.shard.durable(),
            soft: self.shard.soft(self.now),
        }
    }

    pub(super) fn fingerprint(&self, view: &View) -> u128 {
        fingerprint(view, &self.clients)
    }

    /// All that may happen next.
    pub(super) fn steps(&self, view: &View) -> Vec<Step> {
        let mut steps = Vec::with_capacity(8 * self.clients.len());
        for (index, client) in self.clients.iter().enumerate() {
            let at = index as u8;
            steps.push(Step::Beat(at));
            if client.owned != client.assigned {
                steps.push(Step::Settle(at));
            }
            if self.small.losses {
                steps.extend([Step::Miss(at), Step::Lose(at), Step::Twice(at)]);
            }
            if self.small.departures {
                if view.has(&client.id()) {
                    steps.push(Step::Fence(at));
                }
                if client.epoch > 0 {
                    steps.push(Step::Leave(at));
                }
            }
            if client.is_static && client.epoch > 0 {
                if !client.is_classic {
                    steps.push(Step::Restart(at));
                }
                if self.small.changes {
                    steps.push(Step::Change(at));
                }
            }
        }
        if self.small.crashes {
            steps.push(Step::Crash);
        }
        steps
    }

    pub(super) fn take(&mut self, step: Step) {
        match step {
            Step::Beat(at) => self.beat(at.into()),
            Step::Miss(at) => {
                self.request(at.into());
                self.lose(at.into());
            }
            Step::Lose(at) => {
                let request = self.request(at.into());
                self.ask(request);
                self.lose(at.into());
            }
            Step::Twice(at) => {
                let request = self.request(at.into());
                let (token, reply) = self.ask(request.clone());
                self.answered(at.into(), token, reply);
                self.ask(request);
            }
            Step::Settle(at) => self.clients[usize::from(at)].settle(),
            Step::Leave(at) => {
                let client = &mut self.clients[usize::from(at)];
                client.owned.clear();
                let request = if client.is_classic {
                    leave_group(&client.id())
                } else {
                    client.leave(-1)
                };
                self.ask(request);
                self.clients[usize::from(at)].forget();
            }
            Step::Restart(at) => {
                let client = &mut self.clients[usize::from(at)];
                client.owned.clear();
                let request = client.leave(-2);
                self.ask(request);
                self.clients[usize::from(at)].restart();
            }
            Step::Change(at) => self.clients[usize::from(at)].change(),
            Step::Fence(at) => {
                let request = leave_group(&self.clients[usize::from(at)].id());
                self.ask(request);
            }
            Step::Crash => self.crash(),
        }
    }

    /// What a member says next. If it waits for an answer, that is lost to it.
    fn request(&mut self, index: usize) -> Request {
        if self.clients[index].waits.is_some() {
            self.lose(index);
        }
        self.clients[index].request()
    }

    fn lose(&mut self, index: usize) {
        self.clients[index].take(None, self.small.partitions);
    }

    fn beat(&mut self, index: usize) {
        let request = self.request(index);
        let (token, reply) = self.ask(request);
        self.answered(index, token, reply);
    }

    fn answered(&mut self, index: usize, token: Token, reply: Option<Reply>) {
        match reply {
            Some(reply) => self.clients[index].take(Some(&reply), self.small.partitions),
            None => self.clients[index].waits = Some(token),
        }
    }

    fn ask(&mut self, request: Request) -> (Token, Option<Reply>) {
        let mut out = Outbox::default();
        self.asked += 1;
        let token = Token(self.asked);
        self.shard
            .request(token, &Caller::default(), request, self.now, &mut out);
        (token, self.decided(out, Some(token)))
    }

    /// Takes what a step has left. The answer under `token` is given back; others, for which
    /// members have waited, find them.
    fn decided(&mut self, mut out: Outbox, token: Option<Token>) -> Option<Reply> {
        while let Some(work) = out.work.pop() {
            self.shard.done(work.run(), self.now, &mut out);
        }
        let records = out.records.iter();
        self.written
            .extend(records.filter_map(|record| record.encode().ok()));
        let mut own = None;
        for (to, reply) in out.replies {
            if Some(to) == token {
                own = Some(reply);
                continue;
            }
            let mut clients = self.clients.iter_mut();
            if let Some(client) = clients.find(|client| client.waits == Some(to)) {
                client.take(Some(&reply), self.small.partitions);
            }
        }
        own
    }

    /// Lets the standby follow.
    pub(super) fn follow(&mut self) -> Result<(), String> {
        if self.written.is_empty() {
            return Ok(());
        }
        let mut standby = self.standby.fork(SEED);
        for (key, value) in self.written.drain(..) {
            standby
                .load(key, value)
                .map_err(|error| error.to_string())?;
        }
        self.standby = Arc::new(standby);
        Ok(())
    }

    fn crash(&mut self) {
        // What cannot be loaded is a finding of its own.
        if self.follow().is_err() {
            return;
        }
        self.shard = self.standby.fork(SEED);
        // Ids are not given out twice.
        self.shard.skip_member_ids(self.asked);
        for index in 0..self.clients.len() {
            if self.clients[index].waits.is_some() {
                self.lose(index);
            }
        }
        let mut out = Outbox::default();
        self.shard.loaded(self.now, &mut out);
        self.decided(out, None);
    }

    /// What must be so in every state.
    pub(super) fn check(&self, view: &View) -> Result<(), String> {
        self.holds(view)
            .map_err(|problem| format!("{problem}: {}", self.describe(view)))
    }

    fn holds(&self, view: &View) -> Result<(), String> {
        let mut owners: BTreeMap<Place, usize> = BTreeMap::new();
        for client in self.clients.iter().filter(|client| view.is_member(client)) {
            for place in &client.owned {
                if let Some(other) = owners.insert(*place, client.index) {
                    return Err(format!(
                        "partition {} is with members {other} and {}",
                        place.1, client.index
                    ));
                }
            }
        }
        if let Some(MembersState::Consumer(group)) = view.members() {
            let mut given: BTreeMap<Place, &Id> = BTreeMap::new();
            for (id, member) in &group.members {
                for place in member.assigned.keys().chain(member.revoking.keys()) {
                    if let Some(other) = given.insert(*place, id) {
                        return Err(format!("{place:?} is given to {other} and {id}"));
                    }
                }
                if member.epoch > group.assignment_epoch {
                    return Err(format!("{id} is ahead of the target"));
                }
            }
        }
        let loaded = self.standby.durable();
        if is_same(view.durable.get(GROUP), loaded.get(GROUP)) {
            Ok(())
        } else {
            Err("a shard loaded from the log holds something else".to_owned())
        }
    }

    /// How many rounds everybody has to come to rest: twelve, and as many as it takes to notice
    /// that somebody is gone who was given an id and never came back with it.
    pub(super) fn rounds_max(&self) -> u32 {
        let session = (SESSION_TIMEOUT_MS / ROUND_MS) as u32;
        12 + if self.small.classics > 0 || self.small.changes {
            session
        } else {
            0
        }
    }

    /// A round in which nothing goes wrong: everybody is heard, and five seconds pass. Who joins by
    /// the classic protocol does not wait for the next round to sync.
    pub(super) fn calm_round(&mut self) {
        for index in 0..self.clients.len() {
            self.clients[index].settle();
            for _ in 0..4 {
                if self.clients[index].waits.is_none() {
                    self.beat(index);
                }
                if !self.clients[index].is_classic || self.clients[index].phase == Phase::Heartbeat
                {
                    break;
                }
            }
        }
        self.now += i64::from(ROUND_MS);
        let mut out = Outbox::default();
        self.shard.on_alarm(self.now, &mut out);
        self.decided(out, None);
    }

    /// Whether everybody has come to rest, with everything shared out.
    pub(super) fn rests(&self, view: &View) -> bool {
        let counts = self.clients.iter().map(|client| client.owned.len());
        let owned: usize = counts.clone().sum();
        let spread = counts.clone().max().unwrap_or(0) - counts.min().unwrap_or(0);
        let is_at_target = match view.members() {
            Some(MembersState::Consumer(group)) => {
                group.members.len() == self.clients.len()
                    && group.epoch == group.assignment_epoch
                    && group
                        .members
                        .values()
                        .all(|member| member.state == 0 && member.epoch == group.epoch)
            }
            Some(MembersState::Classic(group)) => {
                group.members.len() == self.clients.len() && group.state == "Stable"
            }
            None => false,
        };
        is_at_target
            && owned == self.small.partitions as usize
            && spread <= 1
            && self.clients.iter().all(|client| {
                let is_told = if client.is_classic {
                    client.phase == Phase::Heartbeat
                } else {
                    !client.says_all && client.said.as_ref() == Some(&client.owned)
                };
                is_told && client.owned == client.assigned && view.is_member(client)
            })
    }

    /// Where everybody is, in a line.
    pub(super) fn brief(&self, view: &View) -> String {
        let group = match view.members() {
            Some(MembersState::Consumer(group)) => {
                format!("consumer group, {}/{}", group.epoch, group.assignment_epoch)
            }
            Some(MembersState::Classic(group)) => {
                format!("{} in generation {}", group.state, group.generation)
            }
            None => "no group".to_owned(),
        };
        let clients = self.clients.iter().map(|client| {
            let places = |places: &BTreeSet<Place>| -> Vec<i32> {
                places.iter().map(|(_, partition)| *partition).collect()
            };
            let waits = match client.waits {
                Some(_) => ", waits",
                None => "",
            };
            format!(
                "{} at {}: {:?}{waits}, owns {:?} of {:?}",
                client.index,
                client.epoch,
                client.phase,
                places(&client.owned),
                places(&client.assigned),
            )
        });
        format!("{group}; {}", clients.collect::<Vec<_>>().join("; "))
    }

    /// The whole of it, for who has to find out why.
    pub(super) fn describe(&self, view: &View) -> String {
        format!("{:#?} {:#?}", view.members(), self.clients)
    }
}

const SEED: [u8; 32] = [7; 32];

fn leave_group(member_id: &str) -> Request {
    Request::LeaveGroup {
        version: 5,
        request: LeaveGroupRequest {
            group_id: GROUP.into(),
            members: vec![MemberIdentity {
                member_id: member_id.into(),
                ..MemberIdentity::default()
            }],
            ..LeaveGroupRequest::default()
        },
    }
}

/// Whether what a shard holds is what its log says. A classic group that rebalances has moved on
/// from its last record, and one that has none is not in the log.
fn is_same(live: Option<&GroupState>, loaded: Option<&GroupState>) -> bool {
    let classic = |group: Option<&GroupState>| match group.map(|group| &group.members) {
        Some(MembersState::Classic(classic)) => Some(classic.record.clone()),
        _ => None,
    };
    match (live, loaded) {
        (Some(group), Some(_)) if classic(Some(group)) == Some(None) => classic(loaded).is_some(),
        (Some(group), None) => {
            classic(Some(group)).is_some_and(|record| record.is_none_or(|record| record.is_empty()))
        }
        (live, loaded) => live == loaded,
    }
}
