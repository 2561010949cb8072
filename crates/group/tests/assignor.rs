//! What the server-side assignors promise, over small groups of every shape.

use std::collections::{BTreeMap, BTreeSet};

use kohort_group::{
    TopicIds, TopicPartitions,
    assignor::{Assignor, Member},
};
use kohort_wire::Uuid;
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Group {
    /// Member id, instance id, topics, target.
    members: Vec<(String, Option<String>, Vec<Uuid>, TopicPartitions)>,
    /// Partition counts.
    topics: BTreeMap<Uuid, i32>,
}

impl Group {
    fn assign(&self, assignor: Assignor) -> Vec<TopicPartitions> {
        let subscribed: Vec<TopicIds> = self
            .members
            .iter()
            .map(|member| member.2.iter().copied().collect())
            .collect();
        let members: Vec<Member<'_>> = self
            .members
            .iter()
            .zip(&subscribed)
            .map(
                |((member_id, instance_id, _, target), subscribed_topic_ids)| Member {
                    member_id,
                    instance_id: instance_id.as_deref(),
                    subscribed_topic_ids,
                    target,
                },
            )
            .collect();
        assignor.assign(&members, &|id| self.topics.get(&id).copied())
    }

    fn with(&self, targets: &[TopicPartitions]) -> Group {
        let mut group = self.clone();
        for (member, target) in group.members.iter_mut().zip(targets) {
            member.3 = target.clone();
        }
        group
    }

    /// Without partitions that are in several targets: the first one keeps them.
    fn with_distinct_targets(mut self) -> Group {
        let mut taken = TopicPartitions::new();
        for member in &mut self.members {
            member.3 = member.3.difference(&taken);
            taken = taken.union(&member.3);
        }
        self
    }

    fn subscribers(&self, topic_id: Uuid) -> Vec<usize> {
        (0..self.members.len())
            .filter(|&member| self.members[member].2.contains(&topic_id))
            .collect()
    }

    /// Every partition that somebody subscribes to.
    fn partitions(&self) -> Vec<(Uuid, i32)> {
        self.topics
            .iter()
            .filter(|(id, _)| !self.subscribers(**id).is_empty())
            .flat_map(|(&id, &count)| (0..count).map(move |p| (id, p)))
            .collect()
    }

    /// How many partitions stay where they are.
    fn kept(&self, targets: &[TopicPartitions]) -> usize {
        self.members
            .iter()
            .zip(targets)
            .map(|(member, target)| member.3.intersection(target).len())
            .sum()
    }
}

fn check_complete(group: &Group, targets: &[TopicPartitions]) {
    let mut seen = BTreeSet::new();
    for (member, target) in group.members.iter().zip(targets) {
        for (topic_id, partition) in target.iter() {
            assert!(
                member.2.contains(&topic_id),
                "{} is not subscribed",
                member.0
            );
            assert!(partition < group.topics[&topic_id]);
            assert!(seen.insert((topic_id, partition)), "given out twice");
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), group.partitions());
}

fn sizes(targets: &[TopicPartitions]) -> Vec<usize> {
    targets.iter().map(TopicPartitions::len).collect()
}

/// Of all complete assignments: the least sum of squares of the sizes and, of those, the most kept.
fn best(group: &Group) -> (usize, usize) {
    fn go(
        group: &Group,
        partitions: &[(Uuid, i32)],
        sizes: &mut Vec<usize>,
        kept: usize,
        best: &mut (usize, usize),
    ) {
        let squares: usize = sizes.iter().map(|size| size * size).sum();
        if squares > best.0 {
            return;
        }
        let Some((&(topic_id, partition), rest)) = partitions.split_first() else {
            if squares < best.0 || kept > best.1 {
                *best = (squares, kept);
            }
            return;
        };
        for member in group.subscribers(topic_id) {
            let keeps = group.members[member].3.contains(topic_id, partition);
            sizes[member] += 1;
            go(group, rest, sizes, kept + usize::from(keeps), best);
            sizes[member] -= 1;
        }
    }
    let mut best = (usize::MAX, 0);
    let mut sizes = vec![0; group.members.len()];
    go(group, &group.partitions(), &mut sizes, 0, &mut best);
    best
}

fn squares(targets: &[TopicPartitions]) -> usize {
    sizes(targets).iter().map(|size| size * size).sum()
}

