//! kohort's own client: a program of this workspace, built together with the one under test.

use std::ffi::OsString;

use crate::checks;
use crate::failure::Failure;
use crate::workspace::Workspace;

/// The command that runs `interop/rust`.
pub(crate) fn agent(workspace: &Workspace) -> Result<Vec<OsString>, Failure> {
    checks::build_program(workspace)?;
    Ok(vec![workspace.built("kohort-agent").into()])
}
