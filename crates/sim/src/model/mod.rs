//! A model checker: every state that a small world can get into, over the coordinator as it is in
//! production.
//!
//! The worlds are a shard with its log, and members that are as simple as the protocol allows. In
//! each state everything that may happen next is tried: heartbeats whose answers arrive, that are
//! lost or whose answers are, that are sent twice; members that take their time to let go, that
//! leave, that are put out without knowing, that come back under a static id; the coordinator lost
//! before or after it has written. States that differ only in what nothing depends on are one (see
//! `canonical.rs`), so there are finitely many, and all of them are seen. How many is known, and
//! checked: a world that has become smaller has lost something.
//!
//! In every state no partition has two owners, and a shard that is loaded from the log holds the
//! same; and from every state, once nothing more goes wrong, everybody comes to rest with everything
//! shared out, within a few heartbeats. That is checked by letting it go on from there, which is
//! more than that it comes to rest some time.

mod canonical;
mod client;
mod world;
mod worlds;

use std::{collections::VecDeque, fmt};

use rustc_hash::FxHashMap;

pub use world::Small;
use world::{Step, World};
pub use worlds::{Named, WORLDS};

/// What a model has come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Explored {
    /// States, each different from the others.
    pub states: u64,
    /// Steps from one to another, or to itself.
    pub steps: u64,
    /// Steps from the first state to the one that is farthest away.
    pub depth: u32,
    /// Rounds of heartbeats from the worst state until everybody rests.
    pub rounds: u32,
}

impl Explored {
    const fn of(states: u64, steps: u64, depth: u32, rounds: u32) -> Explored {
        Explored {
            states,
            steps,
            depth,
            rounds,
        }
    }
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} states, {} steps, {} deep, {} rounds to rest",
            self.states, self.steps, self.depth, self.rounds
        )
    }
}

/// What is known of a state.
#[derive(Clone, Copy, Default)]
struct Known {
    /// It has been reached, and will be gone on from.
    is_reached: bool,
    /// How many rounds it takes from there until everybody rests.
    rounds: Option<u8>,
}

/// Goes through all states of a small world, nearest first, or the first of them if there are more
/// than `states_max`. An error tells the way to a state in which something is wrong.
pub fn explore(small: &Small, states_max: u64) -> Result<Explored, String> {
    let mut explored = Explored::default();
    let mut states = States::default();
    let first = World::new(small);
    states.reach(first.fingerprint(&first.view()));
    explored.states = 1;
    // How each state was reached: its predecessor, and the step.
    let mut ways: Vec<(u32, Option<Step>)> = vec![(0, None)];
    let mut open = VecDeque::from([(0, 0, first)]);
    while let Some((index, depth, world)) = open.pop_front() {
        for step in world.steps(&world.view()) {
            explored.steps += 1;
            let mut next = world.fork();
            next.take(step);
            let view = next.view();
            if explored.states >= states_max || !states.reach(next.fingerprint(&view)) {
                continue;
            }
            explored.states += 1;
            explored.depth = explored.depth.max(depth + 1);
            let way = ways.len() as u32;
            ways.push((index, Some(step)));
            let checked = next.follow().and_then(|()| next.check(&view));
            match checked.and_then(|()| states.rounds(next.fork())) {
                Ok(rounds) => explored.rounds = explored.rounds.max(rounds),
                Err(problem) => {
                    let way = describe(&ways, way);
                    return Err(format!("after {} steps: {problem}\n{way}", depth + 1));
                }
            }
            open.push_back((way, depth + 1, next));
        }
    }
    Ok(explored)
}

#[derive(Default)]
struct States {
    known: FxHashMap<u128, Known>,
}

impl States {
    /// Whether it is a new one.
    fn reach(&mut self, fingerprint: u128) -> bool {
        let known = self.known.entry(fingerprint).or_default();
        !std::mem::replace(&mut known.is_reached, true)
    }

    /// Lets a world go on from where it is, with nothing that goes wrong, until everybody rests, or
    /// until what follows is known. How many rounds that takes.
    fn rounds(&mut self, mut world: World) -> Result<u32, String> {
        let rounds_max = world.rounds_max();
        let mut passed = Vec::new();
        let mut words = Vec::new();
        let mut rounds = loop {
            let view = world.view();
            let fingerprint = world.fingerprint(&view);
            let known = self.known.get(&fingerprint).and_then(|known| known.rounds);
            if let Some(rounds) = known {
                break u32::from(rounds);
            }
            let rests = world.rests(&view);
            if !rests {
                passed.push(fingerprint);
            }
            words.push(world.brief(&view));
            if passed.len() > rounds_max as usize {
                return Err(format!(
                    "no rest after {rounds_max} rounds of heartbeats:\n{}\n{}",
                    words.join("\n"),
                    world.describe(&view)
                ));
            }
            world.calm_round();
            world.follow()?;
            let after = world.view();
            world.check(&after)?;
            if rests {
                if world.fingerprint(&after) != fingerprint {
                    return Err(format!("it did not rest: {}", world.describe(&after)));
                }
                self.known.entry(fingerprint).or_default().rounds = Some(0);
                break 0;
            }
        };
        for fingerprint in passed.into_iter().rev() {
            rounds += 1;
            self.known.entry(fingerprint).or_default().rounds = Some(rounds as u8);
        }
        if rounds > rounds_max {
            Err(format!(
                "{rounds} rounds of heartbeats until everybody rests"
            ))
        } else {
            Ok(rounds)
        }
    }
}

fn describe(ways: &[(u32, Option<Step>)], mut index: u32) -> String {
    let mut steps = Vec::new();
    while let (before, Some(step)) = ways[index as usize] {
        steps.push(format!("{step:?}"));
        index = before;
    }
    steps.reverse();
    format!("after {}", steps.join(", "))
}
