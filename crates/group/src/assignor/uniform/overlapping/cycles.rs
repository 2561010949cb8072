//! The last partitions that need not have moved.
//!
//! `home` gives back what can be given back without moving anything that is where it was. What is
//! left are exchanges in which one partition leaves its owner so that two return to theirs. Each is
//! a cycle of negative cost in the graph of possible moves, and when there is none, no assignment
//! that is as even keeps more.

use super::{NOBODY, Part};

/// How many moves may be looked at. Beyond that, in the largest groups, a few partitions may have
/// moved that need not have.
const STEPS_MAX: usize = 20_000_000;

/// No node.
const NONE: u32 = u32::MAX;

/// Paths by Bellman and Ford. The nodes are the members, the topics, the classes, and the loads: a
/// partition goes from a member through its topic to a class that subscribes to it and a member
/// there, or straight to the member that has had it. Through a load, a chain may end at a member
/// with one partition fewer than the one where it begins.
struct Graph {
    topics: usize,
    classes: usize,
    loads: usize,
    /// The least load.
    least: u32,
    distance: Vec<i32>,
    /// Where the shortest way to each node comes from, and the partition that moves there, if one
    /// does.
    from: Vec<(u32, u32)>,
    /// In which walk each node was last seen.
    seen: Vec<u32>,
}

/// Moves partitions around cycles until none brings more back than it takes away.
pub(super) fn cancel(part: &mut Part) {
    let is_away = |p: usize| part.before[p] != NOBODY && part.is_foreign(p);
    if !(0..part.owner.len()).any(is_away) {
        return;
    }
    let mut graph = Graph::new(part);
    let mut steps = 0;
    while steps <= STEPS_MAX {
        steps += part.owner.len() + graph.distance.len();
        if !graph.relax(part) {
            return;
        }
        if let Some(node) = graph.cycle() {
            for (partition, member) in graph.moves(node) {
                part.give(partition as usize, member);
            }
            graph.begin();
        }
    }
}

impl Graph {
    fn new(part: &Part) -> Graph {
        let members = part.members.len();
        let loads = (0..members as u32).map(|member| part.loads.of(member));
        let least = loads.clone().min().unwrap_or(0);
        let most = loads.max().unwrap_or(0);
        let topics = members;
        let classes = topics + part.topics.len();
        let loads = classes + part.class_topics.len();
        let nodes = loads + (most - least) as usize;
        Graph {
            topics,
            classes,
            loads,
            least,
            distance: vec![0; nodes],
            from: vec![(NONE, NONE); nodes],
            seen: vec![NONE; nodes],
        }
    }

    fn begin(&mut self) {
        self.distance.fill(0);
        self.from.fill((NONE, NONE));
    }

    /// Looks at every move once. Whether any shortens a way.
    fn relax(&mut self, part: &Part) -> bool {
        let mut shorter = false;
        let nodes = self.distance.len();
        let mut edge = |from: usize, to: usize, cost: i32, partition: u32| {
            let distance = self.distance[from] + cost;
            if distance < self.distance[to] {
                self.distance[to] = distance;
                self.from[to] = (from as u32, partition);
                shorter = true;
            }
        };
        for (topic, starts) in part.starts.windows(2).enumerate() {
            for partition in starts[0]..starts[1] {
                let owner = part.owner[partition] as usize;
                let before = part.before[partition];
                let is_foreign = part.is_foreign(partition);
                edge(
                    owner,
                    self.topics + topic,
                    i32::from(!is_foreign),
                    partition as u32,
                );
                if is_foreign && before != NOBODY {
                    edge(owner, before as usize, -1, partition as u32);
                }
            }
        }
        for (class, topics) in part.class_topics.iter().enumerate() {
            for &topic in topics {
                edge(self.topics + topic as usize, self.classes + class, 0, NONE);
            }
        }
        for (member, &class) in part.class_of.iter().enumerate() {
            edge(self.classes + class as usize, member, 0, NONE);
            let load = (part.loads.of(member as u32) - self.least) as usize;
            if self.loads + load < nodes {
                edge(member, self.loads + load, 0, NONE);
            }
            if load > 0 {
                edge(self.loads + load - 1, member, 0, NONE);
            }
        }
        shorter
    }

    /// A node of a cycle, if the shortest ways have one.
    fn cycle(&mut self) -> Option<u32> {
        self.seen.fill(NONE);
        for start in 0..self.from.len() as u32 {
            let mut node = start;
            while node != NONE && self.seen[node as usize] == NONE {
                self.seen[node as usize] = start;
                node = self.from[node as usize].0;
            }
            if node != NONE && self.seen[node as usize] == start {
                return Some(node);
            }
        }
        None
    }

    /// The moves of the cycle: partitions, and who gets them.
    fn moves(&self, start: u32) -> Vec<(u32, u32)> {
        let mut moves = Vec::new();
        let mut receiver = NONE;
        let mut node = start;
        // A topic's partition goes to the next member on the way, which may lie before the start:
        // so around until the first member comes up again.
        let mut first_member = NONE;
        loop {
            if (node as usize) < self.topics {
                if node == first_member {
                    return moves;
                }
                if first_member == NONE {
                    first_member = node;
                }
                receiver = node;
            }
            let (from, partition) = self.from[node as usize];
            if partition != NONE && receiver != NONE {
                moves.push((partition, receiver));
            }
            node = from;
        }
    }
}
