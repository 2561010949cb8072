//! A shard in virtual time: requests go in, replies come out, and its log can be replayed.

#![allow(dead_code, missing_docs, unreachable_pub)]

pub mod any;
pub mod classic;

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use kohort_coordinator::*;
use kohort_wire::{Uuid, codec::*, messages::*};

/// A shard, its log, and the time.
pub struct World {
    pub shard: Shard,
    pub now: Millis,
    pub config: Arc<Config>,
    pub topics: Arc<Topics>,
    pub log: Vec<(Bytes, Option<Bytes>)>,
    pub events: Vec<String>,
    replies: HashMap<Token, Reply>,
    tokens: u64,
    restarts: u8,
}

impl World {
    pub fn new() -> World {
        World::with(Config::default())
    }

    pub fn with(config: Config) -> World {
        let config = Arc::new(config);
        let topics = Arc::new(Topics::new(1, ["a", "b", "c"].map(|name| topic(name, 4))));
        let mut world = World {
            shard: Shard::new(config.clone(), topics.clone(), [0; 32]),
            now: 1_000_000,
            config,
            topics,
            log: Vec::new(),
            events: Vec::new(),
            replies: HashMap::new(),
            tokens: 0,
            restarts: 0,
        };
        world.step(|shard, now, out| shard.loaded(now, out));
        world
    }

    fn step(&mut self, step: impl FnOnce(&mut Shard, Millis, &mut Outbox)) {
        let mut out = Outbox::default();
        step(&mut self.shard, self.now, &mut out);
        while let Some(work) = out.work.pop() {
            self.shard.done(work.run(), self.now, &mut out);
        }
        self.log.extend(
            out.records
                .iter()
                .map(|record| record.encode().expect("encodable")),
        );
        self.events
            .extend(out.events.into_iter().map(|event| event.what.to_string()));
        for (token, reply) in out.replies {
            assert!(
                self.replies.insert(token, reply).is_none(),
                "answered twice: {token:?}"
            );
        }
    }

    /// Sends a request and returns where its answer will be.
    pub fn send(&mut self, request: Request) -> Token {
        self.send_as("client", request)
    }

    pub fn send_as(&mut self, client_id: &str, request: Request) -> Token {
        let caller = Caller {
            client_id: client_id.to_owned(),
            client_host: "/127.0.0.1".to_owned(),
            connection: None,
        };
        self.send_by(caller, request)
    }

    pub fn send_over(&mut self, connection: Option<Connection>, request: Request) -> Token {
        let caller = Caller {
            client_id: "client".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
            connection,
        };
        self.send_by(caller, request)
    }

    /// Closes a connection over which no heartbeats of the consumer protocol came.
    pub fn close(&mut self, connection: Connection) {
        self.step(|shard, now, out| shard.connection_closed(connection, &[], now, out));
    }

    fn send_by(&mut self, caller: Caller, request: Request) -> Token {
        self.tokens += 1;
        let token = Token(self.tokens);
        self.step(|shard, now, out| shard.request(token, &caller, request, now, out));
        token
    }

    /// The answer, if it has come.
    pub fn take(&mut self, token: Token) -> Option<Reply> {
        self.replies.remove(&token)
    }

    /// The answer, if it has come, which stays where it is.
    pub fn peek(&self, token: Token) -> Option<&Reply> {
        self.replies.get(&token)
    }

    /// Sends a request that is answered at once.
    pub fn ask(&mut self, request: Request) -> Reply {
        let token = self.send(request);
        self.take(token).expect("answered at once")
    }

    /// Lets time pass, with every alarm at its time.
    pub fn advance(&mut self, ms: i64) {
        let until = self.now + ms;
        while let Some(at) = self.shard.next_alarm().filter(|&at| at <= until) {
            self.now = self.now.max(at);
            self.step(|shard, now, out| shard.on_alarm(now, out));
        }
        self.now = until;
    }

    pub fn set_topics(&mut self, topics: impl IntoIterator<Item = Topic>) {
        self.topics = Arc::new(Topics::new(self.topics.version() + 1, topics));
        let topics = self.topics.clone();
        self.step(|shard, now, out| shard.topics_changed(topics, now, out));
    }

    /// The coordinator dies and comes back: all that is left is its log.
    pub fn restart(&mut self) {
        self.try_restart().expect("readable records");
    }

    /// The same where the log may not be readable; the one before goes on then.
    pub fn try_restart(&mut self) -> Result<(), RecordError> {
        self.restarts = self.restarts.wrapping_add(1);
        let seed = [self.restarts; 32];
        let mut shard = Shard::new(self.config.clone(), self.topics.clone(), seed);
        for (key, value) in &self.log {
            shard.load(key.clone(), value.clone())?;
        }
        self.shard = shard;
        self.replies.clear();
        self.step(|shard, now, out| shard.loaded(now, out));
        Ok(())
    }

