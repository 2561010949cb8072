//! The shell of the coordinator's shard, on a log that is only in memory and a disk that fails.
//!
//! It works as the broker's does: takes what has queued up, lets the shard decide, appends all
//! records as one batch, and answers once that is durable. While it appends it takes nothing.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use kohort_coordinator::{
    Caller, Config, Connection, Outbox, RecordError, Reply, Request, Shard, Token, Topics, Work,
    WorkDone, inspect::GroupState,
};
use kohort_group::Id;
use kohort_member::Millis;

use crate::{
    node::{CallId, ConnectionId, NodeId},
    random::Random,
};

/// The durable state of all groups.
pub(crate) type Durable = BTreeMap<Id, GroupState>;

/// A record as it is written.
pub(crate) type Written = (Bytes, Option<Bytes>);

/// Where a request came from, and its answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Node {
        node: NodeId,
        life: u64,
        connection: ConnectionId,
        call: CallId,
        /// It came late, from a connection that the node had given up.
        is_ghost: bool,
    },
    /// From the broker itself, or somebody whose answer does not matter.
    Broker,
    /// From an administrator who asks for a rewind.
    Administrator { number: u64 },
    /// From somebody who has no business there, and must be refused.
    Stranger,
}

/// What waits for the shard.
#[derive(Debug)]
pub(crate) enum Input {
    Request(Origin, Box<Request>),
    Done(WorkDone),
    News,
    /// A connection has closed.
    Closed(ConnectionId),
}

/// What becomes of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Durable,
    /// It fails, and whether the batch is in the log all the same is seen when it is read.
    Fails {
        is_written: bool,
    },
}

/// A shard that does nothing but load records, and its durable state.
///
/// Most steps of a run write nothing. The state is computed only after records have been loaded.
pub(crate) struct Follower {
    shard: Shard,
    durable: OnceCell<Durable>,
    /// How many records it has loaded.
    loaded: u64,
}

impl Follower {
    pub(crate) fn new(shard: Shard) -> Follower {
        Follower {
            shard,
            durable: OnceCell::new(),
            loaded: 0,
        }
    }

    pub(crate) fn load(&mut self, key: Bytes, value: Option<Bytes>) -> Result<(), RecordError> {
        self.durable.take();
        self.loaded += 1;
        self.shard.load(key, value)
    }

    pub(crate) fn durable(&self) -> &Durable {
        self.durable.get_or_init(|| self.shard.durable())
    }

    /// How many records it has loaded: if it has loaded no more since, its state is the same.
    pub(crate) fn version(&self) -> u64 {
        self.loaded
    }

    pub(crate) fn fork(&self, seed: [u8; 32]) -> Shard {
        self.shard.fork(seed)
    }
}

/// The coordinator.
pub(crate) struct Coordinator {
    /// `None` while there is none.
    pub(crate) shard: Option<Shard>,
    /// Whether the process is there; if not, connections are refused.
    pub(crate) is_running: bool,
    /// Grows whenever a shard is lost: what was meant for an earlier one is dropped.
    pub(crate) life: u64,
    pub(crate) log: Vec<Vec<Written>>,
    /// What the shard has decided and not written yet.
    pub(crate) out: Outbox,
    /// How many of its records have been looked at.
    pub(crate) seen: usize,
    pub(crate) appending: Option<Fate>,
    pub(crate) inputs: VecDeque<Input>,
    pub(crate) tokens: BTreeMap<Token, Origin>,
    pub(crate) next_token: u64,
    /// By how much its clock differs.
    pub(crate) skew_ms: Millis,
    pub(crate) config: Arc<Config>,
    /// The durable state of the shard, as it is.
    pub(crate) live: Durable,
    /// Has loaded all that was decided.
    pub(crate) mirror: Follower,
    /// Has loaded all that is durable.
    pub(crate) standby: Follower,
    pub(crate) works: BTreeMap<u64, Work>,
    /// Which members have sent heartbeats over each connection.
    pub(crate) heard: BTreeMap<ConnectionId, BTreeSet<(Id, Id)>>,
    /// The topics as the shard knows them.
    pub(crate) view: Arc<Topics>,
}

