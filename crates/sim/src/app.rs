//! What a node does: it steps its member, and its application reads, processes and commits.

use std::collections::BTreeMap;

use kohort_coordinator::{Reply, Request};
use kohort_group::assignor::classic::PartitionCounts;
use kohort_member::{Action, Answer, Member, MemberRequest, StepId};
use kohort_wire::{ByteString, ErrorCode, Uuid, messages::*};

use crate::{
    eras::committed_in,
    invariants::Happened,
    node::{Begin, Call, CallId, Commit, ConnectionId, Held, Key, NodeId},
    profile::Commits,
    world::{Event, World},
};

/// How long a node waits for an answer that is due at once.
const REQUEST_TIMEOUT_MS: i64 = 5_000;

/// How often an application that lets go of partitions tries to commit.
const COMMIT_TRIES: u32 = 3;

/// After how many requests within a run a member is held to spin.
const REQUESTS_MAX: u64 = 50_000;

impl Commit {
    /// The topic of a name that the offsets are of.
    fn topic_id(&self, topic: &str) -> Uuid {
        let mut offsets = self.offsets.iter();
        let found = offsets.find(|offset| *offset.key.0 == *topic);
        found.map_or(Uuid::ZERO, |offset| offset.topic_id)
    }
}

impl World {
    pub(crate) fn wake(&mut self, node: NodeId) {
        let it = &mut self.nodes[node];
        let now = it.clock.read(self.now);
        it.member.wake(now);
        self.act(node);
    }

    /// Does what the member wants done.
    pub(crate) fn act(&mut self, node: NodeId) {
        while let Some(action) = self.nodes[node].member.next_action() {
            self.take_action(node, action);
        }
    }

    fn take_action(&mut self, node: NodeId, action: Action) {
        let life = self.nodes[node].life;
        match action {
            Action::Send { id, request } => self.send_member(node, id, request),
            Action::Assign { id, added, .. } => {
                self.note(|| format!("node {node}.{life} takes over {added:?}"));
                for key in added {
                    let topic_id = self.topic_id(node, &key);
                    let held = Held::new(topic_id, self.number());
                    self.nodes[node].partitions.insert(key, held);
                }
                self.check(&Happened::Owns);
                self.finish_step(node, id, Vec::new());
            }
            Action::Revoke { id, partitions } => {
                self.note(|| format!("node {node}.{life} is to let go of {partitions:?}"));
                self.revoke(node, id, partitions.into_iter().collect());
            }
            Action::Lose { id, partitions } => {
                self.note(|| format!("node {node}.{life} has lost {partitions:?}"));
                let held = &mut self.nodes[node].partitions;
                held.retain(|key, _| !partitions.contains(key));
                self.finish_step(node, id, Vec::new());
            }
            Action::ResolveTopics(ids) => self.later(2, Event::Names { node, life, ids }),
            Action::CountPartitions(topics) => self.later(2, Event::Counts { node, life, topics }),
            Action::Report(_) | Action::Waiting(_) => {}
            Action::Fail(error) => {
                self.note(|| format!("node {node}.{life} gives up: {error}"));
                self.nodes[node].has_failed = true;
                // Whoever runs it starts it again.
                let ms = self.random.between(500, 5_000);
                self.start_later(node, ms);
            }
            Action::Left => {
                self.note(|| format!("node {node}.{life} has left"));
                if self.nodes[node].is_leaving {
                    self.nodes[node].is_alive = false;
                }
            }
        }
    }

    /// Which topic a name that the member was given stands for.
    fn topic_id(&self, node: NodeId, key: &Key) -> Uuid {
        let told = self.nodes[node].told.iter();
        let mut told = told.filter(|(id, partition)| {
            *partition == key.1 && self.cluster.name(*id) == Some(&key.0)
        });
        // Of a name that means another topic since it was assigned, nobody can tell which it was.
        let synced_at = match self.nodes[node].member {
            Member::Classic(_) => self.nodes[node].synced_at,
            Member::Consumer(_) => i64::MAX,
        };
        let now = self.cluster.get(&key.0);
        let now = now.filter(|topic| topic.created_at <= synced_at);
        let now = now.map(|topic| topic.id);
        match (told.next_back(), now) {
            (Some((id, _)), _) => *id,
            (None, now) => now.unwrap_or(Uuid::ZERO),
        }
    }

