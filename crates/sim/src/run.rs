//! One run, from its seed to its end.

use crate::{
    trace::Trace,
    world::{Failure, World},
};

/// How many lines of a trace are kept unless all are asked for.
pub(crate) const TRACE_LINES: usize = 60;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) failure: Option<Failure>,
    pub(crate) steps: u64,
    /// Records of `__consumer_offsets` that were written.
    pub(crate) written: u64,
    /// Records that applications processed.
    pub(crate) processed: u64,
    /// How much time has passed in it.
    pub(crate) virtual_ms: i64,
    /// All that happened, in a number: the same for the same seed.
    pub(crate) digest: u64,
}

/// Runs one seed. With a trace of that many lines, if more than none.
pub(crate) fn run(seed: u64, trace_lines: usize) -> (Outcome, Vec<String>) {
    let mut world = World::new(seed, Trace::new(trace_lines));
    let begin = world.now;
    let profile = world.profile.clone();
    world.note(|| format!("{profile:?}"));
    world.run_until(begin + profile.trouble_ms);
    if world.failure.is_none() {
        world.calm_down();
    }
    let outcome = Outcome {
        failure: world.failure.take(),
        steps: world.steps,
        written: world.coordinator.log.iter().map(|b| b.len() as u64).sum(),
        processed: world.ledger.processed,
        virtual_ms: world.now - begin,
        digest: world.digest(),
    };
    (outcome, world.trace.into_lines())
}
