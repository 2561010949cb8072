//! Moves through others: a member gives a partition to a second, which gives one of another topic
//! to a third that the first shares no topic with.

use super::{
    Part,
    search::{Move, Search},
};

/// How many subscriptions may be looked at in search of chains. Groups whose members each have
/// other subscriptions, many and overlapping, could take minutes; they stay a little uneven.
const STEPS_MAX: usize = 50_000_000;

/// Moves partitions along chains until none makes the loads more even.
pub(super) fn level(part: &mut Part) {
    let mut search = Search::new(part, |_| true);
    let mut settled = vec![false; part.class_topics.len()];
    // The most loaded class first. When no chain leads from it to anybody with two fewer, the
    // classes it reaches have that load or one less, whatever is moved among the others later.
    while let Some((most, class)) = (0..settled.len() as u32)
        .filter(|&class| !settled[class as usize])
        .map(|class| (part.loads.most(class).0, class))
        .max_by_key(|&(load, class)| (load, std::cmp::Reverse(class)))
    {
        search.begin();
        search.enter(class);
        search.run(part);
        let (least, last) = search
            .reached()
            .iter()
            .map(|&class| (part.loads.least(class).0, class))
            .min()
            .expect("a class reaches itself");
        if most <= least + 1 {
            for &class in search.reached() {
                settled[class as usize] = true;
            }
            continue;
        }
        if search.steps > STEPS_MAX {
            return;
        }
        let chain = search.chain(last);
        loop {
            apply(&mut search, part, &chain, last);
            let further = part.loads.most(class).0 > part.loads.least(last).0 + 1;
            let mut holds = |step: &Move| *search.holding(part, step.from, step.topic) > 0;
            if !further || !chain.iter().all(&mut holds) {
                break;
            }
        }
    }
}

/// Makes the moves of a chain, beginning at its end: who gives a partition there receives the
/// one of the move before.
fn apply(search: &mut Search, part: &mut Part, chain: &[Move], last: u32) {
    let (_, mut receiver) = part.loads.least(last);
    let mut to = last;
    for &Move { from, topic } in chain {
        let partitions = part.starts[topic as usize]..part.starts[topic as usize + 1];
        search.steps += partitions.len();
        // Of the most loaded member that has any, and rather one that it has newly.
        let partition = partitions
            .filter(|&partition| part.class_of[part.owner[partition] as usize] == from)
            .max_by_key(|&partition| {
                let load = part.loads.of(part.owner[partition]);
                (load, part.is_foreign(partition))
            })
            .expect("the class holds one");
        let giver = part.owner[partition];
        part.give(partition, receiver);
        *search.holding(part, from, topic) -= 1;
        *search.holding(part, to, topic) += 1;
        (receiver, to) = (giver, from);
    }
    // The last one to give need not be the one that has too many, with which it shares all
    // topics.
    let (most, loaded) = part.loads.most(to);
    if most > part.loads.of(receiver) + 1 {
        let partition = part
            .owner
            .iter()
            .position(|&owner| owner == loaded)
            .expect("who has too many has one");
        search.steps += partition;
        part.give(partition, receiver);
    }
}
