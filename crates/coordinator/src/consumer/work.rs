//! Computations that take longer than a step may.

use super::{
    regex::{RegexOutcome, RegexTask},
    target::{TargetOutcome, TargetTask},
};

/// A computation to be done outside of the shard.
#[derive(Debug)]
pub struct Work(Task);

/// The result of [`Work`].
#[derive(Debug)]
pub struct WorkDone(Outcome);

#[derive(Debug)]
pub(super) enum Task {
    Target(TargetTask),
    Regexes(RegexTask),
}

#[derive(Debug)]
pub(super) enum Outcome {
    Target(TargetOutcome),
    Regexes(RegexOutcome),
}

impl Work {
    pub(super) fn new(task: Task) -> Work {
        Work(task)
    }

    /// Computes. Takes time, and needs nothing but the value itself.
    pub fn run(self) -> WorkDone {
        WorkDone(match self.0 {
            Task::Target(task) => Outcome::Target(task.run()),
            Task::Regexes(task) => Outcome::Regexes(task.run()),
        })
    }
}

impl WorkDone {
    pub(super) fn into_outcome(self) -> Outcome {
        self.0
    }
}
