//! What the shell of the coordinator does: see [`Coordinator`](crate::coordinator::Coordinator).

use kohort_coordinator::{Connection, Outbox, Record, Reply, Request};
use kohort_group::Id;
use kohort_wire::{ByteString, Uuid, messages::*};

use crate::{
    coordinator::{Fate, Follower, Input, Origin},
    eras::rewound,
    invariants::Happened,
    node::{Call, ConnectionId, group_of},
    world::{Event, World},
};

impl World {
    /// A request has got to the coordinator's host.
    pub(crate) fn arrive(&mut self, origin: Origin, request: Request) {
        if let Origin::Node {
            node,
            life,
            connection,
            call,
            is_ghost: false,
        } = origin
        {
            let it = &self.nodes[node];
            let is_given_up = it.life != life || !it.is_alive || it.connection.id != connection;
            if is_given_up {
                // What the connection held when it was given up may still be read from it.
                let Some(&late_ms) = self.ghosts.get(&connection) else {
                    return;
                };
                let event = Event::Arrive {
                    node,
                    life,
                    connection,
                    call,
                    request,
                    is_ghost: true,
                };
                return self.later(late_ms, event);
            }
            if !self.coordinator.is_running {
                return self.cut(node, false);
            }
        }
        if !self.coordinator.is_running {
            return;
        }
        self.coordinator
            .inputs
            .push_back(Input::Request(origin, Box::new(request)));
        self.coordinator_turn();
    }

    /// The broker has noticed that a connection is closed.
    pub(crate) fn closed(&mut self, connection: ConnectionId) {
        if self.coordinator.heard.contains_key(&connection) && self.coordinator.shard.is_some() {
            let input = Input::Closed(connection);
            self.coordinator.inputs.push_back(input);
            self.coordinator_turn();
        }
    }

    pub(crate) fn news(&mut self) {
        if self.coordinator.shard.is_some() {
            self.coordinator.inputs.push_back(Input::News);
            self.coordinator_turn();
        }
    }

    /// The broker has the offsets of topics forgotten that were deleted. If it is lost before, it
    /// does not come back to it.
    pub(crate) fn topics_deleted(&mut self, topics: Vec<ByteString>) {
        if self.coordinator.is_running {
            let request = Request::TopicsDeleted { topics };
            self.arrive(Origin::Broker, request);
        }
    }

    pub(crate) fn work_done(&mut self, work: u64) {
        if let Some(work) = self.coordinator.works.remove(&work) {
            self.coordinator.inputs.push_back(Input::Done(work.run()));
            self.coordinator_turn();
        }
    }

    /// Takes what has queued up and what is due, and has it written.
    pub(crate) fn coordinator_turn(&mut self) {
        while self.failure.is_none()
            && self.coordinator.shard.is_some()
            && self.coordinator.appending.is_none()
        {
            let mut has_acted = false;
            while let Some(input) = self.coordinator.inputs.pop_front() {
                self.take(input);
                has_acted = true;
            }
            let now = self.coordinator.clock(self.now);
            let coordinator = &mut self.coordinator;
            if let Some(shard) = &mut coordinator.shard
                && shard.next_alarm().is_some_and(|at| at <= now)
            {
                shard.on_alarm(now, &mut coordinator.out);
                self.acted();
                has_acted = true;
            }
            if !has_acted && self.coordinator.out.is_empty() {
                return;
            }
            self.settle();
        }
    }

    fn take(&mut self, input: Input) {
        // As the broker does it: no client knows more of topics than the shard that takes its request.
        if self.cluster.version() != self.coordinator.view.version() {
            self.take_news();
        }
        let now = self.coordinator.clock(self.now);
        match input {
            Input::Request(Origin::Administrator { number }, request)
                if !self.is_within_logs(&request) =>
            {
                self.tell(number, None);
            }
            Input::Request(origin, request) => self.decide(origin, *request),
            Input::Done(done) => {
                let coordinator = &mut self.coordinator;
                if let Some(shard) = &mut coordinator.shard {
                    shard.done(done, now, &mut coordinator.out);
                }
                self.acted();
            }
            Input::Closed(connection) => {
                let coordinator = &mut self.coordinator;
                let members = coordinator.heard.remove(&connection).unwrap_or_default();
                let members: Vec<_> = members.into_iter().collect();
                if let Some(shard) = &mut coordinator.shard {
                    let out = &mut coordinator.out;
                    shard.connection_closed(Connection(connection), &members, now, out);
                }
                self.acted();
            }
            // They are taken already.
            Input::News => {}
        }
    }

