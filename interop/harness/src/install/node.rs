//! Node: packages at the versions of package-lock.json.

use std::ffi::OsString;
use std::fs;

use super::{INSTALL_LIMIT, stamp};
use crate::failure::Failure;
use crate::process::Process;
use crate::workspace::Workspace;

/// The command that runs `interop/node/<script>`. The script runs from a copy
/// beside the packages, since that is where Node looks for them.
pub(crate) fn agent(workspace: &Workspace, script: &str) -> Result<Vec<OsString>, Failure> {
    let sources = workspace.sources().join("node");
    let folder = workspace.made("node")?;
    let packages = stamp::files(&sources, &[".json"])?;
    stamp::unless_made(&folder, &packages, || {
        for package in &packages {
            fs::copy(
                package,
                folder.join(package.file_name().unwrap_or_default()),
            )?;
        }
        let mut command = workspace.command("npm");
        command
            .current_dir(&folder)
            .args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
        let logs = workspace.made("logs")?.join("install");
        Process::complete(command, "npm", &logs, INSTALL_LIMIT)?;
        Ok(())
    })?;
    for source in stamp::files(&sources, &[".mjs"])? {
        fs::copy(&source, folder.join(source.file_name().unwrap_or_default()))?;
    }
    Ok(vec!["node".into(), folder.join(script).into()])
}
