//! A node: a process with a member of a group, and the application that it serves.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kohort_coordinator::{Request, inspect::Place};
use kohort_group::{
    Id,
    assignor::classic::{ConsumerPartitionAssignor, CooperativeSticky, PartitionCounts, Range},
};
use kohort_member::{
    ClassicConfig, ClassicMember, ConsumerMember, ConsumerMemberConfig, Member, Millis, RequestId,
    StepId, Subscription,
    reader::{HandleId, OffsetReset, Reader, ReaderConfig},
};
use kohort_wire::{ByteString, Uuid};

use crate::{
    fetches::FetchSession,
    profile::{Commits, Kind},
};

/// A partition by the name of its topic: what applications speak of.
pub(crate) type Key = (ByteString, i32);

pub(crate) type NodeId = usize;
pub(crate) type CallId = u64;
pub(crate) type ConnectionId = u64;

/// What stays the same when a node is started again.
#[derive(Debug, Clone)]
pub(crate) struct Role {
    pub(crate) group: Id,
    pub(crate) kind: Kind,
    pub(crate) instance_id: Option<ByteString>,
    pub(crate) commits: Commits,
    /// Whether it commits and fetches offsets by topic id, as clients do since version 10.
    pub(crate) by_id: bool,
    pub(crate) subscription: Subscription,
    pub(crate) session_timeout_ms: i32,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) heartbeat_interval_ms: i32,
    /// For a roll from the eager to the cooperative protocol: both assignors.
    pub(crate) both_assignors: bool,
}

/// A process with a member of a group.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) role: Role,
    /// Grows whenever the process is started again: what was meant for an earlier one is dropped.
    pub(crate) life: u64,
    pub(crate) is_alive: bool,
    pub(crate) is_leaving: bool,
    pub(crate) has_failed: bool,
    pub(crate) member: Member,
    /// The id of a member of the consumer protocol, which it makes itself.
    pub(crate) own_id: ByteString,
    pub(crate) clock: Clock,
    pub(crate) paused_until: Millis,
    /// The application does not ask for records.
    pub(crate) away_until: Millis,
    /// The application does not let go of partitions.
    pub(crate) stuck_until: Millis,
    pub(crate) connection: Connection,
    pub(crate) calls: BTreeMap<CallId, Call>,
    pub(crate) partitions: BTreeMap<Key, Held>,
    pub(crate) reader: Reader,
    pub(crate) handle: HandleId,
    pub(crate) session: FetchSession,
    /// The records that the application was given and has not finished.
    pub(crate) in_hand: Vec<InHand>,
    /// A revocation that waits for the application to finish its records.
    pub(crate) revocation: Option<(StepId, Vec<Key>)>,
    /// The commits that the coordinator has acknowledged.
    pub(crate) acknowledged: BTreeSet<(Key, i64)>,
    /// As the leader: how many partitions there were when they were last assigned.
    pub(crate) counted: Option<(Vec<ByteString>, PartitionCounts)>,
    /// What it was last told to own, as a member of the consumer protocol.
    pub(crate) told: BTreeSet<Place>,
    /// What the coordinator has last been told that it subscribes to.
    pub(crate) told_subscription: Subscription,
    /// As a classic member: the last generation into which the coordinator has taken it.
    pub(crate) admitted: i32,
    /// As a classic member: when the coordinator last gave it an assignment, by its clock.
    pub(crate) synced_at: Millis,
    /// When it will be started again.
    pub(crate) starts_at: Option<Millis>,
    pub(crate) last_auto_commit: Millis,
    pub(crate) requests: u64,
}

/// A partition that an application has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    /// The topic that it was given.
    pub(crate) topic_id: Uuid,
    /// The topic that it reads: for a classic member another one, when there is another of the name.
    pub(crate) reads: Uuid,
    /// Whether its reader knows which topic it reads.
    pub(crate) is_known: bool,
    /// Whether the topic was created anew while it was read.
    pub(crate) is_replacement: bool,
    /// How often the partition had been rewound when it was begun.
    pub(crate) era: u64,
    /// Set if nothing is committed, until its client says where to begin.
    pub(crate) begin: Option<Begin>,
    /// The highest offset whose commit has succeeded.
    pub(crate) reported: i64,
    /// Being let go of: nothing more is processed.
    pub(crate) is_revoking: bool,
    /// The coordinator has been told, by a request that came late from a connection that had been
    /// given up, that this is not owned: it cannot know better.
    pub(crate) is_disowned: bool,
}

impl Held {
    pub(crate) fn new(topic_id: Uuid) -> Held {
        Held {
            topic_id,
            reads: topic_id,
            ..Held::default()
        }
    }
}

/// A record that an application was given and has not finished.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InHand {
    pub(crate) place: Place,
    pub(crate) era: u64,
    pub(crate) offset: i64,
}

/// What a node has asked, and not been answered yet.
#[derive(Debug)]
pub(crate) enum Call {
    Member(RequestId),
    Offsets(Vec<Begin>),
    Commit(Commit),
}

/// A partition of which it is asked where to begin.
#[derive(Debug, Clone)]
pub(crate) struct Begin {
    pub(crate) key: Key,
    pub(crate) assignment: Option<u64>,
    pub(crate) lease: u64,
    /// How often it had been rewound when the coordinator answered.
    pub(crate) era: u64,
    /// Whether something was committed then.
    pub(crate) is_committed: bool,
}

/// An offset to be committed.
#[derive(Debug, Clone)]
pub(crate) struct Offset {
    pub(crate) key: Key,
    /// The topic that it was read from.
    pub(crate) topic_id: Uuid,
    pub(crate) offset: i64,
    pub(crate) era: u64,
}

