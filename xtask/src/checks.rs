//! The checks before the interop suites, each a cargo command.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use kohort_harness::command::{self, Ended};
use kohort_harness::{Failure, Passed, Workspace, first_seed, install_schemas, programs};

use crate::simulate;

/// A named step of `cargo xtask test`.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Workspace) -> Result<Passed, Failure>,
}

/// In the order in which they run: cheap ones first.
pub(crate) const ALL: &[Check] = &[
    Check {
        name: "fmt",
        run: format,
    },
    Check {
        name: "clippy",
        run: clippy,
    },
    Check {
        name: "tests",
        run: tests,
    },
    Check {
        name: "planted-bugs",
        run: simulate::planted_bugs_short,
    },
    Check {
        name: "simulation",
        run: simulation,
    },
    Check {
        name: "docs",
        run: docs,
    },
    Check {
        name: "build",
        run: build,
    },
    Check {
        name: "demo",
        run: demo,
    },
];

fn format(workspace: &Workspace) -> Result<Passed, Failure> {
    let mut command = workspace.cargo();
    command.args(["fmt", "--all", "--check"]);
    complete(workspace, command, "fmt", 2)?;
    Ok(Passed::default())
}

fn clippy(workspace: &Workspace) -> Result<Passed, Failure> {
    let mut command = workspace.cargo();
    command.args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]);
    complete(workspace, command, "clippy", 20)?;
    Ok(Passed::default())
}

fn tests(workspace: &Workspace) -> Result<Passed, Failure> {
    let mut command = workspace.cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    // Here the property tests try the same cases each time, so that a change is judged by what it
    // does. A plain `cargo test` tries new ones.
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        command.env("PROPTEST_RNG_SEED", "1");
    }
    // The wire tests compare each message with Kafka's own schemas where they are.
    match install_schemas(workspace) {
        Ok(folder) => {
            command.env("KOHORT_KAFKA_SCHEMAS", folder);
        }
        Err(failure) if std::env::var("CI").is_ok_and(|value| value == "true") => {
            return Err(failure);
        }
        Err(failure) => println!("   without Kafka's message schemas: {failure}"),
    }
    let ended = run(workspace, command, "tests", 30)?;
    let said = std::fs::read_to_string(&ended.log)?;
    if !ended.status.success() {
        let failed = failed_tests(&said);
        return Err(if failed.is_empty() {
            ended.failure()
        } else {
            Failure::new(format!("tests ended with {}{failed}", ended.status))
        });
    }
    let (passed, ignored) = count_tests(&said);
    if passed == 0 {
        return Err(Failure::new("cargo ran no test"));
    }
    Ok(Passed::note(format!(
        "{passed} tests passed, {ignored} ignored"
    )))
}

/// A fixed set of seeds of simulated groups, a fresh one, and the small models.
fn simulation(workspace: &Workspace) -> Result<Passed, Failure> {
    let mut command = simulate::simulator(workspace);
    command.args(["run", "--seeds=3000", "--seconds=120"]);
    let log = complete(workspace, command, "simulation", 15)?;
    let said = std::fs::read_to_string(&log)?;
    let mut command = simulate::simulator(workspace);
    command.arg("model");
    complete(workspace, command, "model", 15)?;
    let (fresh, findings) = fresh_simulation(workspace)?;
    let fixed = said.lines().last().unwrap_or_default();
    Ok(Passed::note(format!("{fixed}; {fresh}")).with_findings(findings))
}

/// Simulates seeds that no earlier run has used. Returns what to note, and the seeds that failed.
fn fresh_simulation(workspace: &Workspace) -> Result<(String, Vec<String>), Failure> {
    let first = first_seed(workspace);
    let mut command = simulate::simulator(workspace);
    command.args(["run", "--seeds=3000", "--seconds=60"]);
    command.arg(format!("--from={first}"));
    let ended = run(workspace, command, "fresh-seeds", 15)?;
    let said = std::fs::read_to_string(&ended.log)?;
    let findings = simulate::failed_seeds(&said);
    // A seed that fails ends the simulator with an error, and so does whatever else goes wrong.
    if !ended.status.success() && findings.is_empty() {
        return Err(ended.failure());
    }
    let last = said.lines().last().unwrap_or_default();
    Ok((format!("fresh from {first}: {last}"), findings))
}

