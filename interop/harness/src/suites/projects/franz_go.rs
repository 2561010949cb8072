//! franz-go's own tests of its client.

use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use serde::Deserialize;

use super::{Ending, Expectations, Suite, Tested, conclude, try_again};
use crate::failure::Failure;
use crate::install::{Toolchain, go};
use crate::process::Process;
use crate::report::Passed;
use crate::run::Run;

/// The records that each test of a chain of groups passes on; the suite's own default is ten times
/// as many.
const RECORDS: &str = "50000";

const LIMIT: Duration = Duration::from_secs(15 * 60);

pub(super) fn suite() -> Suite {
    Suite::new("suite/franz-go", &[Toolchain::Go], check)
}

fn check(run: &Run) -> Result<Passed, Failure> {
    let expectations = Expectations::read(&run.workspace().sources(), "franz-go")?;
    let version = &expectations.version;
    let folder = go::module(run.workspace(), "github.com/twmb/franz-go", version)?;
    let mut broker = run.start_broker()?;
    let go_test = |name: &str, chosen: &str| -> Result<Vec<Tested>, Failure> {
        let mut command = Command::new("go");
        command
            .current_dir(&folder)
            .args(["test", "-json", "-count=1", "-timeout=14m", "./pkg/kgo"])
            .args(["-run", chosen]);
        let left_out: Vec<&str> = expectations.not_run("").map(|(test, _)| test).collect();
        if !left_out.is_empty() {
            command.args(["-skip", &one_of(left_out.into_iter())]);
        }
        command
            .env("KGO_SEEDS", broker.address())
            .env("KGO_TEST_RF", "1")
            .env("KGO_TEST_RECORDS", RECORDS);
        run_tests(run, command, name)
    };
    let chosen = if run.is_full() {
        "^Test".to_owned()
    } else {
        one_of(expectations.selection.iter().map(String::as_str))
    };
    let tested = go_test("go-test", &chosen)?;
    let tested = try_again(&expectations, "", tested, |tests, tries| {
        go_test(&format!("go-test-{tries}"), &one_of(tests.iter().copied()))
    })?;
    broker.stop()?;
    conclude(
        run,
        format!("franz-go {version}"),
        &expectations,
        "",
        tested,
    )
}

fn one_of<'a>(tests: impl Iterator<Item = &'a str>) -> String {
    format!("^({})$", tests.collect::<Vec<_>>().join("|"))
}

/// A line of `go test -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    test: Option<String>,
    elapsed: Option<f64>,
}

impl Event {
    /// How a test ended; one that is part of another is left to that.
    fn tested(self, words: &str) -> Option<Tested> {
        let test = self.test.filter(|test| !test.contains('/'))?;
        let ending = match self.action.as_str() {
            "pass" => Ending::Passed,
            "fail" => Ending::Failed,
            "skip" => Ending::Skipped,
            _ => return None,
        };
        Some(Tested {
            test,
            ending,
            tries: 1,
            took: self.elapsed.map(Duration::from_secs_f64),
            words: words.to_owned(),
        })
    }
}

fn run_tests(run: &Run, command: Command, name: &str) -> Result<Vec<Tested>, Failure> {
    let (sender, lines) = mpsc::channel();
    let log: PathBuf = run.logs().join(format!("{name}.out"));
    let words = format!("log: {}", log.display());
    let mut process = Process::start_with_lines(command, name, run.logs(), move |line| {
        let event = line.and_then(|line| serde_json::from_str::<Event>(line).ok());
        if let Some(tested) = event.and_then(|event| event.tested(&words)) {
            let _ = sender.send(tested);
        }
    })?;
    let status = process.wait(LIMIT)?;
    // The sender goes with the end of the output.
    let tested: Vec<Tested> = lines.iter().collect();
    let failed = tested.iter().any(|test| test.ending == Ending::Failed);
    if !status.success() && !failed {
        return Err(process.failed(status));
    }
    Ok(tested)
}