impl Coordinator {
    pub(crate) fn new(config: Config, topics: Arc<Topics>, random: &mut Random) -> Coordinator {
        let config = Arc::new(config);
        let shard = |seed| Shard::new(config.clone(), topics.clone(), seed);
        Coordinator {
            shard: Some(shard(random.seed())),
            is_running: true,
            life: 0,
            log: Vec::new(),
            out: Outbox::default(),
            seen: 0,
            appending: None,
            inputs: VecDeque::new(),
            tokens: BTreeMap::new(),
            next_token: 0,
            skew_ms: 0,
            live: Durable::new(),
            mirror: Follower::new(shard([0; 32])),
            standby: Follower::new(shard([0; 32])),
            works: BTreeMap::new(),
            heard: BTreeMap::new(),
            view: topics.clone(),
            config,
        }
    }

    /// What its clock shows.
    pub(crate) fn clock(&self, now: Millis) -> Millis {
        now + self.skew_ms
    }

    /// When it has to be looked at, if nothing happens before.
    pub(crate) fn next_alarm(&self) -> Option<Millis> {
        if self.appending.is_some() {
            return None;
        }
        let at = self.shard.as_ref()?.next_alarm()?;
        Some(at - self.skew_ms)
    }

    /// The shard as its log has it.
    pub(crate) fn replay(&self, topics: Arc<Topics>, seed: [u8; 32]) -> Result<Shard, String> {
        let mut shard = Shard::new(self.config.clone(), topics, seed);
        for (key, value) in self.log.iter().flatten() {
            shard
                .load(key.clone(), value.clone())
                .map_err(|error| format!("the log cannot be loaded: {error}"))?;
        }
        Ok(shard)
    }

    /// Compacts the log: of each key the last record stays, with or without tombstones.
    pub(crate) fn compact(&mut self, keeps_tombstones: bool) {
        let records: Vec<Written> = std::mem::take(&mut self.log)
            .into_iter()
            .flatten()
            .collect();
        let mut last = BTreeMap::new();
        for (index, (key, _)) in records.iter().enumerate() {
            last.insert(key.clone(), index);
        }
        let kept = records.into_iter().enumerate().filter(|(index, record)| {
            last[&record.0] == *index && (keeps_tombstones || record.1.is_some())
        });
        self.log = vec![kept.map(|(_, record)| record).collect()];
    }

    pub(crate) fn ask(&mut self, origin: Origin, request: Request, now: Millis) -> Token {
        self.next_token += 1;
        let token = Token(self.next_token);
        let now = self.clock(now);
        if let Some(shard) = &mut self.shard {
            self.tokens.insert(token, origin);
            if let (
                Origin::Node {
                    connection,
                    is_ghost: false,
                    ..
                },
                Request::ConsumerGroupHeartbeat { request, .. },
            ) = (origin, &request)
            {
                let member = (Id::from(&*request.group_id), Id::from(&*request.member_id));
                self.heard.entry(connection).or_default().insert(member);
            }
            let caller = match origin {
                Origin::Node {
                    node,
                    life,
                    connection,
                    ..
                } => Caller {
                    client_id: format!("node-{node}"),
                    client_host: format!("/10.0.{node}.{life}"),
                    connection: Some(Connection(connection)),
                },
                Origin::Broker | Origin::Stranger | Origin::Administrator { .. } => {
                    Caller::default()
                }
            };
            shard.request(token, &caller, request, now, &mut self.out);
        }
        token
    }

    /// The answer to what was just asked, if the shard has one.
    pub(crate) fn answer(&self, token: Token) -> Option<&Reply> {
        let mut replies = self.out.replies.iter().rev();
        replies
            .find(|(other, _)| *other == token)
            .map(|(_, reply)| reply)
    }
}
