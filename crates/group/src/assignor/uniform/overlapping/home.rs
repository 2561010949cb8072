//! Sends partitions back to who had them, where that costs no balance.

use super::{
    NOBODY, Part,
    search::{Move, Search},
};

/// As in [`chains`](super::chains).
const STEPS_MAX: usize = 50_000_000;

/// Evening out topic by topic moves some partitions for nothing: of two members one ends with more
/// that could as well be the other, or each has taken what the other could have kept.
///
/// So for each partition that has left its owner, a chain is looked for that makes room there
/// without moving anything else that is where it was: of partitions that members have newly, from
/// the old owner to the new one, or to somebody who can have one more when the new one has one
/// fewer. If all could stay where they were, they do afterwards; a cooperative group thus needs no
/// third rebalance.
pub(super) fn send(part: &mut Part) {
    let is_away = |part: &Part, partition: usize| {
        part.before[partition] != NOBODY && part.is_foreign(partition)
    };
    let away: Vec<usize> = (0..part.owner.len())
        .filter(|&partition| is_away(part, partition))
        .collect();
    if away.is_empty() {
        return;
    }
    let mut newly = vec![Vec::new(); part.members.len()];
    for partition in 0..part.owner.len() {
        if part.is_foreign(partition) {
            newly[part.owner[partition] as usize].push(partition);
        }
    }
    let mut search = Search::new(part, |partition| part.is_foreign(partition));
    for partition in away {
        if !is_away(part, partition) {
            continue;
        }
        if search.steps > STEPS_MAX {
            return;
        }
        let (home, owner) = (part.before[partition], part.owner[partition]);
        if part.loads.of(home) < part.loads.of(owner) {
            give(&mut search, part, &mut newly, partition, home);
            continue;
        }

        search.begin();
        let own = &mut newly[home as usize];
        own.retain(|&other| part.owner[other] == home && part.is_foreign(other));
        search.steps += own.len();
        for &other in own.iter() {
            let topic = part.topic_of(other) as u32;
            search.follow(
                part,
                Move {
                    from: NOBODY,
                    topic,
                },
            );
        }
        search.run(part);
        let owner_class = part.class_of[owner as usize];
        let end = if search.is_reached(owner_class) {
            Some((owner_class, owner))
        } else {
            let classes = search.reached().iter();
            classes
                .map(|&class| (class, part.loads.least(class)))
                .find(|(_, (least, _))| *least < part.loads.of(owner))
                .map(|(class, (_, member))| (class, member))
        };
        let Some((last, mut receiver)) = end else {
            continue;
        };
        for Move { from, topic } in search.chain(last) {
            let mut partitions = part.starts[topic as usize]..part.starts[topic as usize + 1];
            search.steps += partitions.len();
            let gives = |owner: u32| match from {
                NOBODY => owner == home,
                class => part.class_of[owner as usize] == class,
            };
            let step = partitions
                .find(|&other| part.is_foreign(other) && gives(part.owner[other]))
                .expect("the search has found one");
            let giver = part.owner[step];
            give(&mut search, part, &mut newly, step, receiver);
            receiver = giver;
        }
        give(&mut search, part, &mut newly, partition, home);
    }
}

/// Gives a partition that its owner has newly to another member.
fn give(
    search: &mut Search,
    part: &mut Part,
    newly: &mut [Vec<usize>],
    partition: usize,
    member: u32,
) {
    let topic = part.topic_of(partition) as u32;
    let from = part.class_of[part.owner[partition] as usize];
    *search.holding(part, from, topic) -= 1;
    part.give(partition, member);
    if part.is_foreign(partition) {
        *search.holding(part, part.class_of[member as usize], topic) += 1;
        newly[member as usize].push(partition);
    }
}
