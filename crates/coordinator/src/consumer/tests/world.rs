//! A shard, its log, its clock and its topics.

use std::{collections::BTreeMap, sync::Arc};

use kohort_group::{TopicPartitions, history::Event};
use kohort_wire::{Uuid, messages::*};

use super::client::Client;

use crate::{
    Caller, Config, Connection, Id, LogStarts, Millis, Outbox, Record, Reply, Request, Shard,
    Token, Topic, Topics, Work,
    consumer::{
        group::Resolved,
        member::{Current, Profile},
    },
    starts::Seen,
};

/// Where it all starts.
const START: Millis = 1_700_000_000_000;

/// A shard with the log that it writes, a clock and topics.
pub(crate) struct World {
    pub(crate) shard: Shard,
    pub(crate) now: Millis,
    pub(crate) log: Vec<Record>,
    pub(crate) events: Vec<Event>,
    pub(crate) work: Vec<Work>,
    pub(crate) config: Config,
    /// Over which connection requests come.
    pub(crate) connection: Option<Connection>,
    /// Where all logs start.
    pub(crate) log_start: i64,
    /// Whether work is done at once.
    pub(crate) works: bool,
    replies: BTreeMap<Token, Reply>,
    topics: BTreeMap<String, Topic>,
    version: i64,
    sequence: u64,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> World {
        let mut config = Config::default();
        change(&mut config);
        let shard = Shard::new(Arc::new(config.clone()), Arc::default(), [7; 32]);
        World {
            shard,
            now: START,
            log: Vec::new(),
            events: Vec::new(),
            work: Vec::new(),
            config,
            connection: None,
            log_start: 0,
            works: true,
            replies: BTreeMap::new(),
            topics: BTreeMap::new(),
            version: 0,
            sequence: 0,
        }
    }

    /// Makes a topic, a larger one, or another of the same name.
    pub(crate) fn topic(&mut self, name: &str, partition_count: i32) -> Uuid {
        self.sequence += 1;
        let new_id = Uuid(u128::from(self.sequence) << 64 | 0xbeef);
        let (id, created_at) = match self.topics.get(name) {
            Some(topic) => (topic.id, topic.created_at),
            None => (new_id, self.now),
        };
        let topic = Topic {
            id,
            name: name.into(),
            partition_count,
            is_internal: name.starts_with("__"),
            created_at,
        };
        self.topics.insert(name.to_owned(), topic);
        self.topics_changed();
        id
    }

    pub(crate) fn delete_topic(&mut self, name: &str) {
        self.topics.remove(name);
        self.topics_changed();
    }

    fn topics_changed(&mut self) {
        self.version += 1;
        let topics = Arc::new(self.topics().after(&self.shard.topics));
        let mut out = Outbox::default();
        self.shard.topics_changed(topics, self.now, &mut out);
        self.take(out);
    }

    fn topics(&self) -> Topics {
        let log_starts = Arc::new(LogStart(self.log_start));
        Topics::new(self.version, self.topics.values().cloned()).with_log_starts(log_starts)
    }

    /// Sends a request. Its answer may take a while.
    pub(crate) fn send(&mut self, request: Request) -> Token {
        let caller = Caller {
            client_id: "client".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
            connection: self.connection,
        };
        self.sequence += 1;
        let token = Token(self.sequence);
        let mut out = Outbox::default();
        self.shard
            .request(token, &caller, request, self.now, &mut out);
        self.take(out);
        token
    }

    /// The answer, if it has come.
    pub(crate) fn reply(&mut self, token: Token) -> Option<Reply> {
        self.replies.remove(&token)
    }

    pub(crate) fn put_back(&mut self, token: Token, reply: Reply) {
        self.replies.insert(token, reply);
    }

    pub(crate) fn request(&mut self, request: Request) -> Option<Reply> {
        let token = self.send(request);
        self.reply(token)
    }

    pub(crate) fn heartbeat(
        &mut self,
        version: i16,
        request: ConsumerGroupHeartbeatRequest,
    ) -> ConsumerGroupHeartbeatResponse {
        match self.request(Request::ConsumerGroupHeartbeat { version, request }) {
            Some(Reply::ConsumerGroupHeartbeat(response)) => response,
            other => panic!("no heartbeat response: {other:?}"),
        }
    }

    /// Does something else with the shard.
    pub(crate) fn step(&mut self, step: impl FnOnce(&mut Shard, Millis, &mut Outbox)) {
        let mut out = Outbox::default();
        step(&mut self.shard, self.now, &mut out);
        self.take(out);
    }

    fn take(&mut self, out: Outbox) {
        self.log.extend(out.records);
        self.replies.extend(out.replies);
        self.events.extend(out.events);
        self.work.extend(out.work);
        if self.works {
            self.do_work();
        }
    }

    /// Does the work that has been left undone.
    pub(crate) fn do_work(&mut self) {
        for work in std::mem::take(&mut self.work) {
            let mut out = Outbox::default();
            self.shard.done(work.run(), self.now, &mut out);
            self.take(out);
        }
    }

