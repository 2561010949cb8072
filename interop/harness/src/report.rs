//! What ran, how it ended, and the table that says so.

use std::time::{Duration, Instant};

use crate::failure::Failure;

/// What a step that passed has to say: a few words, and the clients it ran.
#[derive(Debug, Default)]
pub struct Passed {
    /// What was done, in numbers.
    pub note: String,
    /// Clients and tools that took part, with their versions.
    pub clients: Vec<String>,
    /// Bugs that the step came across by itself, each with how to see it again. They do not fail the
    /// run, since what looks for them looks elsewhere each time (see `fresh`): the end of the report
    /// lists them.
    pub findings: Vec<String>,
}

impl Passed {
    /// A step that passed, with what it did.
    pub fn note(note: impl Into<String>) -> Self {
        Self {
            note: note.into(),
            ..Self::default()
        }
    }

    /// Adds bugs to be fixed, which do not fail the run.
    pub fn with_findings(mut self, findings: Vec<String>) -> Self {
        self.findings.extend(findings);
        self
    }

    fn words(&self) -> String {
        let findings = match self.findings.len() {
            0 => String::new(),
            count => format!("{count} findings, see below"),
        };
        let words = self.clients.iter().chain([&self.note, &findings]);
        let words: Vec<&str> = words.map(String::as_str).collect();
        words
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("; ")
    }
}

enum Ending {
    Passed(Passed),
    /// At the second try only; how the first failed.
    PassedThen(Passed, String),
    Failed(String),
    Skipped(String),
}

/// The steps of one run of xtask.
#[derive(Default)]
pub struct Report {
    steps: Vec<(String, Ending, Duration)>,
}

impl Report {
    /// Runs a step and notes how it ended.
    pub fn run(&mut self, name: &str, step: impl FnOnce() -> Result<Passed, Failure>) {
        println!("── {name}");
        let began = Instant::now();
        let ending = match step() {
            Ok(passed) => Ending::Passed(passed),
            Err(failure) => Ending::Failed(failure.to_string()),
        };
        self.ended(name, ending, began);
    }

    /// Runs a step, and once more if it fails; it is given which try this is.
    pub fn run_twice(
        &mut self,
        name: &str,
        mut step: impl FnMut(usize) -> Result<Passed, Failure>,
    ) {
        println!("── {name}");
        let began = Instant::now();
        let ending = match step(1) {
            Ok(passed) => Ending::Passed(passed),
            Err(failure) => {
                println!("   failed, and is tried once more: {failure}");
                match step(2) {
                    Ok(passed) => Ending::PassedThen(passed, failure.to_string()),
                    Err(again) => Ending::Failed(format!("{again}\n    before that: {failure}")),
                }
            }
        };
        self.ended(name, ending, began);
    }

    fn ended(&mut self, name: &str, ending: Ending, began: Instant) {
        let took = began.elapsed();
        let seconds = took.as_secs_f64();
        match &ending {
            Ending::Passed(passed) => println!("   passed in {seconds:.1} s  {}", passed.note),
            Ending::PassedThen(passed, _) => {
                println!(
                    "   passed at the second try in {seconds:.1} s  {}",
                    passed.note
                );
            }
            Ending::Failed(why) => println!("   FAILED after {seconds:.1} s: {why}"),
            Ending::Skipped(why) => println!("   SKIPPED: {why}"),
        }
        self.steps.push((name.to_owned(), ending, took));
    }

    /// Notes a step that could not run. Under `CI=true` that is a failure.
    pub fn skip(&mut self, name: &str, why: &str) {
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
    pub fn finish(&self) -> bool {
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
        let mut unsteady = Vec::new();
        let mut findings = Vec::new();
        for (name, ending, took) in &self.steps {
            if let Ending::Passed(result) | Ending::PassedThen(result, _) = ending {
                findings.extend(result.findings.iter().map(|finding| (name, finding)));
            }
            let (word, what) = match ending {
                Ending::Passed(result) => {
                    passed += 1;
                    ("passed", result.words())
                }
                Ending::PassedThen(result, why) => {
                    passed += 1;
                    unsteady.push((name, why));
                    ("passed", format!("at the second try; {}", result.words()))
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
        // Repeated here for readers who look only at the end.
        for (name, finding) in findings {
            println!(
                "\n── {name} found a bug to be fixed, which does not fail this run: {finding}"
            );
        }
        for (name, why) in unsteady {
            println!("\n── {name} passed at its second try; at the first: {why}");
        }
        for (name, why) in failures {
            println!("\n── {name} FAILED: {why}");
        }
        println!("\n{passed} passed, {failed} failed, {skipped} skipped");
        failed == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_once_more_and_passes_if_that_does() {
        let mut report = Report::default();
        let mut tries = Vec::new();
        report.run_twice("a race", |number| {
            tries.push(number);
            match number {
                1 => Err(Failure::new("no answer")),
                _ => Ok(Passed::note("3 checks")),
            }
        });
        assert_eq!(tries, [1, 2]);
        assert!(matches!(&report.steps[0].1, Ending::PassedThen(_, why) if why == "no answer"));
        assert!(report.finish());
    }

    #[test]
    fn what_fails_twice_fails_with_both_reasons() {
        let mut report = Report::default();
        report.run_twice("broken", |number| {
            Err(Failure::new(format!("reason {number}")))
        });
        let Ending::Failed(why) = &report.steps[0].1 else {
            panic!("it has not failed")
        };
        assert!(
            why.contains("reason 1") && why.contains("reason 2"),
            "{why}"
        );
        assert!(!report.finish());
    }

    #[test]
    fn findings_do_not_fail_the_run_but_are_counted_in_the_table() {
        let mut report = Report::default();
        report.run("fresh seeds", || {
            Ok(Passed::note("100 seeds").with_findings(vec!["seed 7: two owners".into()]))
        });
        let Ending::Passed(passed) = &report.steps[0].1 else {
            panic!("it has not passed")
        };
        assert_eq!(passed.words(), "100 seeds; 1 findings, see below");
        assert!(report.finish());
    }

    #[test]
    fn what_passes_runs_once() {
        let mut report = Report::default();
        let mut runs = 0;
        report.run_twice("steady", |_| {
            runs += 1;
            Ok(Passed::default())
        });
        assert_eq!(runs, 1);
        assert!(matches!(report.steps[0].1, Ending::Passed(_)));
    }
}
