//! What ran, how it ended, and the table that says so.

use std::time::{Duration, Instant};

use crate::failure::Failure;

/// What a step that passed has to say: a few words, and the clients it ran.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// What was done, in numbers.
    pub(crate) note: String,
    /// Clients and tools that took part, with their versions.
    pub(crate) clients: Vec<String>,
}

impl Passed {
    pub(crate) fn note(note: impl Into<String>) -> Self {
        Self {
            note: note.into(),
            clients: Vec::new(),
        }
    }
}

enum Ending {
    Passed(Passed),
    Failed(String),
    Skipped(String),
}

/// The steps of one run of xtask.
#[derive(Default)]
pub(crate) struct Report {
    steps: Vec<(String, Ending, Duration)>,
}

impl Report {
    /// Runs a step and notes how it ended.
    pub(crate) fn run(&mut self, name: &str, step: impl FnOnce() -> Result<Passed, Failure>) {
        println!("── {name}");
        let began = Instant::now();
        let ending = match step() {
            Ok(passed) => {
                println!(
                    "   passed in {:.1} s  {}",
                    began.elapsed().as_secs_f64(),
                    passed.note
                );
                Ending::Passed(passed)
            }
            Err(failure) => {
                println!(
                    "   FAILED after {:.1} s: {failure}",
                    began.elapsed().as_secs_f64()
                );
                Ending::Failed(failure.to_string())
            }
        };
        self.steps.push((name.to_owned(), ending, began.elapsed()));
    }

    /// Notes a step that could not run. Under `CI=true` that is a failure.
    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        println!("── {name}\n   SKIPPED: {why}");
        let ending = if std::env::var("CI").is_ok_and(|value| value == "true") {
            println!("   which is a failure, since CI=true");
            Ending::Failed(format!("it could not run: {why}"))
        } else {
            Ending::Skipped(why.to_owned())
        };
        self.steps.push((name.to_owned(), ending, Duration::ZERO));
    }

    /// Prints the table and the closing line; true if nothing failed.
    pub(crate) fn finish(&self) -> bool {
        if self.steps.is_empty() {
            return true;
        }
        let width = self
            .steps
            .iter()
            .map(|step| step.0.len())
            .max()
            .unwrap_or(0);
        println!(
            "\n{:width$}  {:7}  {:>7}  what",
            "step", "result", "seconds"
        );
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        let mut failures = Vec::new();
        for (name, ending, took) in &self.steps {
            let (word, what) = match ending {
                Ending::Passed(result) => {
                    passed += 1;
                    let mut words = result.clients.clone();
                    words.push(result.note.clone());
                    words.retain(|word| !word.is_empty());
                    ("passed", words.join("; "))
                }
                Ending::Failed(why) => {
                    failed += 1;
                    failures.push((name, why));
                    ("FAILED", why.lines().next().unwrap_or_default().to_owned())
                }
                Ending::Skipped(why) => {
                    skipped += 1;
                    ("SKIPPED", why.clone())
                }
            };
            println!(
                "{name:width$}  {word:7}  {:7.1}  {what}",
                took.as_secs_f64()
            );
        }
        if skipped > 0 {
            println!("\n{skipped} SKIPPED: this machine lacks what they need (see the table).");
        }
        // Once more, where whoever reads only the end sees it.
        for (name, why) in failures {
            println!("\n── {name} FAILED: {why}");
        }
        println!("\n{passed} passed, {failed} failed, {skipped} skipped");
        failed == 0
    }
}
