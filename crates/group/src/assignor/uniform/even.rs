//! Members that all subscribe to the same topics.

use std::ops::Range;

use super::free::Free;
use crate::{
    TopicPartitions,
    assignor::{
        Member,
        subscriptions::{Seek, Topic},
        target_of,
    },
    topic_partitions::{Run, append, merge},
};

/// What a member keeps.
struct Kept {
    member: u32,
    /// Where its runs are.
    runs: Range<usize>,
    count: usize,
}

/// Gives each of `members` the `topics`' partitions divided by their number, and one more to as
/// many of them as have to have it: first to those that have it, then to those that get something
/// anyway.
///
/// Each keeps as much of its target as that allows. No even assignment moves less, because any that
/// leaves a member with one more could as well leave it with one that has it already.
pub(super) fn assign(
    group: &[Member<'_>],
    members: &[u32],
    topics: &[Topic],
    targets: &mut [TopicPartitions],
) {
    let mut free = Free::new(topics);
    let quota = free.len() / members.len();
    let mut extra = free.len() % members.len();

    let mut kept_runs: Vec<Run> = Vec::new();
    let mut kept: Vec<Kept> = Vec::with_capacity(members.len());
    let mut short = 0;
    for &member in members {
        let limit = quota + usize::from(extra > 0);
        let first = kept_runs.len();
        let mut count = 0;
        let mut seek = Seek::new(topics);
        for run in group[member as usize].target.runs() {
            if count == limit {
                break;
            }
            if let Some(topic) = seek.find(run.topic_id()) {
                count += free.take(topic, run.partitions(), limit - count, |partitions| {
                    kept_runs.push(Run::new(run.topic_id(), partitions));
                });
            }
        }
        if count > quota {
            extra -= 1;
        } else if count < quota {
            short += 1;
        }
        kept.push(Kept {
            member,
            runs: first..kept_runs.len(),
            count,
        });
    }

    let mut extra_for_short = extra.min(short);
    let mut extra_for_full = extra - extra_for_short;
    let mut added = Vec::new();
    let mut runs = Vec::new();
    for Kept {
        member,
        runs: kept,
        count,
    } in kept
    {
        let extra = match count.cmp(&quota) {
            std::cmp::Ordering::Less => &mut extra_for_short,
            std::cmp::Ordering::Equal => &mut extra_for_full,
            std::cmp::Ordering::Greater => &mut 0,
        };
        let mut missing = quota.saturating_sub(count);
        if *extra > 0 {
            *extra -= 1;
            missing += 1;
        }
        let kept = &kept_runs[kept];
        let member = member as usize;
        if missing == 0 {
            targets[member] = target_of(&group[member], kept);
            continue;
        }
        added.clear();
        while missing > 0
            && let Some((topic, partitions)) = free.next(missing)
        {
            missing -= partitions.len();
            append(&mut added, Run::new(topics[topic].id, partitions));
        }
        runs.clear();
        merge(kept, &added, &mut runs);
        targets[member] = target_of(&group[member], &runs);
    }
}
