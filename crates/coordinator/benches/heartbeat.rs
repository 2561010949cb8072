//! The cost of what consumer groups do all the time: heartbeats, joins.

use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use kohort_coordinator::*;
use kohort_wire::{Uuid, messages::*};

/// A shard with stable consumer groups, and a heartbeat of each member.
struct Setting {
    shard: Shard,
    out: Outbox,
    now: Millis,
    heartbeats: Vec<ConsumerGroupHeartbeatRequest>,
}

fn caller() -> Caller {
    Caller {
        client_id: "consumer-1".to_owned(),
        client_host: "/127.0.0.1".to_owned(),
        connection: None,
    }
}

fn new_shard() -> Shard {
    let topic = Topic {
        id: Uuid(1),
        name: "topic".into(),
        partition_count: 10_000,
        is_internal: false,
        created_at: 0,
    };
    let topics = Arc::new(Topics::new(1, [topic]));
    Shard::new(Arc::new(Config::default()), topics, [0; 32])
}

fn join(group: usize, member: usize) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: format!("group-{group}").into(),
        member_id: format!(
            "{:032x}",
            (member as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c)
        )
        .into(),
        rebalance_timeout_ms: 300_000,
        subscribed_topic_names: Some(vec!["topic".into()]),
        topic_partitions: Some(Vec::new()),
        ..ConsumerGroupHeartbeatRequest::default()
    }
}

impl Setting {
    fn new(groups: usize, members: usize) -> Setting {
        let mut setting = Setting {
            shard: new_shard(),
            out: Outbox::default(),
            now: 1_000_000,
            heartbeats: Vec::new(),
        };
        let mut requests: Vec<_> = (0..members).map(|n| join(n % groups, n)).collect();
        // All join; then they get a target for all of them; then they say what they own, until
        // nothing changes any more.
        for _ in 0..4 {
            for request in &mut requests {
                let response = setting.heartbeat(request.clone());
                request.member_epoch = response.member_epoch;
                if let Some(assignment) = response.assignment {
                    request.topic_partitions = Some(assignment.topic_partitions);
                }
            }
            setting.now += 2_000;
            setting.shard.on_alarm(setting.now, &mut setting.out);
            setting.do_work();
        }
        setting.heartbeats = requests
            .into_iter()
            .map(|request| ConsumerGroupHeartbeatRequest {
                group_id: request.group_id,
                member_id: request.member_id,
                member_epoch: request.member_epoch,
                ..ConsumerGroupHeartbeatRequest::default()
            })
            .collect();
        setting.out = Outbox::default();
        for request in setting.heartbeats.clone() {
            let response = setting.heartbeat(request);
            assert!(response.assignment.is_none() && !response.error_code.is_error());
        }
        assert!(setting.out.records.is_empty(), "nothing changes any more");
        setting
    }

    fn heartbeat(
        &mut self,
        request: ConsumerGroupHeartbeatRequest,
    ) -> ConsumerGroupHeartbeatResponse {
        let request = Request::ConsumerGroupHeartbeat {
            version: 1,
            request,
        };
        let out = &mut self.out;
        self.shard
            .request(Token(0), &caller(), request, self.now, out);
        match self.out.replies.pop() {
            Some((_, Reply::ConsumerGroupHeartbeat(response))) => response,
            other => panic!("{other:?}"),
        }
    }

    fn do_work(&mut self) {
        while let Some(work) = self.out.work.pop() {
            self.shard.done(work.run(), self.now, &mut self.out);
        }
    }
}

fn benches(criterion: &mut Criterion) {
    let caller = caller();
    for (groups, members) in [(100, 10_000), (1, 10_000)] {
        let mut setting = Setting::new(groups, members);
        let mut next = 0;
        criterion.bench_function(
            &format!("consumer heartbeat, {members} members in {groups} groups"),
            |bencher| {
                bencher.iter(|| {
                    let request = Request::ConsumerGroupHeartbeat {
                        version: 1,
                        request: setting.heartbeats[next].clone(),
                    };
                    next = (next + 1) % setting.heartbeats.len();
                    setting.now += 1;
                    let Setting {
                        shard, out, now, ..
                    } = &mut setting;
                    shard.request(Token(1), &caller, request, *now, out);
                    shard.on_alarm(*now, out);
                    out.replies.clear();
                });
            },
        );
        assert!(setting.out.records.is_empty());
    }

    criterion.bench_function("consumer join of a group of its own", |bencher| {
        let mut shard = new_shard();
        let mut group = 0;
        bencher.iter_batched(
            || {
                group += 1;
                Request::ConsumerGroupHeartbeat {
                    version: 1,
                    request: ConsumerGroupHeartbeatRequest {
                        subscribed_topic_names: Some(vec!["absent".into()]),
                        ..join(group, group)
                    },
                }
            },
            |request| {
                let mut out = Outbox::default();
                shard.request(Token(1), &caller, request, 1_000_000, &mut out);
                out
            },
            BatchSize::SmallInput,
        );
    });

    criterion.bench_function("consumer join of a group of thousands", |bencher| {
        let mut setting = Setting::new(1, 2_000);
        let mut member = 100_000;
        bencher.iter_batched(
            || {
                member += 1;
                Request::ConsumerGroupHeartbeat {
                    version: 1,
                    request: join(0, member),
                }
            },
            |request| {
                let mut out = Outbox::default();
                let Setting { shard, now, .. } = &mut setting;
                shard.request(Token(1), &caller, request, *now, &mut out);
                out
            },
            BatchSize::SmallInput,
        );
    });
}

criterion_group! {
    name = heartbeat;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2));
    targets = benches
}
criterion_main!(heartbeat);