/// A group with any targets: of partitions that do not exist, of topics no longer subscribed to,
/// one partition in two targets.
fn group(
    members: usize,
    topics: usize,
    partitions: i32,
    same: bool,
) -> impl Strategy<Value = Group> {
    let counts = prop::collection::vec(0..=partitions, 1..=topics);
    (counts, 1..=members).prop_flat_map(move |(counts, members)| {
        let known = counts.len();
        let subscription = prop::collection::vec(any::<bool>(), known + 1);
        let target = prop::collection::vec((0..=known, 0..=partitions), 0..6);
        let member = (subscription, target, any::<bool>());
        let shared = prop::collection::vec(any::<bool>(), known + 1);
        (prop::collection::vec(member, members), shared, Just(counts)).prop_map(
            move |(members, shared, counts)| Group {
                topics: counts
                    .iter()
                    .enumerate()
                    .map(|(n, &count)| (Uuid(n as u128 + 1), count))
                    .collect(),
                members: members
                    .into_iter()
                    .enumerate()
                    .map(|(n, (subscription, target, is_static))| {
                        let subscription = if same { &shared } else { &subscription };
                        let topics = (0..subscription.len())
                            .filter(|&n| subscription[n])
                            .map(|n| Uuid(n as u128 + 1))
                            .collect();
                        let target = target
                            .into_iter()
                            .map(|(topic, partition)| (Uuid(topic as u128 + 1), partition))
                            .collect();
                        let instance = is_static.then(|| format!("instance-{}", 100 - n));
                        (format!("member-{n}"), instance, topics, target)
                    })
                    .collect(),
            },
        )
    })
}

/// The definition of range, straight from the documentation: topic by topic, the subscribers in
/// order, each the next contiguous range, the first `count % subscribers` one more.
fn range(group: &Group) -> Vec<TopicPartitions> {
    let mut order: Vec<usize> = (0..group.members.len()).collect();
    order.sort_by_key(|&member| {
        let (member_id, instance_id, ..) = &group.members[member];
        (
            instance_id.is_none(),
            instance_id.clone(),
            member_id.clone(),
        )
    });
    let mut targets: Vec<Vec<(Uuid, i32)>> = vec![Vec::new(); group.members.len()];
    for (&topic_id, &count) in &group.topics {
        let subscribed = group.subscribers(topic_id);
        let subscribers: Vec<usize> = order
            .iter()
            .copied()
            .filter(|m| subscribed.contains(m))
            .collect();
        let mut next = 0;
        for (place, &member) in subscribers.iter().enumerate() {
            let more = place < count as usize % subscribers.len();
            let quota = count as usize / subscribers.len() + usize::from(more);
            for _ in 0..quota {
                targets[member].push((topic_id, next));
                next += 1;
            }
        }
    }
    targets
        .into_iter()
        .map(|target| target.into_iter().collect())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn range_is_what_its_definition_says(group in group(6, 5, 9, false)) {
        let targets = group.assign(Assignor::Range);
        check_complete(&group, &targets);
        prop_assert_eq!(targets, range(&group));
    }

    #[test]
    fn range_shares_every_target_that_does_not_change(group in group(6, 5, 9, false)) {
        let group = group.with(&group.assign(Assignor::Range));
        for (member, target) in group.members.iter().zip(group.assign(Assignor::Range)) {
            prop_assert!(target.is_same(&member.3));
        }
    }

    #[test]
    fn uniform_gives_each_partition_to_exactly_one_subscriber(group in group(8, 6, 12, false)) {
        check_complete(&group, &group.assign(Assignor::Uniform));
    }

    #[test]
    fn uniform_with_equal_subscriptions_differs_by_one_and_moves_the_least(group in group(4, 3, 3, true)) {
        let group = group.with_distinct_targets();
        let targets = group.assign(Assignor::Uniform);
        check_complete(&group, &targets);
        let sizes = sizes(&targets);
        prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        prop_assert_eq!((squares(&targets), group.kept(&targets)), best(&group));
    }

    #[test]
    fn uniform_with_any_subscriptions_is_as_even_as_can_be_and_then_moves_the_least(group in group(4, 3, 3, false)) {
        let group = group.with_distinct_targets();
        let targets = group.assign(Assignor::Uniform);
        prop_assert_eq!((squares(&targets), group.kept(&targets)), best(&group));
    }

    /// KAFKA-18688.
    #[test]
    fn a_balanced_assignment_moves_nothing_when_recomputed(group in group(8, 6, 12, false)) {
        let group = group.with(&group.assign(Assignor::Uniform));
        for (member, target) in group.members.iter().zip(group.assign(Assignor::Uniform)) {
            prop_assert!(target.is_same(&member.3));
        }
    }

    /// KAFKA-19431.
    #[test]
    fn no_target_holds_a_topic_that_its_member_does_not_subscribe_to(
        group in group(6, 5, 9, false),
        range in any::<bool>(),
        unsubscribed in any::<prop::sample::Index>(),
    ) {
        let assignor = if range { Assignor::Range } else { Assignor::Uniform };
        let mut group = group.with(&group.assign(assignor));
        let member = unsubscribed.index(group.members.len());
        group.members[member].2.pop();
        check_complete(&group, &group.assign(assignor));
    }
}