/// A commit under way.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) commit: kohort_member::reader::Commit,
    /// What it is about.
    pub(crate) asked: Vec<(Key, i64)>,
    /// Which topic each of these partitions was of.
    pub(crate) reads: BTreeMap<Key, Uuid>,
    /// In which era each partition was begun.
    pub(crate) eras: BTreeMap<Key, u64>,
    /// What was last sent.
    pub(crate) offsets: Vec<Offset>,
    /// The revocation that waits for it.
    pub(crate) revocation: Option<(StepId, Vec<Key>)>,
    pub(crate) tries: u32,
}

/// The way to the coordinator. What is sent over one arrives in order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) last_request_at: Millis,
    pub(crate) last_answer_at: Millis,
}

/// A clock that runs a little fast or slow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    pub(crate) since: Millis,
    pub(crate) permille: i64,
}

impl Clock {
    /// What it shows.
    pub(crate) fn read(&self, now: Millis) -> Millis {
        self.since + (now - self.since) * self.permille / 1000
    }

    /// When it will show a time.
    pub(crate) fn when(&self, shown: Millis) -> Millis {
        let after = (shown - self.since).max(0);
        self.since + (after * 1000 + self.permille - 1) / self.permille
    }
}

impl Role {
    pub(crate) fn member(&self, own_id: &ByteString) -> Member {
        let group_id = ByteString::from(&*self.group);
        match self.kind {
            Kind::Consumer => {
                Member::Consumer(Box::new(ConsumerMember::new(ConsumerMemberConfig {
                    group_id,
                    member_id: own_id.clone(),
                    instance_id: self.instance_id.clone(),
                    rack_id: None,
                    rebalance_timeout_ms: self.rebalance_timeout_ms,
                    server_assignor: None,
                    session_timeout_ms: 45_000,
                })))
            }
            Kind::Eager | Kind::Cooperative => {
                let range = || Box::<Range>::default() as Box<dyn ConsumerPartitionAssignor>;
                let sticky = || Box::<CooperativeSticky>::default();
                let config = ClassicConfig {
                    group_id,
                    instance_id: self.instance_id.clone(),
                    rack_id: None,
                    session_timeout_ms: self.session_timeout_ms,
                    rebalance_timeout_ms: self.rebalance_timeout_ms,
                    heartbeat_interval_ms: self.heartbeat_interval_ms,
                    assignors: match (self.kind, self.both_assignors) {
                        (Kind::Cooperative, false) => vec![sticky()],
                        (_, true) => vec![sticky(), range()],
                        _ => vec![range()],
                    },
                };
                let member = ClassicMember::new(config).expect("the assignors fit together");
                Member::Classic(Box::new(member))
            }
        }
    }
}

/// The reader of a process that has just started.
pub(crate) fn reader(resets_to_latest: bool) -> Reader {
    let mut reader = Reader::new(ReaderConfig {
        has_group: true,
        committed_only: true,
        offset_reset: match resets_to_latest {
            true => OffsetReset::Latest,
            false => OffsetReset::Earliest,
        },
        rack: ByteString::new(),
        fetch_bytes_min: 1,
        fetch_wait_max: Duration::from_millis(500),
        fetch_bytes_max: 1 << 20,
        partition_fetch_bytes_max: 1 << 20,
        prefetch_bytes_max: 1 << 20,
        metadata_max_age: Duration::from_secs(300),
        backoff: Box::new(|_| Duration::from_millis(100)),
    });
    reader.set_subscribed(true);
    reader
}

impl Node {
    /// Whether the process is there and can do something.
    pub(crate) fn is_up(&self) -> bool {
        self.is_alive && !self.has_failed
    }

    /// Under which id the coordinator knows it.
    pub(crate) fn member_id(&self) -> Option<ByteString> {
        match &self.member {
            Member::Consumer(_) => Some(self.own_id.clone()),
            Member::Classic(_) => self.member.identity().map(|identity| identity.member_id),
        }
    }

    /// Whether it subscribes to a topic.
    pub(crate) fn subscribes_to(&self, topic: &str) -> bool {
        names(&self.role.subscription, topic)
    }

    /// Whether the coordinator has been told that it subscribes to a topic.
    pub(crate) fn has_told_of(&self, topic: &str) -> bool {
        names(&self.told_subscription, topic)
    }

    pub(crate) fn name(&self, id: NodeId) -> String {
        let kind = match self.role.kind {
            Kind::Consumer => "consumer",
            Kind::Eager => "eager",
            Kind::Cooperative => "cooperative",
        };
        let instance = self.role.instance_id.as_deref().unwrap_or("-");
        format!("node {id}.{} ({kind}, {instance})", self.life)
    }
}

/// Whether a subscription contains a topic, by name or by one of the expressions that there are
/// (`adversary.rs`).
fn names(subscription: &Subscription, topic: &str) -> bool {
    subscription.topics.iter().any(|own| **own == *topic)
        || match subscription.regex.as_deref() {
            None => false,
            Some("t.*") => true,
            Some("ta|tb") => topic != "tc",
            Some(_) => topic != "ta",
        }
}

/// The group that a request concerns.
pub(crate) fn group_of(request: &Request) -> Option<&str> {
    Some(match request {
        Request::JoinGroup { request, .. } => &request.group_id,
        Request::SyncGroup { request, .. } => &request.group_id,
        Request::Heartbeat { request } => &request.group_id,
        Request::LeaveGroup { request, .. } => &request.group_id,
        Request::ConsumerGroupHeartbeat { request, .. } => &request.group_id,
        Request::OffsetCommit { request, .. } => &request.group_id,
        Request::OffsetFetch { request, .. } => &request.group_id,
        Request::OffsetDelete { request } => &request.group_id,
        _ => return None,
    })
}