    fn take_news(&mut self) {
        let now = self.coordinator.clock(self.now);
        let topics = self.cluster.snapshot();
        let coordinator = &mut self.coordinator;
        coordinator.view = topics.clone();
        if let Some(shard) = &mut coordinator.shard {
            shard.topics_changed(topics, now, &mut coordinator.out);
        }
        self.acted();
    }

    fn decide(&mut self, origin: Origin, request: Request) {
        self.disown(origin, &request);
        self.confuse(origin, &request);
        let first = self.coordinator.out.records.len();
        let token = self.coordinator.ask(origin, request.clone(), self.now);
        let before = self.refresh(first);
        self.note_eras(origin, &request);
        let answer = self.coordinator.answer(token).cloned();
        self.note_subscription(origin, &request, answer.as_ref());
        let records = self.coordinator.out.records[first..].to_vec();
        if self.trace.is_on() {
            let who = match origin {
                Origin::Node {
                    node,
                    life,
                    is_ghost,
                    ..
                } => {
                    format!(
                        "node {node}.{life}{}",
                        if is_ghost { " (late)" } else { "" }
                    )
                }
                other => format!("{other:?}"),
            };
            let answer = match &answer {
                Some(answer) => format!("{answer:?}"),
                None => "waits".to_owned(),
            };
            self.note(|| format!("{who}: {request:?}\n            -> {answer}"));
            self.note_records(first);
        }
        self.check(&Happened::Decided {
            origin,
            request: &request,
            before: &before,
            reply: answer.as_ref(),
            records: &records,
        });
    }

    fn note_records(&mut self, first: usize) {
        let now = self.now;
        for record in &self.coordinator.out.records[first..] {
            self.trace.note(now, || format!("    {record:?}"));
        }
    }

    /// Takes over what the shard has decided: into its state as it is now, and into the shard that
    /// knows nothing but the records. Returns the state before.
    fn refresh(&mut self, first: usize) -> crate::coordinator::Durable {
        let coordinator = &mut self.coordinator;
        for record in &coordinator.out.records[first..] {
            let loaded =
                record
                    .encode()
                    .map_err(|error| error.to_string())
                    .and_then(|(key, value)| {
                        let loaded = coordinator.mirror.load(key, value);
                        loaded.map_err(|error| error.to_string())
                    });
            if let Err(error) = loaded {
                return {
                    self.fail("what is written can be read", error);
                    Default::default()
                };
            }
        }
        let decided = self.coordinator.out.records[first..].to_vec();
        for record in &decided {
            self.eras.decided(record);
            self.note_offset_that_goes(record);
        }
        let coordinator = &mut self.coordinator;
        coordinator.seen = coordinator.out.records.len();
        for (token, reply) in &coordinator.out.replies {
            if let (Some(Origin::Node { node, life, .. }), Reply::JoinGroup(answer)) =
                (coordinator.tokens.get(token), reply)
                && !answer.error_code.is_error()
                && self.nodes[*node].life == *life
            {
                self.nodes[*node].admitted = answer.generation_id;
            }
        }
        let now = coordinator.clock(self.now);
        for (token, reply) in &coordinator.out.replies {
            if let (Some(Origin::Node { node, life, .. }), Reply::SyncGroup(answer)) =
                (coordinator.tokens.get(token), reply)
                && !answer.error_code.is_error()
                && self.nodes[*node].life == *life
            {
                self.nodes[*node].synced_at = now;
            }
        }
        let live = match &coordinator.shard {
            Some(shard) => shard.durable(),
            None => Default::default(),
        };
        std::mem::replace(&mut coordinator.live, live)
    }

    fn note_offset_that_goes(&mut self, record: &Record) {
        if let Record::OffsetCommit(key, None) = record {
            let topics = self.cluster.ids(&key.topic);
            let group = Id::from(&*key.group);
            self.ledger.uncommitted(&group, &topics, key.partition);
        }
    }

