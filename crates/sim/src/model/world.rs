//! The small worlds.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use kohort_group::coordinator::{
    Caller, Config, Id, MigrationPolicy, Outbox, Reply, Request, Shard, Token, Topic, Topics,
    inspect::{MembersState, Place},
};
use kohort_wire::messages::{LeaveGroupRequest, MemberIdentity};

use super::{
    canonical::fingerprint,
    client::{Client, GROUP, TOPIC, TOPIC_ID},
};

/// How large a world is, and what may happen in it.
#[derive(Debug, Clone)]
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
    /// Whether answers may be lost.
    pub losses: bool,
    /// Whether members may leave, and be put out.
    pub departures: bool,
}

/// Something that may happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A member's request and its answer.
    Beat(usize),
    /// A member's request, whose answer is lost.
    Lose(usize),
    /// A member's request, which arrives twice; the second answer finds nobody.
    Twice(usize),
    /// A member has let go of what it has to.
    Settle(usize),
    /// A member lets go of everything and leaves.
    Leave(usize),
    /// A static member is started again, after it has said so.
    Restart(usize),
    /// The coordinator puts a member out; it does not know.
    Fence(usize),
    /// The coordinator is lost.
    Crash,
    /// A member's request is decided and written, and the coordinator lost before it answers.
    CrashAfter(usize),
}

pub(super) struct World {
    small: Small,
    config: Arc<Config>,
    topics: Arc<Topics>,
    shard: Shard,
    /// With parts in common: worlds are copied often.
    log: Vec<Arc<(Bytes, Option<Bytes>)>>,
    clients: Vec<Client>,
    now: i64,
}

const START: i64 = 1_000_000;

