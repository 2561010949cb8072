//! The cost of what classic groups do all the time: heartbeats, commits, joins.

use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use kohort_coordinator::*;
use kohort_wire::{Uuid, messages::*};

/// A shard with stable classic groups, and a heartbeat of each member.
struct Setting {
    shard: Shard,
    out: Outbox,
    now: Millis,
    heartbeats: Vec<HeartbeatRequest>,
}

const CALLER: Caller = Caller {
    client_id: String::new(),
    client_host: String::new(),
    connection: None,
};

fn new_shard() -> Shard {
    let topic = Topic {
        id: Uuid(1),
        name: "topic".into(),
        partition_count: 1_000,
        is_internal: false,
        created_at: 0,
    };
    let topics = Arc::new(Topics::new(1, [topic]));
    Shard::new(Arc::new(Config::default()), topics, [0; 32])
}

fn join(group: usize) -> Request {
    let request = JoinGroupRequest {
        group_id: format!("group-{group}").into(),
        session_timeout_ms: 45_000,
        rebalance_timeout_ms: 300_000,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupProtocol {
            name: "range".into(),
            metadata: vec![0; 20].into(),
        }],
        ..JoinGroupRequest::default()
    };
    // Version 3 joins at once, without being given an id first.
    Request::JoinGroup {
        version: 3,
        request,
    }
}

impl Setting {
    fn new(groups: usize, members: usize) -> Setting {
        let mut setting = Setting {
            shard: new_shard(),
            out: Outbox::default(),
            now: 0,
            heartbeats: Vec::new(),
        };
        for token in 0..members {
            setting.step(token, join(token % groups));
        }
        setting.end_initial_delay();
        for (token, reply) in std::mem::take(&mut setting.out.replies) {
            let Reply::JoinGroup(response) = reply else {
                unreachable!()
            };
            let request = SyncGroupRequest {
                group_id: format!("group-{}", token.0 as usize % groups).into(),
                generation_id: response.generation_id,
                member_id: response.member_id.clone(),
                ..SyncGroupRequest::default()
            };
            setting.heartbeats.push(HeartbeatRequest {
                group_id: request.group_id.clone(),
                generation_id: request.generation_id,
                member_id: request.member_id.clone(),
                group_instance_id: None,
            });
            setting.step(
                0,
                Request::SyncGroup {
                    version: 3,
                    request,
                },
            );
        }
        assert_eq!(setting.heartbeats.len(), members);
        setting.out = Outbox::default();
        setting
    }

    /// Lets time pass until all who have joined are answered: new members prolong the wait once.
    fn end_initial_delay(&mut self) {
        for _ in 0..2 {
            self.now += 10_000;
            self.shard.on_alarm(self.now, &mut self.out);
        }
    }

    fn step(&mut self, token: usize, request: Request) {
        self.shard.request(
            Token(token as u64),
            &CALLER,
            request,
            self.now,
            &mut self.out,
        );
    }
}

fn benches(c: &mut Criterion) {
    for groups in [1, 100] {
        let mut setting = Setting::new(groups, 10_000);
        let heartbeats = std::mem::take(&mut setting.heartbeats);
        let mut heartbeats = heartbeats.iter().cycle();
        c.bench_function(
            &format!("classic heartbeat, 10,000 members in {groups} groups"),
            |b| {
                b.iter_batched(
                    || heartbeats.next().expect("endless").clone(),
                    |request| {
                        setting.step(0, Request::Heartbeat { request });
                        setting.out.replies.clear();
                    },
                    BatchSize::SmallInput,
                );
            },
        );
    }

    let mut setting = Setting::new(1, 1);
    let member = setting.heartbeats[0].clone();
    let request = OffsetCommitRequest {
        group_id: member.group_id.clone(),
        member_id: member.member_id.clone(),
        generation_id_or_member_epoch: member.generation_id,
        topics: vec![OffsetCommitRequestTopic {
            name: "topic".into(),
            partitions: (0..10)
                .map(|partition_index| OffsetCommitRequestPartition {
                    partition_index,
                    committed_offset: 1_000,
                    ..OffsetCommitRequestPartition::default()
                })
                .collect(),
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    };
    c.bench_function("commit of ten partitions, with its records encoded", |b| {
        b.iter_batched(
            || request.clone(),
            |request| {
                setting.step(
                    0,
                    Request::OffsetCommit {
                        version: 9,
                        request,
                    },
                );
                for record in setting.out.records.drain(..) {
                    std::hint::black_box(record.encode().expect("encodable"));
                }
                setting.out.replies.clear();
            },
            BatchSize::SmallInput,
        );
    });

    c.bench_function("1,000 members join a classic group", |b| {
        b.iter_batched(
            new_shard,
            |shard| {
                let mut setting = Setting {
                    shard,
                    out: Outbox::default(),
                    now: 0,
                    heartbeats: Vec::new(),
                };
                for token in 0..1_000 {
                    setting.step(token, join(0));
                }
                setting.end_initial_delay();
                assert_eq!(setting.out.replies.len(), 1_000);
            },
            BatchSize::LargeInput,
        );
    });
}

criterion_group! {
    name = group;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2));
    targets = benches
}
criterion_main!(group);