    /// The shard has done something by itself.
    pub(crate) fn acted(&mut self) {
        let first = self.coordinator.seen;
        let before = self.refresh(first);
        let records = self.coordinator.out.records[first..].to_vec();
        if self.trace.is_on() {
            self.note(|| "the coordinator acts by itself".to_owned());
            self.note_records(first);
        }
        self.check(&Happened::Acted {
            before: &before,
            records: &records,
        });
    }

    /// Has written what was decided.
    fn settle(&mut self) {
        if self.trace.is_on() {
            for event in std::mem::take(&mut self.coordinator.out.events) {
                self.note(|| format!("group {}: {}", event.group_id, event.what));
            }
        }
        self.coordinator.out.events.clear();
        if self.coordinator.out.records.is_empty() {
            return self.release();
        }
        let fails = match self.is_calm {
            true => 0,
            false => self.profile.append_fails_percent,
        };
        let fate = match self.random.percent(fails) {
            true => Fate::Fails {
                is_written: self.random.percent(30),
            },
            false => Fate::Durable,
        };
        let ms = self.random.between(0, self.profile.append_ms);
        self.coordinator.appending = Some(fate);
        let life = self.coordinator.life;
        if ms == 0 {
            return self.appended(life);
        }
        self.later(ms, Event::Appended { life });
    }

    pub(crate) fn appended(&mut self, life: u64) {
        if self.coordinator.life != life {
            return;
        }
        match self.coordinator.appending.take() {
            Some(Fate::Durable) => {
                self.write();
                self.release();
                self.coordinator_turn();
            }
            Some(Fate::Fails { is_written }) => {
                self.note(|| format!("an append fails (written: {is_written})"));
                if is_written {
                    self.write();
                }
                self.lose_shard();
                let tokens = std::mem::take(&mut self.coordinator.tokens);
                for origin in tokens.into_values() {
                    self.reply(origin, None);
                }
                let ms = self.random.between(0, 500);
                let life = self.coordinator.life;
                self.later(ms, Event::Loaded { life });
            }
            None => {}
        }
    }

    /// Puts what was decided into the log.
    pub(crate) fn write(&mut self) {
        let records = std::mem::take(&mut self.coordinator.out.records);
        self.coordinator.seen = 0;
        let mut batch = Vec::with_capacity(records.len());
        for record in &records {
            self.eras.written(record);
            for rewound in rewound(record) {
                self.ledger.rewound(&rewound);
            }
            self.note_offset_that_goes(record);
            if let Record::OffsetCommit(key, Some(value)) = record {
                let place = (value.topic_id, key.partition);
                self.ledger.committed(&Id::from(&*key.group), place);
            }
            match record.encode() {
                Ok(written) => batch.push(written),
                Err(error) => self.fail("what is written can be read", error.to_string()),
            }
        }
        for (key, value) in &batch {
            self.mix(key);
            self.mix(value.as_deref().unwrap_or_default());
            // The mirror has taken it already, and said so if it could not.
            let _ = self.coordinator.standby.load(key.clone(), value.clone());
        }
        self.coordinator.log.push(batch);
    }

    /// Lets go of the answers.
    fn release(&mut self) {
        let replies = std::mem::take(&mut self.coordinator.out.replies);
        let mut answers = Vec::with_capacity(replies.len());
        for (token, reply) in replies {
            match self.coordinator.tokens.remove(&token) {
                Some(origin) => answers.push((origin, reply)),
                None => self.fail(
                    "every request is answered once",
                    format!("nobody waits for {token:?}: {reply:?}"),
                ),
            }
        }
        self.check(&Happened::Answers(&answers));
        for (origin, reply) in answers {
            self.reply(origin, Some(reply));
        }
        for work in std::mem::take(&mut self.coordinator.out.work) {
            let number = self.number();
            self.coordinator.works.insert(number, work);
            let ms = *self.random.one_of(&[0, 0, 10, 2_000]);
            self.later(ms, Event::WorkDone { work: number });
        }
    }

    /// The shard is lost, and what it had decided and not written.
    pub(crate) fn lose_shard(&mut self) {
        let coordinator = &mut self.coordinator;
        coordinator.life += 1;
        coordinator.shard = None;
        self.eras.lost();
        coordinator.out = Outbox::default();
        coordinator.seen = 0;
        coordinator.appending = None;
    }

