//! Go: one program, built from the modules that go.sum pins.

use std::ffi::OsString;

use super::{INSTALL_LIMIT, stamp};
use crate::failure::Failure;
use crate::process::Process;
use crate::workspace::Workspace;

/// The command that runs `interop/go`.
pub(crate) fn agent(workspace: &Workspace) -> Result<Vec<OsString>, Failure> {
    let sources = workspace.sources().join("go");
    let folder = workspace.made("go")?;
    let program = folder.join("agent");
    stamp::unless_made(
        &folder,
        &stamp::files(&sources, &[".go", ".mod", ".sum"])?,
        || {
            let mut command = workspace.command("go");
            command
                .current_dir(&sources)
                .args(["build", "-o"])
                .arg(&program)
                .arg(".");
            let logs = workspace.made("logs")?.join("install");
            Process::complete(command, "go-build", &logs, INSTALL_LIMIT)?;
            Ok(())
        },
    )?;
    Ok(vec![program.into()])
}
