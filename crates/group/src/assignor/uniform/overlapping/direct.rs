//! Moves from an owner straight to another subscriber of the topic.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{NOBODY, Part};

/// Rounds over all topics. Where members with different subscriptions form chains, loads spread
/// along them only slowly; `chains` does that better.
const ROUNDS_MAX: usize = 16;

/// The classes of a topic by their least load. Entries may be out of date.
struct Receivers(BinaryHeap<Reverse<(u32, u32)>>);

impl Receivers {
    fn new(part: &Part, topic: u32) -> Receivers {
        let classes = &part.topic_classes[topic as usize];
        let entry = |&class: &u32| Reverse((part.loads.least(class).0, class));
        Receivers(classes.iter().map(entry).collect())
    }

    /// The subscriber with the least load, and its load.
    fn least(&mut self, part: &Part) -> (u32, u32) {
        loop {
            let mut top = self.0.peek_mut().expect("a topic has subscribers");
            let Reverse((load, class)) = *top;
            let (least, member) = part.loads.least(class);
            if least <= load {
                return (least, member);
            }
            *top = Reverse((least, class));
        }
    }

    /// A member's load has become smaller.
    fn decreased(&mut self, part: &Part, member: u32) {
        let class = part.class_of[member as usize];
        self.0.push(Reverse((part.loads.least(class).0, class)));
    }
}

/// Gives every unassigned partition to the subscriber with the least load.
pub(super) fn hand_out(part: &mut Part, order: &[u32]) {
    for &topic in order {
        let partitions = part.starts[topic as usize]..part.starts[topic as usize + 1];
        let mut receivers = None;
        for partition in partitions {
            if part.owner[partition] == NOBODY {
                let receivers = receivers.get_or_insert_with(|| Receivers::new(part, topic));
                let (_, member) = receivers.least(part);
                part.give(partition, member);
            }
        }
    }
}

/// Moves partitions until no topic has an owner with two more than a subscriber, or enough is
/// enough.
pub(super) fn level(part: &mut Part, order: &[u32]) {
    for _ in 0..ROUNDS_MAX {
        let mut moved = false;
        for &topic in order {
            moved |= level_topic(part, topic);
        }
        if !moved {
            return;
        }
    }
}

/// Moves partitions of one topic from its most loaded owners to its least loaded subscribers.
fn level_topic(part: &mut Part, topic: u32) -> bool {
    let partitions = part.starts[topic as usize]..part.starts[topic as usize + 1];
    let owners = &part.owner[partitions.clone()];
    let most = owners.iter().map(|&owner| part.loads.of(owner)).max();
    let least = part.topic_classes[topic as usize]
        .iter()
        .map(|&class| part.loads.least(class).0)
        .min();
    if most.unwrap_or(0) <= least.unwrap_or(0).saturating_add(1) {
        return false;
    }

    // By owner; the last of an owner goes first, so those it has newly come last.
    let mut by_owner: Vec<usize> = partitions.collect();
    by_owner.sort_by_key(|&partition| (part.owner[partition], part.is_foreign(partition)));
    let mut givers: BinaryHeap<(u32, Reverse<u32>, usize, usize)> = BinaryHeap::new();
    let mut start = 0;
    for own in by_owner.chunk_by(|&a, &b| part.owner[a] == part.owner[b]) {
        let owner = part.owner[own[0]];
        let end = start + own.len();
        givers.push((part.loads.of(owner), Reverse(owner), start, end));
        start = end;
    }
    let mut receivers = Receivers::new(part, topic);
    let mut moved = false;
    while let Some((load, Reverse(giver), start, end)) = givers.pop() {
        let now = part.loads.of(giver);
        if now != load {
            givers.push((now, Reverse(giver), start, end));
            continue;
        }
        let (least, receiver) = receivers.least(part);
        if load <= least + 1 {
            break;
        }
        part.give(by_owner[end - 1], receiver);
        receivers.decreased(part, giver);
        moved = true;
        if start < end - 1 {
            givers.push((load - 1, Reverse(giver), start, end - 1));
        }
    }
    moved
}
