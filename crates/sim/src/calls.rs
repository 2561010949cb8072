//! The requests of a node on their way to the coordinator, and what comes back.

use std::collections::BTreeMap;

use kohort_coordinator::{Reply, Request};
use kohort_group::assignor::classic::PartitionCounts;
use kohort_member::{Answer, Member, MemberRequest};
use kohort_wire::{ByteString, Uuid};

use crate::{
    app::REQUEST_TIMEOUT_MS,
    node::{Call, CallId, ConnectionId, NodeId},
    world::{Event, World},
};

/// After how many requests within a run a member is held to spin.
const REQUESTS_MAX: u64 = 50_000;

impl World {
    pub(crate) fn send_member(&mut self, node: NodeId, id: u64, request: MemberRequest) {
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

    pub(crate) fn send(&mut self, node: NodeId, call: Call, request: Request, timeout_ms: i64) {
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
            Call::Offsets(asked) => return self.offsets_answered(node, asked, reply),
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
