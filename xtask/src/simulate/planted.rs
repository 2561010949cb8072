//! Planted bugs: mistakes that people make, put into a copy of the sources, each of which the
//! simulator, a model or a test has to find.
//!
//! A checker that finds nothing may be blind. So each of `crates/sim/bugs/*.patch` is applied to a
//! copy, and what is known to find it is run. A patch begins with what it breaks, in a sentence.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::failure::Failure;
use crate::report::Passed;
use crate::workspace::Workspace;

/// What the copy consists of.
const CRATES: [&str; 3] = ["group", "sim", "wire"];

/// How many seeds the simulator gets to find a bug.
const SEEDS: u64 = 300;

/// How many states each model gets to.
const STATES: u64 = 3_000;

/// A planted bug.
struct Bug {
    name: String,
    breaks: String,
    patch: PathBuf,
}

/// Every patch still applies: the short form.
pub(crate) fn planted_bugs_apply(workspace: &Workspace) -> Result<Passed, Failure> {
    let bugs = bugs(workspace)?;
    let copy = copy(workspace)?;
    for bug in &bugs {
        apply(&copy, bug, false)?;
        apply(&copy, bug, true)?;
    }
    Ok(Passed::note(format!("{} patches apply", bugs.len())))
}

/// Shows what finds each bug. True if each is found.
pub(crate) fn planted_bugs(
    workspace: &Workspace,
    part: &str,
    asks_all: bool,
) -> Result<bool, Failure> {
    let copy = copy(workspace)?;
    let mut missed = 0;
    println!(
        "{:34} {:26} {:10} {:8} what it breaks",
        "bug", "simulator", "models", "tests"
    );
    for bug in bugs(workspace)? {
        if !bug.name.contains(part) {
            continue;
        }
        apply(&copy, &bug, false)?;
        let found = find(workspace, &copy, asks_all);
        apply(&copy, &bug, true)?;
        let found = found?;
        missed += u32::from(!found.is_found());
        println!(
            "{:34} {:26} {:10} {:8} {}",
            bug.name, found.simulator, found.models, found.tests, bug.breaks
        );
    }
    if missed > 0 {
        println!("\n{missed} not found");
    }
    Ok(missed == 0)
}

struct Found {
    simulator: String,
    models: String,
    tests: String,
}

const NOT_FOUND: &str = "missed it";
const NOT_ASKED: &str = "";

impl Found {
    fn is_found(&self) -> bool {
        [&self.simulator, &self.models, &self.tests]
            .iter()
            .any(|found| found.starts_with("found"))
    }
}

/// Asks the simulator, then the models, then the tests, until one of them finds the bug; or all.
fn find(workspace: &Workspace, copy: &Path, asks_all: bool) -> Result<Found, Failure> {
    let cargo = |arguments: &[&str]| {
        let mut command = workspace.cargo();
        command.current_dir(copy).args(arguments);
        // What is the same as in the repository is built once.
        command.env("CARGO_TARGET_DIR", workspace.target());
        command.stdin(Stdio::null());
        command
    };
    let built = cargo(&["build", "--quiet", "--package", "kohort-sim"]).output()?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        return Err(Failure::new(format!(
            "a planted bug does not compile:\n{said}"
        )));
    }
    let program = workspace.target().join("debug").join("kohort-sim");
    let began = Instant::now();
    let simulator = output(Command::new(&program).args([
        "run".to_owned(),
        format!("--seeds={SEEDS}"),
        "--failures=1".to_owned(),
    ]))?;
    let simulator = match simulator
        .lines()
        .find_map(|line| line.strip_prefix("seed "))
    {
        Some(line) => {
            let seed = line.split(':').next().unwrap_or_default();
            format!("found, seed {seed} ({} s)", began.elapsed().as_secs())
        }
        None => NOT_FOUND.to_owned(),
    };
    let mut found = Found {
        simulator,
        models: NOT_ASKED.to_owned(),
        tests: NOT_ASKED.to_owned(),
    };
    if asks_all || !found.is_found() {
        let models = Command::new(&program)
            .args(["model".to_owned(), format!("--states={STATES}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        found.models = in_words(!models.success());
    }
    if asks_all || !found.is_found() {
        let tests = cargo(&["test", "--quiet", "--package", "kohort-group"]).output()?;
        found.tests = in_words(!tests.status.success());
    }
    Ok(found)
}

fn in_words(is_found: bool) -> String {
    match is_found {
        true => "found".to_owned(),
        false => NOT_FOUND.to_owned(),
    }
}

fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.stdin(Stdio::null()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn bugs(workspace: &Workspace) -> Result<Vec<Bug>, Failure> {
    let mut bugs = Vec::new();
    for entry in fs::read_dir(workspace.root().join("crates/sim/bugs"))? {
        let patch = entry?.path();
        let Some(name) = patch
            .file_name()
            .and_then(|name| name.to_str()?.strip_suffix(".patch"))
        else {
            continue;
        };
        let text = fs::read_to_string(&patch)?;
        bugs.push(Bug {
            name: name.to_owned(),
            breaks: text.lines().next().unwrap_or_default().to_owned(),
            patch,
        });
    }
    bugs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(bugs)
}

/// A copy of what the simulator is made of, as a workspace of its own.
fn copy(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let copy = workspace.target().join("planted-bugs");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    for name in CRATES {
        let folder = Path::new("crates").join(name);
        copy_folder(&workspace.root().join(&folder), &copy.join(&folder))?;
    }
    fs::copy(workspace.root().join("Cargo.lock"), copy.join("Cargo.lock"))?;
    let manifest = fs::read_to_string(workspace.root().join("Cargo.toml"))?;
    let manifest: Vec<&str> = manifest
        .lines()
        .map(|line| match line.starts_with("members = ") {
            true => "members = [\"crates/*\"]",
            false => line,
        })
        .filter(|line| !line.starts_with("default-members"))
        .collect();
    fs::write(copy.join("Cargo.toml"), manifest.join("\n"))?;
    Ok(copy)
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &target)?,
            false => {
                fs::copy(entry.path(), target)?;
            }
        }
    }
    Ok(())
}

/// Puts a bug in, or takes it out.
fn apply(copy: &Path, bug: &Bug, is_reverse: bool) -> Result<(), Failure> {
    let mut command = Command::new("git");
    command
        .current_dir(copy)
        .args(["apply", "-p1", "-C1"])
        // The copy is no part of any repository.
        .env("GIT_CEILING_DIRECTORIES", copy.parent().unwrap_or(copy));
    if is_reverse {
        command.arg("--reverse");
    }
    let output = command.arg(&bug.patch).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "crates/sim/bugs/{}.patch does not apply any more: make it anew\n{}",
            bug.name,
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}
