//! What a user's program does: it takes over and releases partitions, takes records, processes them,
//! and commits. Where it reads and what it may commit is up to its [`Reader`].
//!
//! [`Reader`]: kohort_member::reader::Reader

use kohort_coordinator::{Reply, Request, inspect::Place};
use kohort_member::{
    Action, BufferPool, Member, StepId,
    reader::{Chunks, CommitStep, CommittedOffset, Decoding, Failure, TopicPartition, by_topic},
};
use kohort_wire::{ErrorCode, Uuid, messages::*, records::RecordIter};

use crate::{
    eras::committed_in,
    invariants::Happened,
    log::place_of,
    node::{Begin, Call, Commit, Held, InHand, Key, NodeId, Offset},
    profile::Commits,
    world::{Event, World},
};

/// How long a node waits for an answer that is due at once.
pub(crate) const REQUEST_TIMEOUT_MS: i64 = 5_000;

/// How often an application tries to commit.
const COMMIT_TRIES: u32 = 3;

fn names(keys: &[Key]) -> Vec<TopicPartition> {
    let keys = keys.iter().cloned();
    keys.map(TopicPartition::from).collect()
}

fn key(name: &TopicPartition) -> Key {
    (name.topic.clone(), name.partition)
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
        let it = &mut self.nodes[node];
        it.reader.set_member(it.member.identity());
    }

    fn take_action(&mut self, node: NodeId, action: Action) {
        let life = self.nodes[node].life;
        match action {
            Action::Send { id, request } => self.send_member(node, id, request),
            Action::Assign { id, added, .. } => {
                self.note(|| format!("node {node}.{life} takes over {added:?}"));
                for key in added {
                    let topic_id = self.topic_id(node, &key);
                    let it = &mut self.nodes[node];
                    let id = it.member.topic_id(&key.0);
                    it.reader.assign_suspended(&key.clone().into(), id);
                    it.partitions.insert(key, Held::new(topic_id));
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
                for key in partitions {
                    self.remove(node, &key);
                }
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
        for key in revoked {
            // What was lost and assigned again meanwhile is not what was revoked.
            let held = self.nodes[node].partitions.get(key);
            if held.is_some_and(|held| held.is_revoking) {
                self.remove(node, key);
            }
        }
        let it = &mut self.nodes[node];
        let owned = it.partitions.iter();
        let owned = owned.filter(|(_, held)| !held.is_revoking);
        let owned: Vec<Key> = owned.map(|(key, _)| key.clone()).collect();
        it.reader.resume_assigned(&names(&owned));
        let now = it.clock.read(self.now);
        it.member.done(step, now);
    }

    fn remove(&mut self, node: NodeId, key: &Key) {
        let it = &mut self.nodes[node];
        it.partitions.remove(key);
        it.reader.unassign(&key.clone().into(), false);
    }

    /// Releases partitions: the application finishes the records that it holds, and what is finished
    /// is committed.
    fn revoke(&mut self, node: NodeId, step: StepId, keys: Vec<Key>) {
        if let Some((step, keys)) = self.nodes[node].revocation.take() {
            self.commit_revoked(node, step, keys);
        }
        let it = &mut self.nodes[node];
        for key in &keys {
            if let Some(held) = it.partitions.get_mut(key) {
                held.is_revoking = true;
            }
        }
        it.reader.suspend(&names(&keys));
        if it.is_leaving || !it.reader.is_held(&names(&keys)) {
            return self.commit_revoked(node, step, keys);
        }
        it.revocation = Some((step, keys));
        let life = it.life;
        let wait = i64::from(it.role.rebalance_timeout_ms) * 3 / 4;
        self.later(wait, Event::RevokeNow { node, life, step });
    }

    /// The application has taken too long to finish its records.
    pub(crate) fn revoke_now(&mut self, node: NodeId, step: StepId) {
        let revocation = &mut self.nodes[node].revocation;
        if let Some((step, keys)) = revocation.take_if(|(waiting, _)| *waiting == step) {
            self.commit_revoked(node, step, keys);
        }
    }

    fn commit_revoked(&mut self, node: NodeId, step: StepId, keys: Vec<Key>) {
        let offsets = self.nodes[node].reader.to_commit(Some(&names(&keys)));
        self.begin_commit(node, offsets, Some((step, keys)));
    }

    fn begin_commit(
        &mut self,
        node: NodeId,
        offsets: Vec<(TopicPartition, CommittedOffset)>,
        revocation: Option<(StepId, Vec<Key>)>,
    ) {
        let it = &mut self.nodes[node];
        let eras = offsets.iter().filter_map(|(name, _)| {
            let held = it.partitions.get(&key(name))?;
            Some((key(name), held.era))
        });
        let eras = eras.collect();
        let asked = offsets
            .iter()
            .map(|(name, offset)| (key(name), offset.offset));
        let asked = asked.collect();
        let reads = it.partitions.iter();
        let reads = reads.map(|(key, held)| (key.clone(), held.reads)).collect();
        let commit = Commit {
            commit: it.reader.begin_commit(offsets, Vec::new()),
            asked,
            reads,
            eras,
            offsets: Vec::new(),
            revocation,
            tries: 0,
        };
        self.commit(node, commit);
    }

    pub(crate) fn commit(&mut self, node: NodeId, mut commit: Commit) {
        let it = &mut self.nodes[node];
        let cluster = &self.cluster;
        let id_of = |topic: &str| cluster.get(topic).map(|topic| topic.id);
        let step = it.reader.next_commit_step(&mut commit.commit, id_of);
        let (identity, offsets) = match step {
            CommitStep::Send(Some(identity), offsets) => (identity, offsets),
            CommitStep::Wait => {
                let life = it.life;
                return self.later(100, Event::CommitAgain { node, life, commit });
            }
            CommitStep::Done => return self.commit_ended(node, commit, true),
            CommitStep::Send(None, _) => return self.commit_ended(node, commit, false),
        };
        let by_id = it.role.by_id;
        let offset = |(name, offset): (TopicPartition, CommittedOffset)| Offset {
            era: commit.eras.get(&key(&name)).copied().unwrap_or_default(),
            key: key(&name),
            topic_id: offset.topic_id.unwrap_or_default(),
            offset: offset.offset,
        };
        commit.offsets = offsets.into_iter().map(offset).collect();
        let topics = commit.offsets.iter();
        let topics = topics.map(|offset| (offset.key.clone().into(), offset));
        let topics = by_topic(topics).into_iter();
        let topics = topics.map(|(name, partitions)| OffsetCommitRequestTopic {
            topic_id: match (by_id, partitions.first()) {
                (true, Some((_, offset))) => offset.topic_id,
                _ => Uuid::ZERO,
            },
            name,
            partitions: partitions
                .into_iter()
                .map(|(partition_index, offset)| OffsetCommitRequestPartition {
                    partition_index,
                    committed_offset: offset.offset,
                    committed_metadata: Some(committed_in(offset.era).into()),
                    ..OffsetCommitRequestPartition::default()
                })
                .collect(),
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

    pub(crate) fn commit_answered(
        &mut self,
        node: NodeId,
        mut commit: Commit,
        reply: Option<Reply>,
    ) {
        let mut is_retriable = reply.is_none();
        let mut done = rustc_hash::FxHashSet::default();
        if let Some(Reply::OffsetCommit(answer)) = reply {
            for topic in &answer.topics {
                for partition in &topic.partitions {
                    let key = (topic.name.clone(), partition.partition_index);
                    match partition.error_code {
                        ErrorCode::NONE => {
                            let offset = commit.offsets.iter().find(|o| o.key == key);
                            let acknowledged = &mut self.nodes[node].acknowledged;
                            acknowledged.extend(offset.map(|o| (key.clone(), o.offset)));
                            done.insert(key.into());
                        }
                        ErrorCode::STALE_MEMBER_EPOCH => is_retriable = true,
                        code => is_retriable |= code.is_retriable(),
                    }
                }
            }
        }
        let it = &mut self.nodes[node];
        it.reader.committed(&mut commit.commit, &done);
        commit.tries += 1;
        if commit.commit.is_empty() || is_retriable && commit.tries < COMMIT_TRIES {
            let life = it.life;
            let ms = match commit.commit.is_empty() {
                true => 0,
                false => self.random.between(50, 300),
            };
            return self.later(ms, Event::CommitAgain { node, life, commit });
        }
        self.commit_ended(node, commit, false);
    }

    /// `is_done` unless the application gives up.
    fn commit_ended(&mut self, node: NodeId, mut commit: Commit, is_done: bool) {
        let it = &mut self.nodes[node];
        it.reader.end_commit(&mut commit.commit);
        if is_done && commit.commit.lost().is_empty() {
            for (key, offset) in &commit.asked {
                let later = (key.clone(), *offset)..=(key.clone(), i64::MAX);
                let is_acknowledged = it.acknowledged.range(later).next().is_some();
                let reads = commit.reads.get(key);
                let held = it.partitions.get_mut(key);
                if let Some(held) = held.filter(|held| Some(&held.reads) == reads) {
                    held.reported = held.reported.max(*offset);
                }
                if !is_acknowledged {
                    let name = it.name(node);
                    let problem = format!("{name} has committed {offset} of {key:?}, it is told");
                    return self.fail("a commit succeeds only if the coordinator has it", problem);
                }
            }
        }
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
        self.finish(node);
        self.read_on(node);
        self.take_records(node);
        if self.nodes[node].role.commits == Commits::Sync {
            self.finish(node);
        }
        let it = &self.nodes[node];
        let mut calls = it.calls.values();
        let is_committing = calls.any(|call| matches!(call, Call::Commit(_)));
        let is_due = match it.role.commits {
            Commits::Sync => true,
            Commits::Auto => it.last_auto_commit + 1_000 <= self.now,
            // At the end of a run everything is to be committed.
            Commits::OnRevoke => self.is_calm,
        };
        if !is_due || it.is_leaving || is_committing && self.random.percent(60) {
            return;
        }
        let it = &mut self.nodes[node];
        it.last_auto_commit = self.now;
        let offsets = it.reader.to_commit(None);
        if !offsets.is_empty() {
            self.begin_commit(node, offsets, None);
        }
    }

    /// The application finishes the records that it holds.
    fn finish(&mut self, node: NodeId) {
        let group = self.nodes[node].role.group.clone();
        for InHand { place, era, offset } in std::mem::take(&mut self.nodes[node].in_hand) {
            let done = self.ledger.account(&group, place).done;
            let logs = &self.cluster.logs;
            let from = match offset <= logs.next_record(place, done) {
                true => done.min(offset),
                false => offset,
            };
            let to = logs.next_record(place, offset + 1);
            self.ledger.process(&group, place, era, from, to);
        }
        let it = &mut self.nodes[node];
        it.reader.finish(it.handle);
        let revoked = it.revocation.take();
        if let Some((step, keys)) = revoked {
            match self.nodes[node].reader.is_held(&names(&keys)) {
                true => self.nodes[node].revocation = Some((step, keys)),
                false => self.commit_revoked(node, step, keys),
            }
        }
    }

    fn take_records(&mut self, node: NodeId) {
        // At the end of a run everything is to be read, in time.
        let records_max = match self.is_calm {
            true => 1_000,
            false => self.random.between(1, 20) as usize,
        };
        let it = &mut self.nodes[node];
        let decoding = Decoding {
            check_crcs: true,
            decompressed_bytes_max: 1 << 20,
            buffers: BufferPool::new(1, 1),
        };
        let mut chunks = Chunks::default();
        while chunks.count < records_max {
            let Some(mut delivery) = it.reader.begin_delivery() else {
                break;
            };
            delivery.decode(&mut chunks, records_max, &decoding);
            it.reader.end_delivery(delivery, &mut chunks, it.handle);
        }
        while let Some(error) = it.reader.next_error() {
            self.trace
                .note(self.now, || format!("node {node} is told {error:?}"));
        }
        for (name, chunk) in chunks.chunks {
            let records = RecordIter::new(&chunk.header, &chunk.bytes);
            for record in records
                .flatten()
                .filter(|record| record.offset >= chunk.from)
            {
                let said = record.value.and_then(place_of);
                if let Err(problem) = self.hand_out(node, &name, record.offset, said) {
                    let name = self.nodes[node].name(node);
                    return self.fail(
                        "the right records are delivered",
                        format!("{name}: {problem}"),
                    );
                }
            }
        }
        self.read_on(node);
    }

    /// A record is given to the application.
    fn hand_out(
        &mut self,
        node: NodeId,
        name: &TopicPartition,
        offset: i64,
        said: Option<(Place, i64)>,
    ) -> Result<(), String> {
        let it = &mut self.nodes[node];
        let Some(held) = it.partitions.get(&key(name)) else {
            return Err(format!("{name} is not assigned"));
        };
        let place = (held.reads, name.partition);
        if held.is_revoking {
            return Err(format!("{name} is being revoked"));
        }
        if said != Some((place, offset)) {
            return Err(format!("{name} at {offset} of {place:?} is {said:?}"));
        }
        if !self.cluster.logs.is_record(place, offset) {
            return Err(format!("{name} at {offset} was aborted"));
        }
        let era = held.era;
        it.in_hand.push(InHand { place, era, offset });
        Ok(())
    }

    /// Asks the coordinator what is committed.
    pub(crate) fn find_committed(&mut self, node: NodeId, asked: Vec<(TopicPartition, u64)>) {
        let it = &mut self.nodes[node];
        let now = it.clock.read(self.now);
        let Some(identity) = it.reader.member().cloned() else {
            for (name, lease) in asked {
                let failure = Failure::from(ErrorCode::UNKNOWN_MEMBER_ID);
                it.reader.find_committed_failed(&name, lease, failure, now);
            }
            return;
        };
        let ids = it.reader.topic_ids(asked.iter().map(|(name, _)| name));
        let by_id = it.role.by_id;
        let topics = by_topic(asked.iter().cloned()).into_iter();
        let topics = topics.map(|(name, partitions)| OffsetFetchRequestTopics {
            topic_id: match by_id {
                true => ids.get(&name).copied().unwrap_or_default(),
                false => Uuid::ZERO,
            },
            name,
            partition_indexes: partitions.into_iter().map(|(p, _)| p).collect(),
        });
        let topics = topics.collect();
        let begins = asked.into_iter().map(|(name, lease)| Begin {
            assignment: it.reader.assignment(&name),
            key: key(&name),
            lease,
            era: 0,
            is_committed: false,
        });
        let begins = begins.collect();
        let (member_id, member_epoch) = match identity.consumer_protocol {
            true => (Some(identity.member_id), identity.epoch),
            false => (None, -1),
        };
        let request = Request::OffsetFetch {
            request: OffsetFetchRequestGroup {
                group_id: (&*it.role.group).into(),
                member_id,
                member_epoch,
                topics: Some(topics),
            },
            require_stable: true,
        };
        self.send(node, Call::Offsets(begins), request, REQUEST_TIMEOUT_MS);
    }

    pub(crate) fn offsets_answered(
        &mut self,
        node: NodeId,
        asked: Vec<Begin>,
        reply: Option<Reply>,
    ) {
        let answer = match reply {
            Some(Reply::OffsetFetch(answer)) => Some(answer),
            _ => None,
        };
        let unanswered = Failure {
            code: None,
            is_retriable: true,
        };
        for begin in asked {
            let it = &mut self.nodes[node];
            let name = TopicPartition::from(begin.key.clone());
            let now = it.clock.read(self.now);
            let result = match &answer {
                Some(answer) if answer.error_code.is_error() => Err(answer.error_code.into()),
                Some(answer) => {
                    let topics = answer.topics.iter().filter(|t| t.name == begin.key.0);
                    let mut partitions = topics.flat_map(|topic| &topic.partitions);
                    match partitions.find(|p| p.partition_index == begin.key.1) {
                        Some(p) if p.error_code.is_error() => Err(p.error_code.into()),
                        Some(p) => Ok((p.committed_offset >= 0).then_some(p.committed_offset)),
                        None => Err(unanswered),
                    }
                }
                None => Err(unanswered),
            };
            match result {
                Err(failure) => {
                    it.reader
                        .find_committed_failed(&name, begin.lease, failure, now);
                }
                Ok(committed) => self.offset_answered(node, begin, &name, committed),
            }
        }
        self.read_on(node);
    }

    fn offset_answered(
        &mut self,
        node: NodeId,
        begin: Begin,
        name: &TopicPartition,
        committed: Option<i64>,
    ) {
        let it = &mut self.nodes[node];
        let is_same = it.reader.assignment(name) == begin.assignment;
        let before = it.reader.position(name);
        let offset = committed.map(CommittedOffset::new);
        it.reader
            .committed_found(name, begin.lease, offset.as_ref());
        let held = it.partitions.get_mut(&begin.key);
        let Some(held) = held.filter(|_| is_same && before == Some(None)) else {
            return;
        };
        held.era = begin.era;
        let place = (held.reads, begin.key.1);
        let Some(offset) = committed else {
            held.begin = Some(begin);
            return;
        };
        self.begins(node, place, &begin, offset, false);
    }

    /// An application begins where its client says: nothing is committed, or the record at its
    /// position is gone. What is skipped then, it means to skip.
    pub(crate) fn starts_where_client_says(
        &mut self,
        node: NodeId,
        key: &Key,
        place: Place,
        before: Option<i64>,
        offset: i64,
    ) {
        let start = self.cluster.start(place.0, place.1);
        let Some(held) = self.nodes[node].partitions.get_mut(key) else {
            return;
        };
        let era = held.era;
        let begin = held.begin.take();
        let is_new = held.is_replacement;
        if let Some(begin) = &begin {
            self.begins(node, place, begin, offset, true);
        }
        // All records of a topic that was created anew while it was read are new.
        let may_skip = begin.is_some() || before.is_none_or(|before| before < start);
        if may_skip && (!is_new || before.is_some()) {
            let group = &self.nodes[node].role.group;
            self.ledger.skip(group, place, era, offset);
        }
    }

    fn begins(
        &mut self,
        node: NodeId,
        place: Place,
        begin: &Begin,
        offset: i64,
        finds_nothing: bool,
    ) {
        if place.0.is_zero() {
            return;
        }
        let (key, era) = (&begin.key, begin.era);
        let life = self.nodes[node].life;
        self.note(|| format!("node {node}.{life} begins {key:?} at {offset}, era {era}"));
        self.check(&Happened::Begins {
            node,
            place,
            era,
            offset,
            finds_nothing,
            is_committed: begin.is_committed,
        });
    }

    /// Notes which topics the reader reads.
    pub(crate) fn note_topics(&mut self, node: NodeId) {
        let it = &mut self.nodes[node];
        for (key, held) in &mut it.partitions {
            let name = TopicPartition::from(key.clone());
            let ids = it.reader.topic_ids([&name]);
            let Some(id) = ids.get(&key.0).copied() else {
                continue;
            };
            if held.reads != id {
                *held = Held {
                    reads: id,
                    is_replacement: held.is_known,
                    is_revoking: held.is_revoking,
                    is_disowned: held.is_disowned,
                    ..Held::new(held.topic_id)
                };
            }
            held.is_known = true;
        }
    }
}
