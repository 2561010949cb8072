//! Sends partitions back to who had them, where that costs no balance.

use super::{NOBODY, Part};

/// How many partitions of a member are tried in exchange for one.
const TRIES_MAX: usize = 64;

/// Evening out topic by topic moves some partitions for nothing: of two members one ends with more
/// that could as well be the other, or each has taken what the other could have kept.
pub(super) fn send(part: &mut Part) {
    let away = |part: &Part, partition: usize| {
        part.before[partition] != NOBODY && part.is_foreign(partition)
    };
    let moved: Vec<usize> = (0..part.owner.len())
        .filter(|&partition| away(part, partition))
        .collect();
    if moved.is_empty() {
        return;
    }
    // What each member has newly.
    let mut newly = vec![Vec::new(); part.members.len()];
    for partition in 0..part.owner.len() {
        if part.is_foreign(partition) {
            newly[part.owner[partition] as usize].push(partition);
        }
    }
    for partition in moved {
        if !away(part, partition) {
            continue;
        }
        let (home, owner) = (part.before[partition], part.owner[partition]);
        if part.loads.of(home) < part.loads.of(owner) {
            part.give(partition, home);
            continue;
        }
        let own = &mut newly[home as usize];
        let still = |other: usize| part.owner[other] == home && part.is_foreign(other);
        while own.pop_if(|other| !still(*other)).is_some() {}
        let exchange = own
            .iter()
            .rev()
            .take(TRIES_MAX)
            .copied()
            .find(|&other| still(other) && part.subscribes(owner, part.topic_of(other)));
        if let Some(other) = exchange {
            part.give(partition, home);
            part.give(other, owner);
            newly[owner as usize].push(other);
        }
    }
}