/// How many rounds of heartbeats the members have to come to rest.
const ROUNDS_MAX: usize = 12;

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
        World {
            shard: Shard::new(config.clone(), topics.clone(), [7; 32]),
            small: small.clone(),
            config,
            topics,
            log: Vec::new(),
            clients: consumers.chain(classics).collect(),
            now: START,
        }
    }

    pub(super) fn fork(&self) -> World {
        World {
            small: self.small.clone(),
            config: self.config.clone(),
            topics: self.topics.clone(),
            shard: self.shard.fork([7; 32]),
            log: self.log.clone(),
            clients: self.clients.clone(),
            now: self.now,
        }
    }

    pub(super) fn fingerprint(&self) -> u128 {
        fingerprint(
            &self.shard.durable(),
            &self.shard.soft(self.now),
            &self.clients,
        )
    }

    /// All that may happen next.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (index, client) in self.clients.iter().enumerate() {
            steps.push(Step::Beat(index));
            if client.owned != client.assigned {
                steps.push(Step::Settle(index));
            }
            if self.small.losses {
                steps.push(Step::Lose(index));
                steps.push(Step::Twice(index));
            }
            if self.small.departures && client.epoch > 0 {
                if self.is_member(client) {
                    steps.push(Step::Fence(index));
                }
                steps.push(Step::Leave(index));
            }
            if client.is_static && client.epoch > 0 {
                steps.push(Step::Restart(index));
            }
            if self.small.crashes && self.small.losses {
                steps.push(Step::CrashAfter(index));
            }
        }
        if self.small.crashes {
            steps.push(Step::Crash);
        }
        steps
    }

    pub(super) fn take(&mut self, step: Step) {
        match step {
            Step::Beat(index) => self.beat(index),
            Step::Lose(index) => {
                let request = self.clients[index].request();
                self.ask(request);
                self.clients[index].take(None);
            }
            Step::Twice(index) => {
                let request = self.clients[index].request();
                let reply = self.ask(request.clone());
                self.ask(request);
                self.clients[index].take(reply.as_ref());
            }
            Step::Settle(index) => self.clients[index].settle(),
            Step::Leave(index) => {
                self.clients[index].owned.clear();
                let request = match self.clients[index].is_classic {
                    true => self.leave_group(&self.clients[index].id()),
                    false => self.clients[index].leave(-1),
                };
                self.ask(request);
                self.clients[index].forget();
            }
            Step::Restart(index) => {
                self.clients[index].owned.clear();
                let request = self.clients[index].leave(-2);
                self.ask(request);
                self.clients[index].restart();
            }
            Step::Fence(index) => {
                let request = self.leave_group(&self.clients[index].id());
                self.ask(request);
            }
            Step::Crash => self.crash(),
            Step::CrashAfter(index) => {
                let request = self.clients[index].request();
                self.ask(request);
                self.clients[index].take(None);
                self.crash();
            }
        }
    }

    fn leave_group(&self, member_id: &str) -> Request {
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

    fn beat(&mut self, index: usize) {
        let request = self.clients[index].request();
        let reply = self.ask(request);
        // A join that waits is given up, and tried again.
        self.clients[index].take(reply.as_ref());
    }

    fn ask(&mut self, request: Request) -> Option<Reply> {
        let mut out = Outbox::default();
        let token = Token(1);
        self.shard
            .request(token, &Caller::default(), request, self.now, &mut out);
        self.written(out).into_iter().next_back()
    }

    /// Takes what a step has left; gives the answers.
    fn written(&mut self, mut out: Outbox) -> Vec<Reply> {
        while let Some(work) = out.work.pop() {
            self.shard.done(work.run(), self.now, &mut out);
        }
        for record in &out.records {
            if let Ok(written) = record.encode() {
                self.log.push(Arc::new(written));
            }
        }
        out.replies.into_iter().map(|(_, reply)| reply).collect()
    }

    fn loaded(&self) -> Result<Shard, String> {
        let mut shard = Shard::new(self.config.clone(), self.topics.clone(), [7; 32]);
        for record in &self.log {
            let (key, value) = &**record;
            shard
                .load(key.clone(), value.clone())
                .map_err(|error| error.to_string())?;
        }
        Ok(shard)
    }

    fn crash(&mut self) {
        if let Ok(mut shard) = self.loaded() {
            // Ids are not given out twice.
            shard.skip_member_ids(self.log.len() as u64);
            self.shard = shard;
        }
        let mut out = Outbox::default();
        self.shard.loaded(self.now, &mut out);
        self.written(out);
    }

    fn is_member(&self, client: &Client) -> bool {
        let durable = self.shard.durable();
        let id = client.id();
        durable
            .get(GROUP)
            .is_some_and(|group| match &group.members {
                MembersState::Consumer(group) => {
                    let member = group.members.get(&*id);
                    member.is_some_and(|member| !client.is_classic || member.epoch == client.epoch)
                }
                MembersState::Classic(group) => {
                    group.members.contains_key(&*id) && group.generation == client.epoch
                }
            })
    }

    /// What must be so in every state.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut owners: BTreeMap<Place, usize> = BTreeMap::new();
        for client in self.clients.iter().filter(|client| self.is_member(client)) {
            for place in &client.owned {
                if let Some(other) = owners.insert(*place, client.index) {
                    return Err(format!(
                        "partition {} is with members {other} and {}",
                        place.1, client.index
                    ));
                }
            }
        }
        let durable = self.shard.durable();
        if let Some(group) = durable.get(GROUP)
            && let MembersState::Consumer(group) = &group.members
        {
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
            let loaded = self.loaded()?.durable();
            if loaded.get(GROUP) != durable.get(GROUP) {
                return Err("a shard loaded from the log holds something else".to_owned());
            }
        }
        Ok(())
    }

    /// From here on nothing goes wrong: everybody comes to rest, with everything shared out.
    pub(super) fn comes_to_rest(mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            for index in 0..self.clients.len() {
                self.clients[index].settle();
                self.beat(index);
                self.check()?;
            }
            let mut out = Outbox::default();
            self.now += 5_000;
            self.shard.on_alarm(self.now, &mut out);
            self.written(out);
            if self.rests() {
                return Ok(());
            }
        }
        Err(format!(
            "after {ROUNDS_MAX} rounds of heartbeats: {:#?} {:#?}",
            self.shard.durable().get(GROUP).map(|group| &group.members),
            self.clients
        ))
    }

    fn rests(&self) -> bool {
        let owned: Vec<Place> = self
            .clients
            .iter()
            .flat_map(|client| client.owned.iter().copied())
            .collect();
        let durable = self.shard.durable();
        let Some(MembersState::Consumer(group)) = durable.get(GROUP).map(|group| &group.members)
        else {
            return false;
        };
        let counts = self.clients.iter().map(|client| client.owned.len());
        let spread = counts.clone().max().unwrap_or(0) - counts.min().unwrap_or(0);
        owned.len() == self.small.partitions as usize
            && spread <= 1
            && group.members.len() == self.clients.len()
            && group.epoch == group.assignment_epoch
            && group
                .members
                .values()
                .all(|member| member.state == 0 && member.epoch == group.epoch)
            && self
                .clients
                .iter()
                .all(|client| client.owned == client.assigned)
    }
}
