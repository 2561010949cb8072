//! A model checker: every state that a small world can get into, over the coordinator as it is in
//! production.
//!
//! The worlds are a shard with its log, and members that are as simple as the protocol allows. In
//! each state everything that may happen next is tried: heartbeats whose answers arrive, whose
//! answers are lost, that are sent twice; members that take their time to let go, that leave, that
//! are put out without knowing, that come back under a static id; the coordinator lost before or
//! after it has written. States that differ only in the numbers of their epochs, and not in their
//! order, are one: nothing in the protocol depends on more. So there are finitely many, and all of
//! them are seen.
//!
//! In every state no partition has two owners, and a shard that is loaded from the log holds the
//! same; and from every state, once nothing more goes wrong, everybody comes to rest with everything
//! shared out, within a few heartbeats. That is checked by letting it go on from there, which is
//! more than that it comes to rest some time.

mod canonical;
mod client;
mod world;

use std::collections::{HashSet, VecDeque};

pub use world::Small;
use world::{Step, World};

/// What a model has come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Explored {
    /// States, each different from the others.
    pub states: u64,
    /// Steps from one to another, or to itself.
    pub steps: u64,
    /// Steps from the first state to the one that is farthest away.
    pub depth: u32,
    /// Whether that is all of them.
    pub is_all: bool,
}

/// A small world that is gone through.
#[derive(Debug)]
pub struct Named {
    /// What it is called.
    pub name: &'static str,
    /// How it is.
    pub small: Small,
    /// Whether it takes minutes.
    pub is_large: bool,
}

const PLAIN: Small = Small {
    partitions: 2,
    consumers: 2,
    statics: 0,
    classics: 0,
    crashes: true,
    losses: true,
    departures: true,
};

/// The worlds that are gone through.
pub const WORLDS: &[Named] = &[
    Named {
        name: "two members, two partitions",
        small: PLAIN,
        is_large: false,
    },
    Named {
        name: "a static member",
        small: Small {
            statics: 1,
            partitions: 1,
            ..PLAIN
        },
        is_large: false,
    },
    Named {
        name: "three members, three partitions, nothing lost",
        small: Small {
            consumers: 3,
            partitions: 3,
            crashes: false,
            losses: false,
            ..PLAIN
        },
        is_large: true,
    },
    Named {
        name: "from the classic protocol and back",
        small: Small {
            consumers: 1,
            classics: 1,
            partitions: 1,
            ..PLAIN
        },
        is_large: true,
    },
    Named {
        name: "three members, three partitions",
        small: Small {
            consumers: 3,
            partitions: 3,
            ..PLAIN
        },
        is_large: true,
    },
    Named {
        name: "both protocols, three members",
        small: Small {
            consumers: 2,
            classics: 1,
            partitions: 2,
            ..PLAIN
        },
        is_large: true,
    },
];

/// Goes through all states of a small world, nearest first, or the first of them if there are more
/// than `states_max`. An error tells the way to a state in which something is wrong.
pub fn explore(small: &Small, states_max: u64) -> Result<Explored, String> {
    let first = World::new(small);
    let mut seen = HashSet::from([first.fingerprint()]);
    let mut explored = Explored {
        states: 1,
        is_all: true,
        ..Explored::default()
    };
    // How each state was reached: its predecessor, and the step.
    let mut ways: Vec<(usize, Option<Step>)> = vec![(0, None)];
    let mut open = VecDeque::from([(0usize, 0u32, first)]);
    while let Some((index, depth, world)) = open.pop_front() {
        for step in world.steps() {
            explored.steps += 1;
            let mut next = world.fork();
            next.take(step);
            if !seen.insert(next.fingerprint()) {
                continue;
            }
            if explored.states >= states_max {
                explored.is_all = false;
                continue;
            }
            explored.states += 1;
            explored.depth = explored.depth.max(depth + 1);
            ways.push((index, Some(step)));
            if let Err(problem) = next.check().and_then(|()| next.fork().comes_to_rest()) {
                return Err(format!("{problem}\n{}", way(&ways, ways.len() - 1)));
            }
            open.push_back((ways.len() - 1, depth + 1, next));
        }
    }
    Ok(explored)
}

fn way(ways: &[(usize, Option<Step>)], mut index: usize) -> String {
    let mut steps = Vec::new();
    while let (before, Some(step)) = ways[index] {
        steps.push(format!("{step:?}"));
        index = before;
    }
    steps.reverse();
    format!("after {}", steps.join(", "))
}
