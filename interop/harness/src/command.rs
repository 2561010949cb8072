//! Commands that run to their end, such as cargo's; each has a log under its own name.

use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use crate::failure::Failure;
use crate::process::{LONG_TAIL_LINES, Process, tail};
use crate::workspace::Workspace;

/// How a command ended.
pub struct Ended {
    name: String,
    /// Its exit status.
    pub status: ExitStatus,
    /// The file with its output.
    pub log: PathBuf,
}

impl Ended {
    /// Says how it failed, with the end of its log.
    pub fn failure(&self) -> Failure {
        let tail = tail(&self.log, LONG_TAIL_LINES);
        Failure::new(format!("{} ended with {}{tail}", self.name, self.status))
    }
}

/// Runs a command to its end and kills it after `limit`. Its output replaces that of an earlier run.
pub fn run(
    workspace: &Workspace,
    command: Command,
    name: &str,
    limit: Duration,
) -> Result<Ended, Failure> {
    let logs = workspace.made("logs")?.join("checks");
    let log = logs.join(format!("{name}.log"));
    if log.exists() {
        std::fs::remove_file(&log)?;
    }
    let mut process = Process::start(command, name, &logs)?;
    let status = process.wait(limit)?;
    let name = name.to_owned();
    Ok(Ended { name, status, log })
}

/// Runs a command that has to succeed. Returns its log.
pub fn complete(
    workspace: &Workspace,
    command: Command,
    name: &str,
    limit: Duration,
) -> Result<PathBuf, Failure> {
    let ended = run(workspace, command, name, limit)?;
    if ended.status.success() {
        Ok(ended.log)
    } else {
        Err(ended.failure())
    }
}
