//! rust-rdkafka's own tests, linked with the librdkafka whose tests are run as well.

use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use super::{Ending, Expectations, Suite, Tested, conclude, try_again};
use crate::failure::Failure;
use crate::install::{Toolchain, librdkafka, rust_rdkafka};
use crate::process::Process;
use crate::report::Passed;
use crate::run::Run;

/// For one program of tests.
const PROGRAM_LIMIT: Duration = Duration::from_secs(10 * 60);

/// As in its `docker-compose.yaml`.
const SETTINGS: &[(&str, &str)] = &[("node.id", "0"), ("num.partitions", "3")];

pub(super) fn suite() -> Suite {
    let needed = [Toolchain::C, Toolchain::Node];
    let mut suite = Suite::new("suite/rust-rdkafka", &needed, check);
    suite.slow = true;
    suite.on_demand = true;
    suite
}

fn check(run: &Run) -> Result<Passed, Failure> {
    let sources = run.workspace().sources();
    let expectations = Expectations::read(&sources, "rust-rdkafka")?;
    let c_version = Expectations::read(&sources, "librdkafka")?.version;
    let library = librdkafka::folder(run.workspace(), &c_version)?;
    let programs = rust_rdkafka::programs(run.workspace(), &expectations.version, &library)?;
    let mut broker = run.start_broker_with("broker", SETTINGS)?;
    let mut tested = Vec::new();
    for program in programs {
        let prefix = format!("{}::", program.name);
        let start = || {
            let mut command = Command::new(&program.path);
            command
                .current_dir(run.data())
                .env("KAFKA_HOST", broker.address())
                .env(
                    "LD_LIBRARY_PATH",
                    librdkafka::installed(&library).join("lib"),
                );
            command
        };
        let mut command = start();
        for (test, _) in expectations.not_run("") {
            if let Some(test) = test.strip_prefix(&prefix) {
                command.args(["--skip", test]);
            }
        }
        let first = run_program(run, command, &program.name)?;
        tested.extend(try_again(&expectations, "", first, |tests, tries| {
            // By itself, as the tests of librdkafka are.
            let mut again = Vec::new();
            for test in tests {
                let mut command = start();
                command.args(["--exact", test.trim_start_matches(&prefix)]);
                let name = format!("{}-{tries}", program.name);
                let ended = run_program(run, command, &name)?.pop();
                again.extend(ended.map(|ended| Tested {
                    test: (*test).to_owned(),
                    ..ended
                }));
            }
            Ok(again)
        })?);
    }
    broker.stop()?;
    let client = format!(
        "rust-rdkafka {} with librdkafka {}",
        expectations.version,
        librdkafka::version(&library)?
    );
    conclude(run, client, &expectations, "", tested)
}

/// Runs one program; its lines `test NAME ... ok` say how each test ended.
fn run_program(run: &Run, command: Command, name: &str) -> Result<Vec<Tested>, Failure> {
    let (sender, lines) = mpsc::channel();
    let mut process = Process::start_with_lines(command, name, run.logs(), move |line| {
        let _ = sender.send(line.map(str::to_owned));
    })?;
    let status = process.wait(PROGRAM_LIMIT);
    let mut tested = Vec::new();
    while let Ok(Some(line)) = lines.recv_timeout(Duration::from_secs(5)) {
        let Some((test, ending)) = parse(&line) else {
            continue;
        };
        tested.push(Tested {
            test: format!("{name}::{test}"),
            ending,
            tries: 1,
            took: None,
            words: format!("log: {}", run.logs().join(format!("{name}.out")).display()),
        });
    }
    let failed = tested.iter().any(|test| test.ending == Ending::Failed);
    match status {
        Err(failure) => Err(failure),
        // Not one test, but the program.
        Ok(status) if !status.success() && !failed => Err(process.failed(status)),
        Ok(_) => Ok(tested),
    }
}

fn parse(line: &str) -> Option<(&str, Ending)> {
    let (test, ending) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let ending = match ending.split([',', ' ']).next()? {
        "ok" => Ending::Passed,
        "FAILED" => Ending::Failed,
        "ignored" => Ending::Skipped,
        _ => return None,
    };
    Some((test.split(" - ").next()?, ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_a_test_ended() {
        assert_eq!(parse("test a::b ... ok"), Some(("a::b", Ending::Passed)));
        assert_eq!(
            parse("test a - should panic ... FAILED"),
            Some(("a", Ending::Failed))
        );
        assert_eq!(
            parse("test a ... ignored, not here"),
            Some(("a", Ending::Skipped))
        );
        assert_eq!(parse("test result: ok. 3 passed"), None);
    }
}
