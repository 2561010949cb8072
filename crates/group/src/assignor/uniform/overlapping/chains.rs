//! Moves through others: a member gives a partition to a second, which gives one of another topic
//! to a third that the first shares no topic with.

use super::Part;

/// How many subscriptions may be looked at in search of chains. Groups whose members each have
/// other subscriptions, many and overlapping, could take minutes; they stay a little uneven.
const STEPS_MAX: usize = 50_000_000;

/// A move in a chain: some member of `from` gives a partition of `topic` to the next class.
#[derive(Clone, Copy)]
struct Move {
    from: u32,
    topic: u32,
}

/// The search for a chain from one class.
struct Search {
    /// For each class how many partitions it has of each of its topics.
    holdings: Vec<Vec<u32>>,
    /// How each class was reached; the start and those not reached have none.
    reached_by: Vec<Option<Move>>,
    class_seen: Vec<bool>,
    topic_seen: Vec<bool>,
    /// The classes reached, in order.
    queue: Vec<u32>,
    steps: usize,
}

/// Moves partitions along chains until none makes the loads more even.
pub(super) fn level(part: &mut Part) {
    let mut search = Search::new(part);
    let mut settled = vec![false; part.class_topics.len()];
    // The most loaded class first. When no chain leads from it to anybody with two fewer, the
    // classes it reaches have that load or one less, whatever is moved among the others later.
    while let Some((most, class)) = (0..settled.len() as u32)
        .filter(|&class| !settled[class as usize])
        .map(|class| (part.loads.most(class).0, class))
        .max_by_key(|&(load, class)| (load, std::cmp::Reverse(class)))
    {
        search.run(part, class);
        let (least, last) = search
            .queue
            .iter()
            .map(|&class| (part.loads.least(class).0, class))
            .min()
            .expect("a class reaches itself");
        if most <= least + 1 {
            for &class in &search.queue {
                settled[class as usize] = true;
            }
            continue;
        }
        if search.steps > STEPS_MAX {
            return;
        }
        let chain = search.chain(last);
        loop {
            search.apply(part, &chain, last);
            let further = part.loads.most(class).0 > part.loads.least(last).0 + 1;
            if !further || !chain.iter().all(|&step| search.holds(part, step)) {
                break;
            }
        }
    }
}

impl Search {
    fn new(part: &Part) -> Search {
        let mut search = Search {
            holdings: part.class_topics.iter().map(|t| vec![0; t.len()]).collect(),
            reached_by: vec![None; part.class_topics.len()],
            class_seen: vec![false; part.class_topics.len()],
            topic_seen: vec![false; part.topics.len()],
            queue: Vec::new(),
            steps: 0,
        };
        for topic in 0..part.topics.len() {
            for partition in part.starts[topic]..part.starts[topic + 1] {
                let class = part.class_of[part.owner[partition] as usize];
                *search.holding(part, class, topic as u32) += 1;
            }
        }
        search
    }

    fn holding(&mut self, part: &Part, class: u32, topic: u32) -> &mut u32 {
        let at = part.class_topics[class as usize]
            .binary_search(&topic)
            .expect("owners subscribe to what they own");
        &mut self.holdings[class as usize][at]
    }

    fn holds(&mut self, part: &Part, step: Move) -> bool {
        *self.holding(part, step.from, step.topic) > 0
    }

    /// Finds every class that a chain from `class` can end in, by the shortest chain.
    fn run(&mut self, part: &Part, class: u32) {
        self.class_seen.fill(false);
        self.topic_seen.fill(false);
        self.reached_by.fill(None);
        self.queue.clear();
        self.queue.push(class);
        self.class_seen[class as usize] = true;
        let mut next = 0;
        while next < self.queue.len() {
            let from = self.queue[next];
            next += 1;
            let topics = &part.class_topics[from as usize];
            self.steps += topics.len();
            for (&topic, &holding) in topics.iter().zip(&self.holdings[from as usize]) {
                if holding == 0 || std::mem::replace(&mut self.topic_seen[topic as usize], true) {
                    continue;
                }
                let classes = &part.topic_classes[topic as usize];
                self.steps += classes.len();
                for &to in classes {
                    if !std::mem::replace(&mut self.class_seen[to as usize], true) {
                        self.reached_by[to as usize] = Some(Move { from, topic });
                        self.queue.push(to);
                    }
                }
            }
        }
    }

    /// The moves that lead to `last`, from the end to the start.
    fn chain(&self, last: u32) -> Vec<Move> {
        let mut chain = Vec::new();
        let mut class = last;
        while let Some(step) = self.reached_by[class as usize] {
            chain.push(step);
            class = step.from;
        }
        chain
    }

    /// Makes the moves of a chain, beginning at its end: who gives a partition there receives the
    /// one of the move before.
    fn apply(&mut self, part: &mut Part, chain: &[Move], last: u32) {
        let (_, mut receiver) = part.loads.least(last);
        let mut to = last;
        for &Move { from, topic } in chain {
            let partitions = part.starts[topic as usize]..part.starts[topic as usize + 1];
            self.steps += partitions.len();
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
            *self.holding(part, from, topic) -= 1;
            *self.holding(part, to, topic) += 1;
            (receiver, to) = (giver, from);
        }
        // The last one to give need not be the one that has too many, with which it shares all
        // topics.
        let (most, loaded) = part.loads.most(to);
        if most > part.loads.of(receiver) + 1 {
            self.steps += part.owner.len();
            let partition = (0..part.owner.len())
                .filter(|&partition| part.owner[partition] == loaded)
                .max_by_key(|&partition| part.is_foreign(partition))
                .expect("who has too many has one");
            part.give(partition, receiver);
        }
    }
}