    /// The id by which a node names a topic; zero if it says the name.
    fn said_id(&self, node: NodeId, topic: &str) -> Uuid {
        let it = &self.nodes[node];
        let mut held = it
            .partitions
            .iter()
            .filter(|((name, _), _)| **name == *topic);
        match (it.role.by_id, held.next()) {
            (true, Some((_, held))) => held.reads,
            _ => Uuid::ZERO,
        }
    }

    fn finish_step(&mut self, node: NodeId, step: StepId, revoked: Vec<Key>) {
        let life = self.nodes[node].life;
        let longest = match self.is_calm {
            true => self.profile.step_ms.min(100),
            false => self.profile.step_ms,
        };
        let ms = self.random.between(0, longest);
        let stuck_ms = self.nodes[node].stuck_until - self.now;
        let ms = match revoked.is_empty() {
            true => ms,
            false => ms.max(stuck_ms),
        };
        let event = Event::StepDone {
            node,
            life,
            step,
            revoked,
        };
        self.later(ms, event);
    }

    pub(crate) fn step_done(&mut self, node: NodeId, step: StepId, revoked: &[Key]) {
        let it = &mut self.nodes[node];
        // What was lost and assigned again meanwhile is not what was revoked.
        it.partitions
            .retain(|key, held| !(held.is_revoking && revoked.contains(key)));
        let now = it.clock.read(self.now);
        it.member.done(step, now);
    }

    /// Lets go of partitions, after committing what has been processed.
    fn revoke(&mut self, node: NodeId, step: StepId, keys: Vec<Key>) {
        let it = &mut self.nodes[node];
        let mut offsets = Vec::new();
        for key in &keys {
            if let Some(held) = it.partitions.get_mut(key) {
                held.is_revoking = true;
                offsets.extend(held.offset(key));
            }
        }
        if offsets.is_empty() {
            return self.finish_step(node, step, keys);
        }
        let commit = Commit {
            offsets,
            revocation: Some((step, keys)),
            tries: 0,
        };
        self.commit(node, commit);
    }

    pub(crate) fn commit(&mut self, node: NodeId, mut commit: Commit) {
        let it = &self.nodes[node];
        // What was lost meanwhile is not committed, even if it has been given to the node again.
        commit.offsets.retain(|offset| {
            let held = it.partitions.get(&offset.key);
            held.is_some_and(|held| held.lease == offset.lease)
        });
        if commit.offsets.is_empty() {
            return self.commit_ended(node, commit);
        }
        let Some(identity) = it.member.identity() else {
            return self.commit_ended(node, commit);
        };
        let mut topics: BTreeMap<ByteString, Vec<OffsetCommitRequestPartition>> = BTreeMap::new();
        for offset in &commit.offsets {
            let (topic, partition) = &offset.key;
            let partition = OffsetCommitRequestPartition {
                partition_index: *partition,
                committed_offset: offset.offset,
                committed_metadata: Some(committed_in(offset.era).into()),
                ..OffsetCommitRequestPartition::default()
            };
            topics.entry(topic.clone()).or_default().push(partition);
        }
        let topics = topics
            .into_iter()
            .map(|(name, partitions)| OffsetCommitRequestTopic {
                topic_id: match it.role.by_id {
                    true => commit.topic_id(&name),
                    false => Uuid::ZERO,
                },
                name,
                partitions,
            });
        let request = OffsetCommitRequest {
            group_id: (&*it.role.group).into(),
            generation_id_or_member_epoch: identity.epoch,
            member_id: identity.member_id,
            group_instance_id: identity.instance_id,
            topics: topics.collect(),
            ..OffsetCommitRequest::default()
        };
        let request = Request::OffsetCommit {
            version: 9,
            request,
        };
        self.send(node, Call::Commit(commit), request, REQUEST_TIMEOUT_MS);
    }

