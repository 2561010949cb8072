//! kohort's own client: programs of this workspace, built together with the one under test.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::failure::Failure;
use crate::programs;
use crate::workspace::Workspace;

/// The command that runs the agent.
pub(crate) fn agent(workspace: &Workspace) -> Result<Vec<OsString>, Failure> {
    Ok(vec![built(workspace, "kohort-agent")?.into()])
}

/// The program with the checks of the client.
pub(crate) fn checks(workspace: &Workspace) -> Result<PathBuf, Failure> {
    built(workspace, "kohort-checks")
}

/// The one beside the program that `--program` names, if it is there; else a new one.
fn built(workspace: &Workspace, name: &str) -> Result<PathBuf, Failure> {
    let beside = workspace.program().with_file_name(name);
    if beside != workspace.built(name) && beside.exists() {
        return Ok(beside);
    }
    programs::build(workspace)?;
    Ok(workspace.built(name))
}
