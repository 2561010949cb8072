//! kafka-python's own integration tests.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use super::{Ending, Expectations, Suite, Tested, conclude, try_again};
use crate::failure::Failure;
use crate::install::{Toolchain, kafka_python};
use crate::process::Process;
use crate::report::Passed;
use crate::run::Run;

const LIMIT: Duration = Duration::from_secs(10 * 60);

/// As in the tests' own `kafka.properties`, as far as a test depends on it.
const SETTINGS: &[(&str, &str)] = &[
    ("advertised.listeners", "PLAINTEXT://{address}"),
    ("group.min.session.timeout.ms", "1000"),
    ("node.id", "0"),
    ("num.partitions", "4"),
];

/// Where the tests are, in the source distribution.
const FOLDER: &str = "test/integration/";

/// What kafka-python takes a broker for that has all that Kafka 4.4 has.
const KAFKA_VERSION: &str = "4.3.0";

pub(super) fn suite() -> Suite {
    Suite::new("suite/kafka-python", &[Toolchain::Python], check)
}

fn check(run: &Run) -> Result<Passed, Failure> {
    let expectations = Expectations::read(&run.workspace().sources(), "kafka-python")?;
    let version = &expectations.version;
    let (python, folder) = kafka_python::environment(run.workspace(), version)?;
    let mut broker = run.start_broker_with("broker", SETTINGS)?;
    let pytest = |name: &str, tests: &[String]| -> Result<Vec<Tested>, Failure> {
        let report = run.data().join(format!("{name}.jsonl"));
        let mut command = Command::new(&python);
        command
            .current_dir(&folder)
            .args(["-m", "pytest", "-p", "no:cacheprovider", "--quiet"])
            .args(["--timeout", "120", "--tb", "native", "-W", "ignore"])
            .arg(format!("--report-log={}", report.display()))
            .args(tests)
            .env("KAFKA_URI", format!("kafka://{}", broker.address()))
            .env("KAFKA_VERSION", KAFKA_VERSION)
            // Of Kafka's own distribution, which an external broker does not need.
            .env("KAFKA_ROOT", run.data());
        for (test, _) in expectations.not_run("") {
            command.args(["--deselect", &format!("{FOLDER}{test}")]);
        }
        let mut process = Process::start(command, name, run.logs())?;
        let status = process.wait(LIMIT)?;
        // 0: all passed, 1: some failed; everything else is pytest's own trouble.
        if !matches!(status.code(), Some(0 | 1)) {
            return Err(process.failed(status));
        }
        read(&report, &run.logs().join(format!("{name}.log")))
    };
    let tested = pytest("pytest", &[FOLDER.to_owned()])?;
    let tested = try_again(&expectations, "", tested, |tests, tries| {
        let tests: Vec<String> = tests.iter().map(|test| format!("{FOLDER}{test}")).collect();
        pytest(&format!("pytest-{tries}"), &tests)
    })?;
    broker.stop()?;
    conclude(
        run,
        format!("kafka-python {version}"),
        &expectations,
        "",
        tested,
    )
}

/// A line of pytest's report: a test is set up, called and torn down.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "$report_type")]
    kind: String,
    #[serde(default)]
    nodeid: String,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    duration: f64,
}

fn read(report: &Path, log: &Path) -> Result<Vec<Tested>, Failure> {
    let text = std::fs::read_to_string(report)?;
    Ok(endings(&text, &format!("log: {}", log.display())))
}

fn endings(report: &str, words: &str) -> Vec<Tested> {
    let mut tests: BTreeMap<String, Tested> = BTreeMap::new();
    let lines = report
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok());
    for line in lines.filter(|line| line.kind == "TestReport") {
        let name = line.nodeid.trim_start_matches(FOLDER);
        let test = tests.entry(name.to_owned()).or_insert_with(|| Tested {
            test: name.to_owned(),
            ending: Ending::Passed,
            tries: 1,
            took: Some(Duration::ZERO),
            words: words.to_owned(),
        });
        match line.outcome.as_str() {
            "passed" => {}
            "skipped" if test.ending == Ending::Passed => test.ending = Ending::Skipped,
            "skipped" => {}
            _ => test.ending = Ending::Failed,
        }
        let took = Duration::try_from_secs_f64(line.duration).unwrap_or_default();
        test.took = test.took.map(|before| before + took);
    }
    tests.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_passed_if_no_part_of_it_failed() {
        let report = r#"
            {"$report_type": "SessionStart", "pytest_version": "9"}
            {"$report_type": "TestReport", "nodeid": "test/integration/a.py::one", "outcome": "passed", "duration": 1.0}
            {"$report_type": "TestReport", "nodeid": "test/integration/a.py::one", "outcome": "passed", "duration": 0.5}
            {"$report_type": "TestReport", "nodeid": "test/integration/a.py::two", "outcome": "failed", "duration": 0.5}
            {"$report_type": "TestReport", "nodeid": "test/integration/a.py::two", "outcome": "passed", "duration": 0.5}
            {"$report_type": "TestReport", "nodeid": "test/integration/a.py::three", "outcome": "skipped", "duration": 0.5}
            {"$report_type": "TestReport", "nodeid": "test/integration/a.py::three", "outcome": "passed", "duration": 0.5}
        "#;
        let endings: Vec<(String, Ending)> = endings(report, "")
            .into_iter()
            .map(|test| (test.test, test.ending))
            .collect();
        let expected = [
            ("a.py::one", Ending::Passed),
            ("a.py::three", Ending::Skipped),
            ("a.py::two", Ending::Failed),
        ];
        assert_eq!(
            endings,
            expected.map(|(test, ending)| (test.to_owned(), ending))
        );
    }
}