    /// Lets time pass. Whatever is due happens when it is due.
    pub(crate) fn wait(&mut self, ms: Millis) {
        let end = self.now + ms;
        while let Some(at) = self.shard.next_alarm().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            let mut out = Outbox::default();
            self.shard.on_alarm(self.now, &mut out);
            self.take(out);
        }
        self.now = end;
    }

    /// The shard as another coordinator would load it.
    pub(crate) fn loaded(&self, log: &[Record]) -> Shard {
        let topics = Arc::new(self.topics());
        let mut shard = Shard::new(Arc::new(self.config.clone()), topics, self.seed());
        for record in log {
            let (key, value) = record.encode().expect("a record can be encoded");
            shard
                .load(key, value)
                .expect("what was written can be read");
        }
        shard
    }

    /// No two shards may give out the same member ids.
    fn seed(&self) -> [u8; 32] {
        let mut seed = [8; 32];
        seed[..8].copy_from_slice(&self.sequence.to_le_bytes());
        seed
    }

    /// Another coordinator takes over.
    pub(crate) fn restart(&mut self) {
        self.sequence += 1;
        let mut shard = self.loaded(&self.log);
        let mut out = Outbox::default();
        shard.loaded(self.now, &mut out);
        self.shard = shard;
        self.work.clear();
        self.take(out);
    }

    /// What must hold at any time: a shard that is loaded from the log is the one that wrote it, and
    /// no partition has two owners.
    pub(crate) fn check(&self) {
        let live = snapshot(&self.shard);
        assert_eq!(
            live,
            snapshot(&self.loaded(&self.log)),
            "as loaded from the log"
        );
        assert_eq!(
            live,
            snapshot(&self.loaded(&compacted(&self.log))),
            "as loaded when compacted"
        );
        for group in live.values() {
            let mut owned = TopicPartitions::new();
            for (profile, current) in group.members.values() {
                for part in [current.assigned.all(), current.revoking.all()] {
                    assert!(owned.is_disjoint(part), "owned twice: {part:?} {profile:?}");
                    owned = owned.union(part);
                }
            }
        }
    }

    pub(crate) fn group(&self, group_id: &str) -> &crate::consumer::ConsumerGroup {
        self.shard
            .consumer_group(group_id)
            .expect("a consumer group")
    }

    pub(crate) fn is_member(&self, group_id: &str, member_id: &str) -> bool {
        let group = self.shard.consumer_group(group_id);
        group.is_some_and(|group| group.member(member_id).is_some())
    }

    pub(crate) fn state(&self, group_id: &str) -> &'static str {
        self.group(group_id).state_name()
    }

    /// Lets all members heartbeat, interval by interval, until each has its target.
    pub(crate) fn settle(&mut self, members: &mut [&mut Client]) {
        for _ in 0..20 {
            for member in members.iter_mut() {
                member.beat(self);
            }
            self.check();
            self.wait(1_000);
            let is_stable = |member: &&mut Client| self.state(&member.group_id) == "Stable";
            if members.iter().all(is_stable) {
                // What they have been given last, they still have to learn.
                for member in members.iter_mut() {
                    member.beat(self);
                }
                return;
            }
        }
        panic!("the members do not settle: {:#?}", snapshot(&self.shard));
    }
}

#[derive(Debug)]
struct LogStart(i64);

impl LogStarts for LogStart {
    fn log_start_offset(&self, _topic_id: Uuid, _partition: i32) -> Option<i64> {
        Some(self.0)
    }
}

/// All that outlives a shard.
#[derive(Debug, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) epochs: (i32, i64, i32, Millis, bool),
    pub(crate) members: BTreeMap<Id, (Profile, Current)>,
    pub(crate) targets: BTreeMap<Id, TopicPartitions>,
    pub(crate) resolved: BTreeMap<Id, Resolved>,
    pub(crate) owners: BTreeMap<(Uuid, i32), Id>,
    pub(crate) seen: Seen,
    pub(crate) offsets: BTreeMap<(Id, i32), i64>,
}

pub(crate) fn snapshot(shard: &Shard) -> BTreeMap<Id, Snapshot> {
    let groups = shard.groups.values();
    groups
        .filter_map(|group| {
            let consumer = group.consumer()?;
            let members = consumer.sorted_members();
            let all = members.iter().flat_map(|member| {
                let owned = member
                    .current
                    .assigned
                    .all()
                    .union(member.current.revoking.all());
                owned.iter().collect::<Vec<_>>()
            });
            let owners = all.filter_map(|(topic_id, partition)| {
                let owner = consumer.owner(topic_id, partition)?;
                Some(((topic_id, partition), owner.clone()))
            });
            let snapshot = Snapshot {
                epochs: (
                    consumer.epoch,
                    consumer.metadata_hash,
                    consumer.assignment_epoch,
                    consumer.assignment_timestamp,
                    consumer.has_partition_metadata,
                ),
                owners: owners.collect(),
                seen: group.seen.clone(),
                offsets: group
                    .offsets
                    .iter()
                    .flat_map(|(topic, partitions)| {
                        let partitions = partitions.iter();
                        partitions.map(|(&p, offset)| ((topic.clone(), p), offset.offset))
                    })
                    .collect(),
                targets: consumer.all_targets(),
                resolved: consumer
                    .all_resolved()
                    .map(|(a, b)| (a.clone(), b.clone()))
                    .collect(),
                members: members
                    .into_iter()
                    .map(|m| (m.id.clone(), (m.profile.clone(), m.current.clone())))
                    .collect(),
            };
            Some((group.id.clone(), snapshot))
        })
        .collect()
}

/// The log after compaction: of each key the last record, without tombstones.
pub(crate) fn compacted(log: &[Record]) -> Vec<Record> {
    let mut last: BTreeMap<bytes::Bytes, (usize, bool)> = BTreeMap::new();
    for (index, record) in log.iter().enumerate() {
        let (key, value) = record.encode().expect("a record can be encoded");
        last.insert(key, (index, value.is_some()));
    }
    let mut kept: Vec<usize> = last
        .into_values()
        .filter(|(_, has_value)| *has_value)
        .map(|(index, _)| index)
        .collect();
    kept.sort_unstable();
    kept.into_iter().map(|index| log[index].clone()).collect()
}
