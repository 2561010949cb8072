//! Many runs, on all cores.

use std::{
    any::Any,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    run::{Outcome, TRACE_LINES, run},
    world::Failure,
};

/// Which seeds to run, and how.
#[derive(Debug, Clone)]
pub struct Seeds {
    /// The first.
    pub from: u64,
    /// How many.
    pub count: u64,
    /// No new seed is begun after that long.
    pub limit: Option<Duration>,
    /// How many at a time.
    pub threads: usize,
    /// Each is run twice, and has to go the same way.
    pub twice: bool,
    /// Print all that happens.
    pub trace: bool,
    /// How many failures are enough.
    pub failures_max: usize,
}

/// What all runs came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// How many runs there were.
    pub seeds: u64,
    /// How many steps they took.
    pub steps: u64,
    /// Records that applications processed.
    pub processed: u64,
    /// Seconds that passed in them.
    pub virtual_seconds: u64,
    /// The seeds that failed, each with what was wrong and the end of its trace.
    pub failures: Vec<(u64, String)>,
}

impl Seeds {
    /// Runs them. A failure does not end it; several do.
    pub fn run(&self) -> Totals {
        let next = AtomicU64::new(self.from);
        let end = self.from.saturating_add(self.count);
        let began = Instant::now();
        let stop = AtomicBool::new(false);
        let totals = Mutex::new(Totals::default());
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed)
                        && self.limit.is_none_or(|limit| began.elapsed() < limit)
                    {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= end {
                            return;
                        }
                        let (outcome, failure) = self.one(seed);
                        let mut totals = match totals.lock() {
                            Ok(totals) => totals,
                            Err(poisoned) => poisoned.into_inner(),
                        };
                        totals.seeds += 1;
                        if let Some(outcome) = outcome {
                            totals.steps += outcome.steps;
                            totals.processed += outcome.processed;
                            totals.virtual_seconds += outcome.virtual_ms as u64 / 1000;
                        }
                        if let Some(failure) = failure {
                            totals.failures.push((seed, failure));
                            if totals.failures.len() >= self.failures_max {
                                stop.store(true, Ordering::Relaxed);
                            }
                        }
                    }
                });
            }
        });
        let mut totals = match totals.into_inner() {
            Ok(totals) => totals,
            Err(poisoned) => poisoned.into_inner(),
        };
        totals.failures.sort();
        totals
    }

    fn one(&self, seed: u64) -> (Option<Outcome>, Option<String>) {
        if self.trace {
            return traced(seed);
        }
        // A panic is a failure like any other.
        let outcome = match std::panic::catch_unwind(|| run(seed, 0)) {
            Ok((outcome, _)) => outcome,
            Err(panic) => return (None, Some(panicked(&*panic))),
        };
        if let Some(failure) = &outcome.failure {
            // The run is the same with a trace.
            let (_, lines) = run(seed, TRACE_LINES);
            let words = report(outcome.steps, failure, &lines);
            return (Some(outcome), Some(words));
        }
        if self.twice {
            let (again, _) = run(seed, 0);
            if again != outcome {
                let words = format!("the second run differs: {outcome:?} {again:?}");
                return (Some(outcome), Some(words));
            }
        }
        (Some(outcome), None)
    }
}

/// Runs a seed and prints its whole trace.
fn traced(seed: u64) -> (Option<Outcome>, Option<String>) {
    let (outcome, lines) = match std::panic::catch_unwind(|| run(seed, usize::MAX >> 1)) {
        Ok(traced) => traced,
        Err(panic) => return (None, Some(panicked(&*panic))),
    };
    for line in &lines {
        println!("{line}");
    }
    println!("{outcome:#?}");
    let failure = outcome.failure.as_ref();
    let last = &lines[lines.len().saturating_sub(TRACE_LINES)..];
    let words = failure.map(|failure| report(outcome.steps, failure, last));
    (Some(outcome), words)
}

/// What a failure prints, whether one seed was run or many.
fn report(steps: u64, failure: &Failure, last: &[String]) -> String {
    let Failure { invariant, problem } = failure;
    format!("step {steps}: {invariant}: {problem}\n{}", last.join("\n"))
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panics: {}", text.unwrap_or("without a message"))
}
