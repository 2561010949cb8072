//! Members that all subscribe to the same topics, served in turn.
//!
//! As `uniform::even`, but what is new is dealt out like cards, as the Java client does, so that a
//! member gets partitions of many topics rather than many of one.

use std::collections::VecDeque;

use crate::{
    TopicPartitions,
    assignor::{Member, subscriptions::Topic, target_of},
    topic_partitions::{Run, append, merge},
};

/// A member on its way to its share.
struct Share {
    member: usize,
    kept: Vec<Run>,
    added: Vec<Run>,
    count: usize,
}

pub(super) fn assign(
    group: &[Member<'_>],
    members: &[u32],
    topics: &[Topic],
    targets: &mut [TopicPartitions],
) {
    let partitions: usize = topics.iter().map(|t| t.partition_count as usize).sum();
    let quota = partitions / members.len();
    let mut extra = partitions % members.len();

    let mut order: Vec<usize> = members.iter().map(|&member| member as usize).collect();
    order.sort_by_key(|&member| group[member].member_id);
    let mut shares: Vec<Share> = order
        .into_iter()
        .map(|member| {
            let target = group[member].target;
            let count = target.len();
            let may_keep = quota + usize::from(count > quota && extra > 0);
            extra -= may_keep - quota;
            Share {
                member,
                kept: keep(target, may_keep),
                added: Vec::new(),
                count: count.min(may_keep),
            }
        })
        .collect();

    // First everybody up to the quota, in turn; then one more to some of those who have just that,
    // to begin with those who have had it from the start.
    let (mut short, mut full) = (VecDeque::new(), VecDeque::new());
    for (place, share) in shares.iter().enumerate() {
        if share.count < quota {
            short.push_back(place);
        } else if share.count == quota && extra > 0 {
            full.push_back(place);
        }
    }
    for run in not_kept(topics, &shares) {
        for partition in run.partitions() {
            let Some(place) = short.pop_front().or_else(|| full.pop_front()) else {
                debug_assert!(false, "the shares add up to all partitions");
                continue;
            };
            let share = &mut shares[place];
            append(
                &mut share.added,
                Run::new(run.topic_id(), partition..partition + 1),
            );
            share.count += 1;
            if share.count < quota {
                short.push_back(place);
            } else if share.count == quota {
                full.push_back(place);
            }
        }
    }
    let mut runs = Vec::new();
    for share in shares {
        runs.clear();
        merge(&share.kept, &share.added, &mut runs);
        targets[share.member] = target_of(&group[share.member], &runs);
    }
}

/// What a member keeps that may keep only so many: those of the lowest numbers, whatever the
/// topic, so that it loses about equally many of each.
fn keep(target: &TopicPartitions, limit: usize) -> Vec<Run> {
    if target.len() <= limit {
        return target.runs().to_vec();
    }
    let mut partitions: Vec<_> = target.iter().map(|(id, p)| (p, id)).collect();
    partitions.sort_unstable();
    partitions.truncate(limit);
    partitions.sort_unstable_by_key(|&(p, id)| (id, p));
    let mut runs = Vec::new();
    for (partition, topic_id) in partitions {
        append(&mut runs, Run::new(topic_id, partition..partition + 1));
    }
    runs
}

/// The partitions that no member keeps, by topic.
fn not_kept(topics: &[Topic], shares: &[Share]) -> Vec<Run> {
    let all = TopicPartitions::from_runs(
        topics
            .iter()
            .map(|topic| Run::new(topic.id, 0..topic.partition_count)),
    );
    let kept = TopicPartitions::from_runs(shares.iter().flat_map(|share| share.kept.clone()));
    all.difference(&kept).runs().to_vec()
}