fn docs(workspace: &Workspace) -> Result<Passed, Failure> {
    let mut command = workspace.cargo();
    command
        .args(["doc", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    complete(workspace, command, "docs", 15)?;
    Ok(Passed::default())
}

/// The program that users run, and the agent for its client.
fn build(workspace: &Workspace) -> Result<Passed, Failure> {
    programs::build(workspace)?;
    Ok(Passed::default())
}

/// What the README asks its readers to try first; it checks itself what it shows.
fn demo(workspace: &Workspace) -> Result<Passed, Failure> {
    let mut command = workspace.command(workspace.program());
    command.arg("demo");
    complete(workspace, command, "demo", 2)?;
    Ok(Passed::default())
}

/// Runs the criterion benches, printing as they go.
pub(crate) fn bench(workspace: &Workspace, filter: Option<&str>) -> Result<bool, Failure> {
    let mut command = workspace.cargo();
    command.args(["bench", "--workspace"]);
    if let Some(filter) = filter {
        command.args(["--", filter]);
    }
    Ok(command.status()?.success())
}

/// Runs one of the commands to its end; its log is named after it.
fn run(
    workspace: &Workspace,
    command: Command,
    name: &str,
    limit_minutes: u64,
) -> Result<Ended, Failure> {
    let limit = Duration::from_secs(60 * limit_minutes);
    command::run(workspace, command, name, limit)
}

/// The same for a command that has to succeed. Returns its log.
fn complete(
    workspace: &Workspace,
    command: Command,
    name: &str,
    limit_minutes: u64,
) -> Result<PathBuf, Failure> {
    let limit = Duration::from_secs(60 * limit_minutes);
    command::complete(workspace, command, name, limit)
}

/// What the failed tests said, each under its test program. Their backtraces are left to the log.
fn failed_tests(output: &str) -> String {
    /// So many lines are shown of one test.
    const SHOWN_LINES: usize = 30;
    let mut shown = String::new();
    let mut program = "";
    let mut lines_left = 0;
    for line in output.lines() {
        let word = line.trim_start();
        if word.starts_with("Running ") || word.starts_with("Doc-tests ") {
            program = word;
        }
        if line.starts_with("---- ") && line.ends_with(" ----") {
            shown.push_str(&format!("\n    {program}"));
            lines_left = SHOWN_LINES;
        } else if line == "failures:" || line == "stack backtrace:" {
            lines_left = 0;
        }
        if lines_left > 0 && !line.is_empty() {
            shown.push_str(&format!("\n    | {line}"));
            lines_left -= 1;
        }
    }
    shown
}

/// Adds up cargo's closing lines: "test result: ok. 12 passed; 0 failed; 1 ignored; …".
fn count_tests(output: &str) -> (u64, u64) {
    let mut totals = (0, 0);
    for line in output
        .lines()
        .filter(|line| line.starts_with("test result:"))
    {
        let number_before = |word: &str| -> u64 {
            let before = line.split(word).next().unwrap_or_default();
            before
                .split_whitespace()
                .last()
                .and_then(|number| number.parse().ok())
                .unwrap_or(0)
        };
        totals.0 += number_before(" passed");
        totals.1 += number_before(" ignored");
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::{count_tests, failed_tests};

    #[test]
    fn a_failed_test_is_shown_with_its_program_and_what_it_said() {
        let output = "     Running tests/a.rs (target/a)\n\
            test one ... FAILED\n\
            \n\
            failures:\n\
            \n\
            ---- one stdout ----\n\
            \n\
            assertion failed\n\
            stack backtrace:\n\
            \x20  0: begin\n\
            \n\
            failures:\n\
            \x20   one\n\
            test result: FAILED. 0 passed; 1 failed\n\
            \x20  Doc-tests b\n\
            test result: ok. 3 passed; 0 failed\n";
        let expected = "\n    Running tests/a.rs (target/a)\n    | ---- one stdout ----\
            \n    | assertion failed";
        assert_eq!(failed_tests(output), expected);
        assert_eq!(failed_tests("test result: ok. 3 passed; 0 failed\n"), "");
    }

    #[test]
    fn the_results_of_all_test_programs_are_added_up() {
        let output = "running 3 tests\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
            noise\n\
            test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(count_tests(output), (43, 1));
    }
}
