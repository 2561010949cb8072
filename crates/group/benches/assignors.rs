//! The assignors over the grid of Kafka's ServerSideAssignorBenchmark.
//!
//! Members × partitions a member × topics; homogeneous, or in five groups that share no topic; from
//! nothing, or when one more member joins. What is measured is one computation of all targets.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use kohort_group::{
    TopicIds, TopicPartitions,
    assignor::{Assignor, Member},
};
use kohort_wire::Uuid;

/// Member counts, partitions a member, topics.
const GRID: [(usize, usize, usize); 6] = [
    (100, 10, 10),
    (1_000, 10, 100),
    (1_000, 50, 1_000),
    (10_000, 10, 100),
    (10_000, 10, 1_000),
    (10_000, 50, 1_000),
];

#[derive(Clone, Copy, Debug)]
enum Subscriptions {
    Homogeneous,
    /// Five groups of members, each with its own fifth of the topics.
    Heterogeneous,
    /// Five groups of members, each with two neighbouring fifths of the topics.
    Overlapping,
}

struct Group {
    ids: Vec<String>,
    subscribed: Vec<TopicIds>,
    targets: Vec<TopicPartitions>,
    partitions: i32,
}

impl Group {
    fn new(members: usize, ratio: usize, topics: usize, subscriptions: Subscriptions) -> Group {
        let ids: Vec<Uuid> = (0..topics as u128)
            .map(|n| Uuid((n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)))
            .collect();
        let fifths: Vec<TopicIds> = match subscriptions {
            Subscriptions::Homogeneous => vec![ids.iter().copied().collect()],
            Subscriptions::Heterogeneous => ids
                .chunks(topics.div_ceil(5))
                .map(|fifth| fifth.iter().copied().collect())
                .collect(),
            Subscriptions::Overlapping => (0..5)
                .map(|n| {
                    let fifths: Vec<&[Uuid]> = ids.chunks(topics.div_ceil(5)).collect();
                    let next = fifths[(n + 1) % 5];
                    fifths[n].iter().chain(next).copied().collect()
                })
                .collect(),
        };
        let each = members.div_ceil(fifths.len());
        Group {
            ids: (0..members).map(|n| format!("member{n}")).collect(),
            subscribed: (0..members).map(|n| fifths[n / each].clone()).collect(),
            targets: vec![TopicPartitions::new(); members],
            partitions: (members * ratio / topics) as i32,
        }
    }

    fn assign(&self, assignor: Assignor, members: usize) -> Vec<TopicPartitions> {
        let members: Vec<Member<'_>> = (0..members)
            .map(|n| Member {
                member_id: &self.ids[n],
                instance_id: None,
                subscribed_topic_ids: &self.subscribed[n],
                target: &self.targets[n],
            })
            .collect();
        assignor.assign(&members, &|_| Some(self.partitions))
    }
}

fn assignors(c: &mut Criterion) {
    for assignor in Assignor::ALL {
        for subscriptions in [
            Subscriptions::Homogeneous,
            Subscriptions::Heterogeneous,
            Subscriptions::Overlapping,
        ] {
            for from_nothing in [true, false] {
                let kind = if from_nothing { "full" } else { "incremental" };
                let name = format!("{}/{subscriptions:?}/{kind}", assignor.name());
                let mut bench = c.benchmark_group(name.to_lowercase());
                bench
                    .sample_size(10)
                    .warm_up_time(Duration::from_millis(300))
                    .measurement_time(Duration::from_secs(1));
                for (members, ratio, topics) in GRID {
                    let mut group = Group::new(members, ratio, topics, subscriptions);
                    if !from_nothing {
                        for (n, target) in group.assign(assignor, members - 1).iter().enumerate() {
                            group.targets[n] = target.clone();
                        }
                    }
                    let id = format!("{members}x{}x{topics}", members * ratio);
                    bench.bench_function(BenchmarkId::from_parameter(id), |b| {
                        b.iter(|| group.assign(assignor, members));
                    });
                }
            }
        }
    }
}

criterion_group!(benches, assignors);
criterion_main!(benches);
