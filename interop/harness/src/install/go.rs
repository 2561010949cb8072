//! Go: one program, built from the modules that go.sum pins.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Deserialize;

use super::{INSTALL_LIMIT, stamp};
use crate::failure::Failure;
use crate::process::Process;
use crate::workspace::Workspace;

/// The folder with the sources of a module, its tests among them.
pub(crate) fn module(workspace: &Workspace, name: &str, version: &str) -> Result<PathBuf, Failure> {
    /// What `go mod download` says about a module.
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Module {
        dir: PathBuf,
    }
    let logs = workspace.made("logs")?.join("install");
    let mut command = workspace.command("go");
    command.args(["mod", "download", "-json", &format!("{name}@v{version}")]);
    let log = Process::complete(command, "go-download", &logs, INSTALL_LIMIT)?;
    let text = std::fs::read_to_string(log)?;
    // Progress, if any, comes before.
    let json = text.find('{').map_or("", |start| &text[start..]);
    let module: Module = serde_json::from_str(json)
        .map_err(|error| Failure::new(format!("go mod download: {error}: {text}")))?;
    Ok(module.dir)
}

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