    pub fn has_event(&self, part: &str) -> bool {
        self.events.iter().any(|event| event.contains(part))
    }
}

/// A topic whose id is made of its name.
pub fn topic(name: &str, partition_count: i32) -> Topic {
    let id = name
        .bytes()
        .fold(1u128, |id, byte| id * 256 + u128::from(byte));
    Topic {
        id: Uuid(id),
        name: name.into(),
        partition_count,
        is_internal: false,
        created_at: 0,
    }
}

/// The bytes of a consumer's subscription.
pub fn subscription(topics: &[&str]) -> Bytes {
    let subscription = ConsumerProtocolSubscription {
        topics: topics.iter().map(|&topic| topic.into()).collect(),
        user_data: None,
        ..ConsumerProtocolSubscription::default()
    };
    let mut out = Encoder::new();
    out.buffer().extend_from_slice(&1i16.to_be_bytes());
    subscription.encode(&mut out, 1).expect("encodable");
    out.finish().into_bytes()
}

/// What a partition's commit is answered with.
pub fn commit_request(group: &str, member: &str, generation: i32) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: group.into(),
        member_id: member.into(),
        generation_id_or_member_epoch: generation,
        ..OffsetCommitRequest::default()
    }
}

pub fn commit_partition(partition_index: i32, offset: i64) -> OffsetCommitRequestPartition {
    OffsetCommitRequestPartition {
        partition_index,
        committed_offset: offset,
        ..OffsetCommitRequestPartition::default()
    }
}

impl World {
    /// Commits offsets of topic `a`, partitions from 0 on.
    pub fn commit(
        &mut self,
        group: &str,
        member: &str,
        generation: i32,
        offsets: &[i64],
    ) -> Vec<kohort_wire::ErrorCode> {
        let partitions = offsets
            .iter()
            .enumerate()
            .map(|(index, &offset)| commit_partition(index as i32, offset));
        let request = OffsetCommitRequest {
            topics: vec![OffsetCommitRequestTopic {
                name: "a".into(),
                partitions: partitions.collect(),
                ..OffsetCommitRequestTopic::default()
            }],
            ..commit_request(group, member, generation)
        };
        self.commit_as(9, request)
    }

    pub fn commit_as(
        &mut self,
        version: i16,
        request: OffsetCommitRequest,
    ) -> Vec<kohort_wire::ErrorCode> {
        match self.ask(Request::OffsetCommit { version, request }) {
            Reply::OffsetCommit(response) => {
                let topics = response.topics.iter();
                topics
                    .flat_map(|topic| topic.partitions.iter().map(|p| p.error_code))
                    .collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// The committed offsets of the four partitions of topic `a`.
    pub fn committed(&mut self, group: &str) -> Vec<i64> {
        let request = OffsetFetchRequestGroup {
            group_id: group.into(),
            topics: Some(vec![OffsetFetchRequestTopics {
                name: "a".into(),
                partition_indexes: vec![0, 1, 2, 3],
                ..OffsetFetchRequestTopics::default()
            }]),
            ..OffsetFetchRequestGroup::default()
        };
        match self.ask(Request::OffsetFetch {
            request,
            require_stable: false,
        }) {
            Reply::OffsetFetch(response) => response.topics[0]
                .partitions
                .iter()
                .map(|p| p.committed_offset)
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    /// The ids of all groups.
    pub fn groups(&mut self) -> Vec<String> {
        match self.ask(Request::ListGroups {
            request: ListGroupsRequest::default(),
        }) {
            Reply::ListGroups(response) => {
                let mut ids: Vec<_> = response
                    .groups
                    .iter()
                    .map(|group| group.group_id.to_string())
                    .collect();
                ids.sort();
                ids
            }
            other => panic!("{other:?}"),
        }
    }

    pub fn delete_group(&mut self, group: &str) -> kohort_wire::ErrorCode {
        match self.ask(Request::DeleteGroups {
            groups: vec![group.into()],
        }) {
            Reply::DeleteGroups(results) => results[0].error_code,
            other => panic!("{other:?}"),
        }
    }

    pub fn describe(&mut self, group: &str) -> DescribedGroup {
        match self.ask(Request::DescribeGroups {
            version: 6,
            groups: vec![group.into()],
        }) {
            Reply::DescribeGroups(mut described) => described.remove(0),
            other => panic!("{other:?}"),
        }
    }
}
