//! Builds the programs of this repository that suites and measurements start.

use std::path::PathBuf;
use std::time::Duration;

use crate::command::complete;
use crate::failure::Failure;
use crate::workspace::Workspace;

/// The longest that a build may take.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Builds the program that users run, the one under all interop suites, and the agent for its
/// client: together, so that what they share is built once.
pub fn build(workspace: &Workspace) -> Result<(), Failure> {
    let mut command = workspace.cargo();
    command.args(["build", "--release"]);
    command.args(["--package", "kohort-cli", "--package", "kohort-agent"]);
    complete(workspace, command, "build", LIMIT)?;
    Ok(())
}

/// Builds `interop/throughput`, a workspace of its own. Returns the program.
pub(crate) fn build_throughput(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let mut command = workspace.cargo();
    let manifest = workspace.sources().join("throughput/Cargo.toml");
    command
        .args(["build", "--release", "--target-dir"])
        .arg(workspace.target())
        .arg("--manifest-path")
        .arg(manifest);
    complete(workspace, command, "throughput", LIMIT)?;
    Ok(workspace.built("kohort-throughput"))
}
