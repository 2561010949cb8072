//! The client-side assignors: what a leader pays for one assignment of its group.
//!
//! Members × partitions × topics, all subscribed to all topics; from nothing, or when one more
//! member joins.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use kohort_group::assignor::classic::{
    ConsumerPartitionAssignor, CooperativeSticky, GroupMember, PartitionCounts, Range, RoundRobin,
    Sticky,
};
use kohort_wire::{ByteString, messages::ConsumerProtocolSubscription};

const GRID: [(usize, i32, usize); 3] = [
    (100, 1_000, 10),
    (1_000, 10_000, 100),
    (10_000, 100_000, 100),
];

fn members(count: usize, topics: &[ByteString]) -> Vec<GroupMember> {
    (0..count)
        .map(|n| GroupMember {
            member_id: format!("member-{n}").into(),
            instance_id: None,
            subscription: ConsumerProtocolSubscription {
                topics: topics.to_vec(),
                ..ConsumerProtocolSubscription::default()
            },
        })
        .collect()
}

/// Gives all members but the last what they would have without it.
fn settle<A: ConsumerPartitionAssignor + Default>(
    assignor: &A,
    counts: &PartitionCounts,
    members: &mut [GroupMember],
) {
    let before = members.len() - 1;
    let assignments = assignor
        .assign(counts, &members[..before])
        .expect("an assignment");
    for (member, assignment) in members.iter_mut().zip(assignments) {
        let mut own = A::default();
        own.on_assignment(&assignment, 1);
        let subscription = &mut member.subscription;
        subscription.user_data = own.subscription_user_data(&[]).expect("encodes");
        subscription.owned_partitions = assignment.assigned_partitions;
        subscription.generation_id = 1;
    }
}

fn bench<A: ConsumerPartitionAssignor + Default>(c: &mut Criterion) {
    let assignor = A::default();
    for is_full in [true, false] {
        let kind = if is_full { "full" } else { "incremental" };
        let mut group = c.benchmark_group(format!("classic/{}/{kind}", assignor.name()));
        group
            .sample_size(10)
            .warm_up_time(Duration::from_millis(300))
            .measurement_time(Duration::from_secs(1));
        for (member_count, partitions, topic_count) in GRID {
            let topics: Vec<ByteString> = (0..topic_count)
                .map(|n| format!("topic-{n}").into())
                .collect();
            let each = partitions / topic_count as i32;
            let counts = topics.iter().map(|topic| (topic.clone(), each)).collect();
            let mut members = members(member_count, &topics);
            if !is_full {
                settle(&assignor, &counts, &mut members);
            }
            let id = format!("{member_count}x{partitions}x{topic_count}");
            group.bench_function(BenchmarkId::from_parameter(id), |b| {
                b.iter(|| assignor.assign(&counts, &members).expect("an assignment"));
            });
        }
    }
}

fn assignors(c: &mut Criterion) {
    bench::<Range>(c);
    bench::<RoundRobin>(c);
    bench::<Sticky>(c);
    bench::<CooperativeSticky>(c);
}

criterion_group!(benches, assignors);
criterion_main!(benches);
