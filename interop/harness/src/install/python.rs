//! Python: a virtual environment with the client libraries.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{INSTALL_LIMIT, stamp};
use crate::failure::Failure;
use crate::process::Process;
use crate::workspace::Workspace;

/// The command that runs `interop/python/<script>`.
pub(crate) fn agent(workspace: &Workspace, script: &str) -> Result<Vec<OsString>, Failure> {
    let interpreter = environment(workspace)?.join("bin/python");
    let script = workspace.sources().join("python").join(script);
    Ok(vec![interpreter.into(), "-u".into(), script.into()])
}

fn environment(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let requirements = workspace.sources().join("python/requirements.txt");
    let folder = workspace.made("python")?;
    stamp::unless_made(&folder, std::slice::from_ref(&requirements), || {
        let logs = workspace.made("logs")?.join("install");
        let mut create = workspace.command("python3");
        create.args(["-m", "venv", "--clear"]).arg(&folder);
        Process::complete(create, "venv", &logs, INSTALL_LIMIT)?;
        let mut install = workspace.command(folder.join("bin/python"));
        install.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        install.arg("-r").arg(&requirements);
        Process::complete(install, "pip", &logs, INSTALL_LIMIT)?;
        Ok(())
    })?;
    Ok(folder)
}
