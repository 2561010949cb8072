//! The search for chains of moves among classes.

use super::Part;

/// A move in a chain: some member of `from` gives a partition of `topic` to the next class.
#[derive(Clone, Copy)]
pub(super) struct Move {
    pub(super) from: u32,
    pub(super) topic: u32,
}

/// Finds chains.
pub(super) struct Search {
    /// For each class how many partitions it can give of each of its topics.
    holdings: Vec<Vec<u32>>,
    /// How each class was reached; where the search began has none.
    reached_by: Vec<Option<Move>>,
    class_seen: Vec<bool>,
    topic_seen: Vec<bool>,
    /// The classes reached, in order: the nearest first.
    queue: Vec<u32>,
    /// How many subscriptions were looked at, ever.
    pub(super) steps: usize,
}

impl Search {
    /// A search in which the classes give only partitions that `may_move`.
    pub(super) fn new(part: &Part, may_move: impl Fn(usize) -> bool) -> Search {
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
                if may_move(partition) {
                    let class = part.class_of[part.owner[partition] as usize];
                    *search.holding(part, class, topic as u32) += 1;
                }
            }
        }
        search
    }

    /// How many partitions of the topic the class can give.
    pub(super) fn holding(&mut self, part: &Part, class: u32, topic: u32) -> &mut u32 {
        let at = part.class_topics[class as usize]
            .binary_search(&topic)
            .expect("owners subscribe to what they own");
        &mut self.holdings[class as usize][at]
    }

    /// The classes reached since [`begin`](Search::begin).
    pub(super) fn reached(&self) -> &[u32] {
        &self.queue
    }

    pub(super) fn is_reached(&self, class: u32) -> bool {
        self.class_seen[class as usize]
    }

    /// Forgets what was reached.
    pub(super) fn begin(&mut self) {
        self.class_seen.fill(false);
        self.topic_seen.fill(false);
        self.reached_by.fill(None);
        self.queue.clear();
    }

    /// Begins at a class.
    pub(super) fn enter(&mut self, class: u32) {
        self.class_seen[class as usize] = true;
        self.queue.push(class);
    }

    /// Reaches every class that subscribes to the topic.
    pub(super) fn follow(&mut self, part: &Part, step: Move) {
        if std::mem::replace(&mut self.topic_seen[step.topic as usize], true) {
            return;
        }
        let classes = &part.topic_classes[step.topic as usize];
        self.steps += classes.len();
        for &to in classes {
            if !std::mem::replace(&mut self.class_seen[to as usize], true) {
                self.reached_by[to as usize] = Some(step);
                self.queue.push(to);
            }
        }
    }

    /// Reaches every class that a chain can end in, by the shortest one.
    pub(super) fn run(&mut self, part: &Part) {
        let mut next = 0;
        while next < self.queue.len() {
            let from = self.queue[next];
            next += 1;
            let topics = &part.class_topics[from as usize];
            self.steps += topics.len();
            for (at, &topic) in topics.iter().enumerate() {
                if self.holdings[from as usize][at] > 0 {
                    self.follow(part, Move { from, topic });
                }
            }
        }
    }

    /// The moves that lead to `last`, from the end to where the search began.
    pub(super) fn chain(&self, last: u32) -> Vec<Move> {
        let mut chain = Vec::new();
        let mut class = last;
        while let Some(&Some(step)) = self.reached_by.get(class as usize) {
            chain.push(step);
            class = step.from;
        }
        chain
    }
}