    /// A shard is loaded from the log.
    pub(crate) fn load(&mut self, life: u64) {
        if self.coordinator.life != life {
            return;
        }
        if self.random.percent(40) {
            let keeps_tombstones = self.random.percent(50);
            self.coordinator.compact(keeps_tombstones);
        }
        let topics = self.cluster.snapshot();
        self.coordinator.view = topics.clone();
        let seed = self.random.seed();
        let shard = self.coordinator.replay(topics.clone(), seed);
        let mirror = self.coordinator.replay(topics, [0; 32]);
        let (mut shard, mirror) = match (shard, mirror) {
            (Ok(shard), Ok(mirror)) => (shard, mirror),
            (Err(error), _) | (_, Err(error)) => {
                return self.fail("what is written can be read", error);
            }
        };
        self.note(|| "the coordinator has loaded its log".to_owned());
        let now = self.coordinator.clock(self.now);
        let coordinator = &mut self.coordinator;
        coordinator.is_running = true;
        coordinator.mirror = Follower::new(mirror);
        coordinator.live = shard.durable();
        shard.loaded(now, &mut coordinator.out);
        coordinator.shard = Some(shard);
        let before = self.refresh(0);
        let records = self.coordinator.out.records.clone();
        self.check(&Happened::Loaded {
            before: &before,
            records: &records,
        });
        self.settle();
        self.coordinator_turn();
    }

    /// The process of the coordinator ends, wherever it is.
    pub(crate) fn crash(&mut self) {
        if !self.coordinator.is_running {
            return;
        }
        let is_appending = self.coordinator.appending.is_some();
        // A batch is in the log as a whole or, if it was torn, not at all.
        let is_written = is_appending && self.random.percent(50);
        self.note(|| {
            format!("the coordinator crashes (appending: {is_appending}, written: {is_written})")
        });
        if is_written {
            self.write();
        }
        self.lose_shard();
        self.coordinator.is_running = false;
        self.coordinator.inputs.clear();
        self.coordinator.works.clear();
        self.coordinator.heard.clear();
        self.coordinator.tokens.clear();
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_alive {
                self.cut(node, false);
            }
        }
        let ms = *self.random.one_of(&[10, 500, 5_000, 20_000]);
        self.coordinator.skew_ms += self.random.between(-2_000, 2_000);
        let life = self.coordinator.life;
        self.later(ms, Event::Loaded { life });
    }

    fn reply(&mut self, origin: Origin, reply: Option<Reply>) {
        if let Origin::Administrator { number } = origin {
            return self.tell(number, reply);
        }
        let Origin::Node {
            node,
            life,
            connection,
            call,
            is_ghost: false,
        } = origin
        else {
            return;
        };
        if self.nodes[node].life != life || self.nodes[node].connection.id != connection {
            return;
        }
        if !self.is_calm && self.random.percent(self.profile.loss_percent) {
            self.note(|| format!("an answer to node {node}.{life} is lost"));
            return self.cut(node, true);
        }
        let ms = self.random.between(1, self.profile.latency_ms);
        let way = &mut self.nodes[node].connection;
        way.last_answer_at = way.last_answer_at.max(self.now + ms);
        let at = way.last_answer_at;
        let event = Event::Answer {
            node,
            life,
            connection,
            call,
            reply,
        };
        self.at(at, event);
    }

    /// Notes in which eras the offsets are that a node is about to be told.
    fn note_eras(&mut self, origin: Origin, request: &Request) {
        let (
            Origin::Node {
                node,
                call,
                is_ghost: false,
                ..
            },
            Request::OffsetFetch { request, .. },
        ) = (origin, request)
        else {
            return;
        };
        let group = self.nodes[node].role.group.clone();
        if let Some(Call::Offsets(asked)) = self.nodes[node].calls.get_mut(&call) {
            let said = |name: &ByteString| {
                let topics = request.topics.iter().flatten();
                let mut topics = topics.filter(|topic| topic.name == *name);
                topics.next().map_or(Uuid::ZERO, |topic| topic.topic_id)
            };
            for begin in asked {
                let named = self.coordinator.view.get(&begin.key.0);
                let id = Some(said(&begin.key.0)).filter(|id| !id.is_zero());
                let id = id.or(named.map(|known| known.id));
                let place = id.map(|id| (id, begin.key.1));
                if let Some(place) = place {
                    begin.era = self.eras.live(&group, place);
                    let account = self.ledger.account(&group, place);
                    begin.is_committed = account.is_committed && account.era == begin.era;
                }
            }
        }
    }

    /// What a member says by a request that comes late, the coordinator has to believe.
    fn disown(&mut self, origin: Origin, request: &Request) {
        let Origin::Node {
            node,
            is_ghost: true,
            ..
        } = origin
        else {
            return;
        };
        if group_of(request) != Some(&*self.nodes[node].role.group) {
            return;
        }
        let owned: Option<Vec<_>> = match request {
            Request::ConsumerGroupHeartbeat { request, .. } => {
                request.topic_partitions.as_ref().map(|owned| {
                    let topics = owned.iter();
                    topics
                        .flat_map(|topic| topic.partitions.iter().map(|p| (topic.topic_id, *p)))
                        .collect()
                })
            }
            Request::JoinGroup { .. } | Request::LeaveGroup { .. } => Some(Vec::new()),
            _ => None,
        };
        if let Some(owned) = owned {
            for ((_, partition), held) in &mut self.nodes[node].partitions {
                if !owned.contains(&(held.topic_id, *partition)) {
                    held.is_disowned = true;
                }
            }
        }
    }
}

