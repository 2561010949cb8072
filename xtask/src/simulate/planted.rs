//! Planted bugs: mistakes that people make, put into a copy of the sources, each of which the
//! simulator, a model or a test has to find.
//!
//! A checker that finds nothing may be blind. So each of `crates/sim/bugs/*.patch` is applied to a
//! copy, and what is known to find it is run. A patch begins with what it breaks, in a sentence, and
//! with which of the three finds it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use kohort_harness::{Failure, Passed, Workspace};

/// What the copy consists of.
const CRATES: [&str; 5] = ["coordinator", "group", "member", "sim", "wire"];

/// How many seeds the simulator gets to find a bug.
const SEEDS: u64 = 300;

/// How long the short form may go on before it begins no other bug, in seconds.
const SHORT_SECONDS: u64 = 60;

/// The second line of a patch that the simulator finds among its first seeds.
const QUICK: &str = "Found by the simulator.";

/// A planted bug.
struct Bug {
    name: String,
    breaks: String,
    /// Who is known to find it, and asked first.
    finder: Finder,
    /// Whether it is found within seconds.
    is_quick: bool,
    patch: PathBuf,
}

/// Who may find a bug, in the order in which they are asked.
#[derive(Clone, Copy, PartialEq)]
enum Finder {
    Simulator,
    Models,
    Tests,
}

impl Finder {
    const ALL: [Finder; 3] = [Finder::Simulator, Finder::Models, Finder::Tests];

    /// From the second line of a patch.
    fn read(line: &str) -> Finder {
        match line {
            "Found by the models." => Finder::Models,
            "Found by the tests." => Finder::Tests,
            _ => Finder::Simulator,
        }
    }
}

/// The short form: every patch still applies, and a few bugs of those that are found quickly, other
/// ones each day, are built and found. All of them take too long for every run.
pub(crate) fn planted_bugs_short(workspace: &Workspace) -> Result<Passed, Failure> {
    let began = Instant::now();
    let mut bugs = bugs(workspace)?;
    let copy = copy(workspace)?;
    for bug in &bugs {
        apply(&copy, bug, false)?;
        apply(&copy, bug, true)?;
    }
    let applied = bugs.len();
    bugs.retain(|bug| bug.is_quick);
    let days = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = days.map_or(0, |since| since.as_secs() / 86_400);
    let first = (3 * days) as usize % bugs.len().max(1);
    bugs.rotate_left(first);
    let mut found = Vec::new();
    for bug in &bugs {
        if began.elapsed().as_secs() > SHORT_SECONDS {
            break;
        }
        match plant(workspace, &copy, bug, false)?.first() {
            Some(by) => found.push(format!("{} ({by})", bug.name)),
            None => return Err(Failure::new(format!("nothing finds the bug {}", bug.name))),
        }
    }
    Ok(Passed::note(format!(
        "{applied} patches apply; found {}",
        found.join(", ")
    )))
}

/// Shows what finds each bug, as a table for docs/verification.md. True if each is found.
pub(crate) fn planted_bugs(
    workspace: &Workspace,
    part: &str,
    asks_all: bool,
) -> Result<bool, Failure> {
    let copy = copy(workspace)?;
    let mut missed = 0;
    println!("| bug | what it breaks | found by |\n|---|---|---|");
    for bug in bugs(workspace)? {
        if !bug.name.contains(part) {
            continue;
        }
        let found = plant(workspace, &copy, &bug, asks_all)?;
        missed += u32::from(found.is_empty());
        let by = if found.is_empty() {
            "NOBODY".to_owned()
        } else {
            found.join("; ")
        };
        println!("| {} | {} | {by} |", bug.name, bug.breaks);
    }
    if missed > 0 {
        println!("\n{missed} not found");
    }
    Ok(missed == 0)
}

/// Builds a copy with the bug in it, and says what finds it.
fn plant(
    workspace: &Workspace,
    copy: &Path,
    bug: &Bug,
    asks_all: bool,
) -> Result<Vec<String>, Failure> {
    apply(copy, bug, false)?;
    let found = find(workspace, copy, bug.finder, asks_all);
    apply(copy, bug, true)?;
    found.map_err(|failure| Failure::new(format!("{}: {failure}", bug.name)))
}

/// Asks who is known to find it, then the others, until one of them does; or all.
fn find(
    workspace: &Workspace,
    copy: &Path,
    first: Finder,
    asks_all: bool,
) -> Result<Vec<String>, Failure> {
    let others = Finder::ALL.into_iter().filter(|other| *other != first);
    let mut found = Vec::new();
    for finder in std::iter::once(first).chain(others) {
        if asks_all || found.is_empty() {
            found.extend(ask(workspace, copy, finder)?);
        }
    }
    Ok(found)
}