    fn commit_answered(&mut self, node: NodeId, mut commit: Commit, reply: Option<Reply>) {
        let mut is_retriable = reply.is_none();
        if let Some(Reply::OffsetCommit(answer)) = reply {
            for topic in &answer.topics {
                for partition in &topic.partitions {
                    let key = (topic.name.clone(), partition.partition_index);
                    let offset = commit.offsets.iter().find(|offset| offset.key == key);
                    match (partition.error_code, offset) {
                        (ErrorCode::NONE, Some(offset)) => {
                            let held = self.nodes[node].partitions.get_mut(&key);
                            if let Some(held) = held.filter(|held| held.lease == offset.lease) {
                                held.committed = held.committed.max(offset.offset);
                            }
                        }
                        (ErrorCode::STALE_MEMBER_EPOCH, _) => is_retriable = true,
                        (code, _) => is_retriable |= code.is_retriable(),
                    }
                }
            }
        }
        commit.tries += 1;
        if commit.revocation.is_some() && is_retriable && commit.tries < COMMIT_TRIES {
            let life = self.nodes[node].life;
            return self.later(100, Event::CommitAgain { node, life, commit });
        }
        self.commit_ended(node, commit);
    }

    fn commit_ended(&mut self, node: NodeId, commit: Commit) {
        if let Some((step, keys)) = commit.revocation {
            self.finish_step(node, step, keys);
        }
    }

    /// The application asks for records, processes them, and perhaps commits.
    pub(crate) fn poll(&mut self, node: NodeId) {
        let life = self.nodes[node].life;
        let ms = self.random.between(1, self.profile.poll_ms);
        self.later(ms, Event::Poll { node, life });
        if !self.nodes[node].is_up() || self.nodes[node].away_until > self.now {
            return;
        }
        let now = self.nodes[node].clock.read(self.now);
        self.nodes[node].member.polled(now);
        self.find_again(node);
        self.ask_for_offsets(node);
        self.process(node);
        let it = &self.nodes[node];
        let is_committing = it
            .calls
            .values()
            .any(|call| matches!(call, Call::Commit(_)));
        let is_due = match it.role.commits {
            Commits::Sync => true,
            Commits::Auto => it.last_auto_commit + 1_000 <= self.now,
            // At the end of a run everything is to be committed.
            Commits::OnRevoke => self.is_calm,
        };
        if is_committing || !is_due || it.is_leaving {
            return;
        }
        let held = it.partitions.iter().filter(|(_, held)| !held.is_revoking);
        let offsets: Vec<_> = held.filter_map(|(key, held)| held.offset(key)).collect();
        self.nodes[node].last_auto_commit = self.now;
        if !offsets.is_empty() {
            let commit = Commit {
                offsets,
                revocation: None,
                tries: 0,
            };
            self.commit(node, commit);
        }
    }

    /// Where an application begins that has no offset, or one whose record is gone.
    fn reset(&self, topic_id: Uuid, partition: i32) -> i64 {
        match self.profile.resets_to_latest {
            true => self.cluster.end(topic_id, partition).unwrap_or_default(),
            false => self.cluster.start(topic_id, partition),
        }
    }

    fn process(&mut self, node: NodeId) {
        self.reset_out_of_range(node);
        let records_max = self.random.between(1, 20);
        let it = &mut self.nodes[node];
        for ((_, partition), held) in &mut it.partitions {
            let (Some(position), false) = (held.position, held.is_revoking) else {
                continue;
            };
            let place = (held.reads, *partition);
            let Some(end) = self.cluster.end(held.reads, *partition) else {
                continue;
            };
            let to = end.min(position + records_max);
            if to > position {
                self.ledger
                    .process(&it.role.group, place, held.era, position, to);
                held.position = Some(to);
            }
        }
    }