impl World {
    /// Notes whether a commit or a fetch by name is meant for another topic than the coordinator
    /// takes it for.
    fn confuse(&mut self, origin: Origin, request: &Request) {
        let Origin::Node { node, call, .. } = origin else {
            return;
        };
        let read = |name: &ByteString, partition: i32| {
            let key = (name.clone(), partition);
            match (request, self.nodes[node].calls.get(&call)) {
                (Request::OffsetCommit { .. }, Some(Call::Commit(commit))) => {
                    let mut offsets = commit.offsets.iter();
                    offsets.find(|o| o.key == key).map(|o| o.topic_id)
                }
                (Request::OffsetFetch { .. }, Some(_)) => {
                    let held = self.nodes[node].partitions.get(&key);
                    held.map(|held| held.reads)
                }
                // It has been given up.
                _ => None,
            }
        };
        let named: Vec<(ByteString, Vec<i32>)> = match request {
            Request::OffsetCommit { request, .. } => {
                let topics = request.topics.iter().filter(|t| t.topic_id.is_zero());
                let partitions = |topic: &OffsetCommitRequestTopic| {
                    let partitions = topic.partitions.iter();
                    partitions.map(|p| p.partition_index).collect()
                };
                topics.map(|t| (t.name.clone(), partitions(t))).collect()
            }
            Request::OffsetFetch { request, .. } => {
                let topics = request.topics.iter().flatten();
                let topics = topics.filter(|t| t.topic_id.is_zero());
                topics
                    .map(|t| (t.name.clone(), t.partition_indexes.clone()))
                    .collect()
            }
            _ => return,
        };
        let mut confused = Vec::new();
        for (name, partitions) in named {
            let known = self.cluster.get(&name).map(|known| known.id);
            let view = self.coordinator.view.get(&name).map(|known| known.id);
            let mut read = partitions.into_iter().map(|p| read(&name, p));
            // What has been given up meanwhile may have been of either.
            let is_other = known != view || read.any(|read| read != known);
            if is_other && self.cluster.was_recreated(&name) {
                confused.push(name);
            }
        }
        self.confused.extend(confused);
    }
}

/// Somebody who is no node sends a request.
impl World {
    pub(crate) fn send_as(&mut self, origin: Origin, request: Request) {
        self.arrive(origin, request);
    }

    pub(crate) fn remove_as_administrator(&mut self, group: &str, member: MemberIdentity) {
        let request = LeaveGroupRequest {
            group_id: group.into(),
            members: vec![member],
            ..LeaveGroupRequest::default()
        };
        self.arrive(
            Origin::Broker,
            Request::LeaveGroup {
                version: 5,
                request,
            },
        );
    }
}