fn ask(workspace: &Workspace, copy: &Path, finder: Finder) -> Result<Option<String>, Failure> {
    let cargo = |arguments: &[&str]| {
        let mut command = workspace.cargo();
        command.current_dir(copy).args(arguments);
        // What is the same as in the repository is built once.
        command.env("CARGO_TARGET_DIR", workspace.target());
        command.stdin(Stdio::null());
        command
    };
    if finder == Finder::Tests {
        let tests = cargo(&["test", "--quiet", "--lib", "--tests", "--no-fail-fast"])
            .args(
                ["kohort-group", "kohort-coordinator", "kohort-member"]
                    .map(|it| ["-p", it])
                    .concat(),
            )
            .output()?;
        let said = String::from_utf8_lossy(&tests.stdout).into_owned();
        let found = found_by_test(&said);
        return if tests.status.success() || found.is_some() {
            Ok(found)
        } else {
            Err(Failure::new(format!("its tests do not run:\n{said}")))
        };
    }
    let built = cargo(&["build", "--quiet", "--package", "kohort-sim"]).output()?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        return Err(Failure::new(format!("it does not compile:\n{said}")));
    }
    let mut program = Command::new(workspace.target().join("debug").join("kohort-sim"));
    if finder == Finder::Models {
        return Ok(found_by_model(&output(program.arg("model"))?));
    }
    program.args(["run", "--failures=1"]);
    program.arg(format!("--seeds={SEEDS}"));
    Ok(found_by_simulator(&output(&mut program)?))
}

/// From "seed 12, step 340: one owner: …".
fn found_by_simulator(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.starts_with("seed "))?;
    let mut parts = line.split(": ");
    let seed = parts.next()?;
    Some(match parts.next() {
        Some(promise) => format!("{seed}: {promise}"),
        None => seed.to_owned(),
    })
}

/// From "two members, two partitions: after 7 steps: …".
fn found_by_model(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.contains(": after "))?;
    let mut parts = line.split(": ");
    let (world, steps) = (parts.next()?, parts.next()?);
    Some(format!("the model “{world}” {steps}"))
}

/// From the list of failures with which cargo ends a test program: an indented name a line.
fn found_by_test(said: &str) -> Option<String> {
    let after = said.rsplit_once("failures:\n    ")?.1;
    let name = after.lines().next()?.trim();
    let name = name.rsplit("::").next()?;
    Some(format!("the test `{name}`"))
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
            finder: Finder::read(text.lines().nth(1).unwrap_or_default()),
            is_quick: text.lines().nth(1) == Some(QUICK),
            patch,
        });
    }
    bugs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(bugs)
}

/// The folder of the crates in the copy. Cargo names its build results after the path within the
/// workspace, so with the original paths it would mistake a crate with a bug for the original.
const COPIED_CRATES: &str = "planted";

/// A copy of what the simulator is made of, as a workspace of its own.
fn copy(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let copy = workspace.target().join("planted-bugs");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    for name in CRATES {
        let original = workspace.root().join("crates").join(name);
        copy_folder(&original, &copy.join(COPIED_CRATES).join(name))?;
    }
    fs::copy(workspace.root().join("Cargo.lock"), copy.join("Cargo.lock"))?;
    let manifest = fs::read_to_string(workspace.root().join("Cargo.toml"))?;
    let members = format!("members = [\"{COPIED_CRATES}/*\"]");
    let path = format!("path = \"{COPIED_CRATES}/");
    let manifest: Vec<String> = manifest
        .lines()
        .filter(|line| !line.starts_with("default-members"))
        .map(|line| {
            if line.starts_with("members = ") {
                members.clone()
            } else {
                line.replace("path = \"crates/", &path)
            }
        })
        .collect();
    fs::write(copy.join("Cargo.toml"), manifest.join("\n"))?;
    Ok(copy)
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Puts a bug in, or takes it out.
fn apply(copy: &Path, bug: &Bug, is_reverse: bool) -> Result<(), Failure> {
    let mut command = Command::new("git");
    command
        .current_dir(copy)
        .args(["apply", "-p2", "-C1"])
        .arg(format!("--directory={COPIED_CRATES}"))
        // The copy is no part of any repository.
        .env("GIT_CEILING_DIRECTORIES", copy.parent().unwrap_or(copy));
    if is_reverse {
        command.arg("--reverse");
    }
    let output = command.arg(&bug.patch).output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "crates/sim/bugs/{}.patch does not apply any more: make it anew\n{}",
            bug.name,
            String::from_utf8_lossy(&output.stderr)
        )))
    }
}
