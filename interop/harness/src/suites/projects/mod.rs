//! The test suites of other projects, unmodified, against the broker.
//!
//! Each comes from its registry at the version that `interop/suites/<project>.toml` names. That file
//! also says which of the suite's tests end otherwise than by passing, and why; a run checks it in
//! both directions, so that a test which starts to pass is news as well. What a plain run leaves
//! out for its length, `--full` runs.

mod expectations;
mod franz_go;
mod kafka_python;
mod librdkafka;
mod rust_rdkafka;

use std::fmt::Write as _;
use std::time::Duration;

use super::Suite;
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;
use expectations::Expectations;

/// `suite/<project>` for each, or `suite/<project>/<protocol>`.
pub(super) fn all() -> Vec<Suite> {
    let mut suites = librdkafka::all();
    suites.push(rust_rdkafka::suite());
    suites.push(kafka_python::suite());
    suites.push(franz_go::suite());
    suites
}

/// How a test ended, in its own suite's judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Passed,
    Failed,
    /// It said itself that it does not apply here.
    Skipped,
}

impl Ending {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
        }
    }
}

/// One test of a suite that was run.
#[derive(Debug, Clone)]
struct Tested {
    test: String,
    ending: Ending,
    /// Which run of it this is.
    tries: usize,
    took: Option<Duration>,
    /// What the test or its suite said about it.
    words: String,
}

/// Runs by themselves, once more or as often as they may be, the tests that failed: other projects'
/// tests have time limits that a busy machine does not keep. The note of the suite names them.
fn try_again(
    expectations: &Expectations,
    protocol: &str,
    mut tested: Vec<Tested>,
    mut run: impl FnMut(&[&str], usize) -> Result<Vec<Tested>, Failure>,
) -> Result<Vec<Tested>, Failure> {
    for tries in 2.. {
        let due: Vec<&mut Tested> = tested
            .iter_mut()
            .filter(|test| test.ending == Ending::Failed && test.tries == tries - 1)
            .filter(|test| tries <= expectations.tries(&test.test, protocol))
            .collect();
        if due.is_empty() {
            break;
        }
        let names: Vec<&str> = due.iter().map(|test| test.test.as_str()).collect();
        let mut again = run(&names, tries)?;
        for test in due {
            if let Some(found) = again.iter().position(|again| again.test == test.test) {
                *test = Tested {
                    tries,
                    ..again.swap_remove(found)
                };
            }
        }
    }
    Ok(tested)
}

/// Writes the table of a suite, and says whether it went as expected.
fn conclude(
    run: &Run,
    client: String,
    expectations: &Expectations,
    protocol: &str,
    mut tested: Vec<Tested>,
) -> Result<Passed, Failure> {
    tested.sort_by(|a, b| a.test.cmp(&b.test));
    let surprises = expectations.surprises(protocol, run.broker_kind(), run.is_full(), &tested);
    let table = run.logs().join("results.md");
    std::fs::write(&table, markdown(expectations, protocol, &tested))?;
    if tested.is_empty() {
        return Err(Failure::new("no test was run"));
    }
    if !surprises.is_empty() {
        let mut text = format!("{} of {} tests", surprises.len(), tested.len());
        text.push_str(" did not end as expected");
        for surprise in &surprises {
            let _ = write!(text, "\n    {surprise}");
        }
        let _ = write!(text, "\n    table: {}", table.display());
        return Err(Failure::new(text));
    }
    let count = |ending| tested.iter().filter(|test| test.ending == ending).count();
    let mut note = format!("{} tests passed", count(Ending::Passed));
    for (ending, words) in [
        (Ending::Failed, "failed as expected"),
        (Ending::Skipped, "skipped themselves"),
    ] {
        if count(ending) > 0 {
            let _ = write!(note, ", {} {words}", count(ending));
        }
    }
    let again: Vec<&str> = tested
        .iter()
        .filter(|test| test.tries > 1)
        .map(|test| test.test.as_str())
        .collect();
    if !again.is_empty() {
        let _ = write!(note, ", not at the first try: {}", again.join(" "));
    }
    if !run.is_full() && !expectations.selection.is_empty() {
        note.push_str("; --full runs all");
    }
    Ok(Passed {
        note,
        clients: vec![client],
        ..Passed::default()
    })
}

/// The table of a run: every test, how it ended, and the reason if it did not pass.
fn markdown(expectations: &Expectations, protocol: &str, tested: &[Tested]) -> String {
    let mut table = String::from("| test | result | seconds | why |\n|---|---|---|---|\n");
    for test in tested {
        let reason = match (test.ending, expectations.find(&test.test, protocol)) {
            (Ending::Passed, _) => "",
            (_, Some(difference)) => &difference.reason,
            (_, None) => &test.words,
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} |",
            test.test,
            test.ending.word(),
            test.took
                .map_or(String::new(), |took| format!("{:.1}", took.as_secs_f64())),
            reason.replace(['\n', '|'], " "),
        );
    }
    for (test, difference) in expectations.not_run(protocol) {
        let _ = writeln!(table, "| {test} | not run | | {} |", difference.reason);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tested(test: &str, ending: Ending) -> Tested {
        Tested {
            test: test.to_owned(),
            ending,
            tries: 1,
            took: None,
            words: String::new(),
        }
    }

    fn expectations() -> Expectations {
        Expectations::parse(
            r#"
            version = "1"
            selection = []
            [[difference]]
            tests = ["meant"]
            expect = "failed"
            reason = "it is meant to"
            "#,
        )
        .unwrap()
    }

    #[test]
    fn a_test_that_failed_is_tried_once_more_by_itself_and_says_so() {
        let first = vec![
            tested("good", Ending::Passed),
            tested("meant", Ending::Failed),
            tested("slow", Ending::Failed),
            tested("bad", Ending::Failed),
        ];
        let mut runs = Vec::new();
        let all = try_again(&expectations(), "", first, |names, tries| {
            runs.push((names.join(" "), tries));
            Ok(vec![
                tested("slow", Ending::Passed),
                tested("bad", Ending::Failed),
            ])
        })
        .unwrap();
        assert_eq!(runs, [("slow bad".to_owned(), 2)]);
        let endings: Vec<_> = all.iter().map(|test| (test.ending, test.tries)).collect();
        let expected = [
            (Ending::Passed, 1),
            (Ending::Failed, 1),
            (Ending::Passed, 2),
            (Ending::Failed, 2),
        ];
        assert_eq!(endings, expected);
    }
}
