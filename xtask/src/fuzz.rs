//! `cargo xtask fuzz`: the tests that make their input from seeds, for as long as one wants.
//!
//! Coverage-guided fuzzers need a nightly compiler. These tests know the formats instead: they begin
//! with what is right, and break it. `cargo xtask test` runs each for some seconds.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::Args;

use kohort_harness::command;
use kohort_harness::{Failure, Passed, Report, Workspace};

/// What is fuzzed, for how long.
#[derive(Args)]
pub(crate) struct Options {
    /// For each target
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Only targets whose name contains this
    #[arg(long, value_name = "NAME", default_value = "")]
    target: String,
    /// The first seed; another one each time if it is not given
    #[arg(long, value_name = "SEED")]
    from: Option<u64>,
}

/// A test that takes seeds.
struct Target {
    name: &'static str,
    package: &'static str,
    /// The file and the name of the test.
    test: (&'static str, &'static str),
}

const TARGETS: &[Target] = &[
    Target {
        name: "frames",
        package: "kohort-wire",
        test: ("hostile", "broken_frames_cost_nobody_anything"),
    },
    Target {
        name: "files",
        package: "kohort-log",
        test: (
            "any_files",
            "whatever_has_happened_to_its_files_a_log_keeps_what_is_whole",
        ),
    },
    Target {
        name: "requests",
        package: "kohort-coordinator",
        test: (
            "any_requests",
            "whatever_it_is_asked_the_coordinator_answers_once_and_can_be_loaded_again",
        ),
    },
    Target {
        name: "replay",
        package: "kohort-coordinator",
        test: (
            "any_requests",
            "whatever_its_log_says_the_coordinator_reads_it_or_says_why_not_and_answers",
        ),
    },
];

/// How a test names its seeds; the last one is that of a failure.
const SEED: &str = "KOHORT_TEST_SEED=";
/// Beyond the time that is asked for: to build the test, and to end.
const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);
/// Broken frames of each seed.
const FRAMES_EACH: u64 = 300_000;
/// Of what a test says in the end.
const WORDS_MAX: usize = 200;

/// Runs the targets one after the other; whether all have passed.
pub(crate) fn fuzz(workspace: &Workspace, options: &Options) -> Result<bool, Failure> {
    let chosen = |target: &&Target| target.name.contains(&options.target);
    let mut targets = TARGETS.iter().filter(chosen).peekable();
    if targets.peek().is_none() {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        let names = names.join(", ");
        return Err(Failure::new(format!(
            "no target is called {}; there are {names}",
            options.target
        )));
    }
    let from = options.from.unwrap_or_else(|| fastrand::u64(..1 << 40));
    let mut report = Report::default();
    for target in targets {
        report.run(&format!("fuzz/{}", target.name), || {
            run(workspace, target, options.seconds, from)
        });
    }
    Ok(report.finish())
}

fn run(workspace: &Workspace, target: &Target, seconds: u64, from: u64) -> Result<Passed, Failure> {
    let (file, test) = target.test;
    let mut command: Command = workspace.cargo();
    command.args(["test", "--package", target.package, "--test", file]);
    command.args(["--", "--exact", test, "--nocapture"]);
    command.env("KOHORT_FUZZ_SECONDS", seconds.to_string());
    command.env("KOHORT_TEST_SEED", from.to_string());
    command.env("KOHORT_HOSTILE_FRAMES", FRAMES_EACH.to_string());
    let limit = BUILD_LIMIT + Duration::from_secs(seconds);
    let name = target.name;
    let ended = command::run(workspace, command, &format!("fuzz-{name}"), limit)?;
    if ended.status.success() {
        let note = format!("from seed {from}: {}", said(&ended.log)?);
        return Ok(Passed::note(note));
    }
    let seed = last_seed(&ended.log).unwrap_or(from);
    Err(ended.failure().during(format!(
        "seed {seed} (cargo xtask fuzz --target {name} --from {seed} --seconds 1)"
    )))
}

/// What a test says of itself: its last line, without cargo's and the seeds.
fn said(log: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(log)?;
    let lines = text
        .lines()
        .take_while(|line| !line.starts_with("test result"));
    let is_own = |line: &&str| {
        let is_cargos = line.is_empty() || line.starts_with("test ") || *line == "ok";
        !is_cargos && !line.starts_with(SEED)
    };
    let last = lines.filter(is_own).last().unwrap_or_default();
    Ok(last.chars().take(WORDS_MAX).collect())
}

fn last_seed(log: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(log).ok()?;
    let (_, after) = text.rsplit_once(SEED)?;
    let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}