    /// What was to be read next has been removed: the client goes on where it says (what is skipped
    /// then, it means to skip).
    fn reset_out_of_range(&mut self, node: NodeId) {
        let group = self.nodes[node].role.group.clone();
        let held = self.nodes[node].partitions.iter();
        let out_of_range: Vec<Key> = held
            .filter(|((_, partition), held)| {
                let start = self.cluster.start(held.reads, *partition);
                held.position.is_some_and(|position| position < start)
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in out_of_range {
            let reads = self.nodes[node].partitions[&key].reads;
            let offset = self.reset(reads, key.1);
            if let Some(held) = self.nodes[node].partitions.get_mut(&key) {
                held.position = Some(offset);
                let (place, era) = ((reads, key.1), held.era);
                self.ledger.skip(&group, place, era, offset);
            }
        }
    }

    /// Asks where to begin, for partitions of which that is not known.
    fn ask_for_offsets(&mut self, node: NodeId) {
        let it = &mut self.nodes[node];
        let Some(identity) = it.member.identity() else {
            return;
        };
        let mut asked = Vec::new();
        let mut topics: BTreeMap<ByteString, Vec<i32>> = BTreeMap::new();
        for (key, held) in &mut it.partitions {
            if held.position.is_none() && !held.is_fetching && !held.is_revoking {
                held.is_fetching = true;
                asked.push(Begin {
                    key: key.clone(),
                    lease: held.lease,
                    era: 0,
                    is_committed: false,
                    is_there: false,
                });
                topics.entry(key.0.clone()).or_default().push(key.1);
            }
        }
        if asked.is_empty() {
            return;
        }
        let topics = topics
            .into_iter()
            .map(|(name, partition_indexes)| OffsetFetchRequestTopics {
                topic_id: self.said_id(node, &name),
                name,
                partition_indexes,
            });
        let (member_id, member_epoch) = match identity.consumer_protocol {
            true => (Some(identity.member_id), identity.epoch),
            false => (None, -1),
        };
        let request = Request::OffsetFetch {
            request: OffsetFetchRequestGroup {
                group_id: (&*self.nodes[node].role.group).into(),
                member_id,
                member_epoch,
                topics: Some(topics.collect()),
            },
            require_stable: true,
        };
        self.send(node, Call::Offsets(asked), request, REQUEST_TIMEOUT_MS);
    }

    fn offsets_answered(&mut self, node: NodeId, asked: &[Begin], reply: Option<Reply>) {
        for begin in asked {
            let held = self.nodes[node].partitions.get_mut(&begin.key);
            if let Some(held) = held.filter(|held| held.lease == begin.lease) {
                held.is_fetching = false;
            }
        }
        let Some(Reply::OffsetFetch(answer)) = reply else {
            return;
        };
        if answer.error_code.is_error() {
            return;
        }
        for topic in &answer.topics {
            for partition in &topic.partitions {
                let key = (topic.name.clone(), partition.partition_index);
                let reads = self.nodes[node].partitions.get(&key).map(|held| held.reads);
                let reset = self.reset(reads.unwrap_or_default(), key.1);
                let (Some(begin), Some(held)) = (
                    asked.iter().find(|begin| begin.key == key),
                    self.nodes[node].partitions.get_mut(&key),
                ) else {
                    continue;
                };
                if held.lease != begin.lease
                    || held.position.is_some()
                    || partition.error_code.is_error()
                {
                    continue;
                }
                let finds_nothing = partition.committed_offset < 0;
                // A member of the classic protocol may have been assigned, by name, a partition that
                // a topic created again does not have yet. Where to begin in it is asked again.
                if finds_nothing && !begin.is_there {
                    continue;
                }
                let offset = match finds_nothing {
                    true => reset,
                    false => partition.committed_offset,
                };
                held.position = Some(offset);
                held.committed = offset;
                held.era = begin.era;
                let (place, era) = ((held.reads, key.1), begin.era);
                let is_committed = begin.is_committed;
                if place.0.is_zero() {
                    continue;
                }
                let life = self.nodes[node].life;
                self.note(|| format!("node {node}.{life} begins {key:?} at {offset}, era {era}"));
                self.check(&Happened::Begins {
                    node,
                    place,
                    era,
                    offset,
                    finds_nothing,
                    is_committed,
                });
                if finds_nothing {
                    let group = &self.nodes[node].role.group;
                    self.ledger.skip(group, place, era, offset);
                }
            }
        }
    }

    fn send_member(&mut self, node: NodeId, id: u64, request: MemberRequest) {
        let it = &mut self.nodes[node];
        it.requests += 1;
        let timeout_ms = match &request {
            MemberRequest::Join(_) | MemberRequest::Sync(_) => {
                i64::from(it.role.rebalance_timeout_ms) + REQUEST_TIMEOUT_MS
            }
            _ => REQUEST_TIMEOUT_MS,
        };
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
        if self.nodes[node].requests > REQUESTS_MAX {
            let name = self.nodes[node].name(node);
            self.fail("no member spins", format!("{name} sends without end"));
        }
        self.send(node, Call::Member(id), request, timeout_ms);
    }

    fn send(&mut self, node: NodeId, call: Call, request: Request, timeout_ms: i64) {
        let id = self.number();
        let is_lost = !self.is_calm && self.random.percent(self.profile.loss_percent);
        let ms = self.random.between(1, self.profile.latency_ms);
        let it = &mut self.nodes[node];
        it.calls.insert(id, call);
        let life = it.life;
        let connection = it.connection.id;
        it.connection.last_request_at = it.connection.last_request_at.max(self.now + ms);
        let at = it.connection.last_request_at;
        let cut = |call| Event::Cut {
            node,
            life,
            connection,
            call,
        };
        if is_lost {
            self.note(|| format!("a request of node {node}.{life} is lost"));
            return self.at(at, cut(None));
        }
        let event = Event::Arrive {
            node,
            life,
            connection,
            call: id,
            request,
            is_ghost: false,
        };
        self.at(at, event);
        self.later(timeout_ms, cut(Some(id)));
    }

    pub(crate) fn cut_if(
        &mut self,
        node: NodeId,
        life: u64,
        connection: ConnectionId,
        call: Option<CallId>,
    ) {
        let it = &self.nodes[node];
        let is_open = it.life == life && it.is_alive && it.connection.id == connection;
        if is_open && call.is_none_or(|call| it.calls.contains_key(&call)) {
            self.cut(node, true);
        }
    }

    /// A connection ends: nothing that was on its way is answered, and what it still holds may
    /// arrive, much later perhaps.
    pub(crate) fn cut(&mut self, node: NodeId, may_haunt: bool) {
        let number = self.number();
        let old = std::mem::take(&mut self.nodes[node].connection);
        self.nodes[node].connection.id = number;
        let ms = *self.random.one_of(&[0, 5, 1_000]);
        self.later(ms, Event::Closed(old.id));
        if may_haunt && self.random.percent(self.profile.ghost_percent) {
            let ms = *self.random.one_of(&[0, 10, 300, 5_000, 40_000]);
            self.ghosts.insert(old.id, ms);
        }
        let life = self.nodes[node].life;
        let calls: Vec<CallId> = self.nodes[node].calls.keys().copied().collect();
        let mut ms = self.random.between(1, 100);
        for call in calls {
            ms += 1;
            self.later(ms, Event::Failed { node, life, call });
        }
    }

    pub(crate) fn call_failed(&mut self, node: NodeId, call: CallId) {
        if let Some(call) = self.nodes[node].calls.remove(&call) {
            self.call_ended(node, call, None);
        }
    }

    pub(crate) fn answered(
        &mut self,
        node: NodeId,
        connection: ConnectionId,
        call: CallId,
        reply: Option<Reply>,
    ) {
        if self.nodes[node].connection.id != connection {
            return;
        }
        if let Some(call) = self.nodes[node].calls.remove(&call) {
            self.call_ended(node, call, reply);
        }
    }

    fn call_ended(&mut self, node: NodeId, call: Call, reply: Option<Reply>) {
        let id = match call {
            Call::Member(id) => id,
            Call::Offsets(asked) => return self.offsets_answered(node, &asked, reply),
            Call::Commit(commit) => return self.commit_answered(node, commit, reply),
        };
        let it = &mut self.nodes[node];
        let now = it.clock.read(self.now);
        let answer = match reply {
            Some(Reply::ConsumerGroupHeartbeat(answer)) => {
                if let Some(assignment) = &answer.assignment {
                    let topics = assignment.topic_partitions.iter();
                    it.told = topics
                        .flat_map(|topic| topic.partitions.iter().map(|p| (topic.topic_id, *p)))
                        .collect();
                }
                Answer::ConsumerHeartbeat(answer)
            }
            Some(Reply::JoinGroup(answer)) => Answer::Join(answer),
            Some(Reply::SyncGroup(answer)) => Answer::Sync(answer),
            Some(Reply::Heartbeat(answer)) => Answer::Heartbeat(answer),
            Some(Reply::LeaveGroup(answer)) => Answer::Leave(answer),
            _ => return it.member.failed(id, 100, now),
        };
        it.member.answered(id, answer, now);
    }

    pub(crate) fn names(&mut self, node: NodeId, ids: Vec<Uuid>) {
        let (mut names, mut missing) = (BTreeMap::new(), Vec::new());
        for id in ids {
            match (self.cluster.by_id(id), self.cluster.name(id)) {
                (Some(_), Some(name)) => {
                    names.insert(id, name.clone());
                }
                _ => missing.push(id),
            }
        }
        let it = &mut self.nodes[node];
        let now = it.clock.read(self.now);
        it.member.topics(&names, now);
        let life = it.life;
        if !missing.is_empty() {
            let ids = missing;
            self.later(500, Event::Names { node, life, ids });
        }
    }

    pub(crate) fn counts(&mut self, node: NodeId, topics: Vec<ByteString>) {
        let counts = self.counts_of(&topics);
        let it = &mut self.nodes[node];
        it.counted = Some((topics, counts.clone()));
        it.member.partition_counts(counts);
    }

    fn counts_of(&self, topics: &[ByteString]) -> PartitionCounts {
        let counts = topics.iter().filter_map(|topic| {
            let count = self.cluster.get(topic)?.ends.len() as i32;
            Some((topic.clone(), count))
        });
        counts.collect()
    }

    /// A classic member keeps a partition when its topic is created again under the same name: it
    /// begins anew.
    fn find_again(&mut self, node: NodeId) {
        let lease = self.number();
        let it = &mut self.nodes[node];
        if let Member::Classic(_) = it.member {
            for ((topic, _), held) in &mut it.partitions {
                if let Some(known) = self.cluster.get(topic)
                    && held.reads != known.id
                {
                    *held = Held {
                        reads: known.id,
                        is_revoking: held.is_revoking,
                        is_disowned: held.is_disowned,
                        ..Held::new(held.topic_id, lease)
                    };
                }
            }
        }
    }

    /// As the client does it: a leader that has assigned looks whether there are other partitions.
    pub(crate) fn metadata_changed(&mut self, node: NodeId) {
        let Some((topics, counted)) = &self.nodes[node].counted else {
            return;
        };
        if self.counts_of(topics) != *counted {
            let it = &mut self.nodes[node];
            it.counted = None;
            let now = it.clock.read(self.now);
            if let Member::Classic(member) = &mut it.member {
                member.metadata_changed(now);
            }
        }
    }
}
