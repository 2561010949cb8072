//! Maven: jars of Apache Kafka.

use std::path::{Path, PathBuf};

use super::{INSTALL_LIMIT, stamp};
use crate::failure::Failure;
use crate::process::Process;
use crate::workspace::Workspace;

/// The folder with all jars of Apache Kafka's broker and tools.
pub(crate) fn kafka(workspace: &Workspace) -> Result<PathBuf, Failure> {
    dependencies(
        workspace,
        &workspace.sources().join("oracle/pom.xml"),
        "kafka",
    )
}

/// The folder `target/interop/<name>` with the jars that the dependencies of `pom` name.
pub(crate) fn dependencies(
    workspace: &Workspace,
    pom: &Path,
    name: &str,
) -> Result<PathBuf, Failure> {
    let folder = workspace.made(name)?;
    stamp::unless_made(&folder, &[pom.to_path_buf()], || {
        let output = format!("-DoutputDirectory={}", folder.display());
        run(
            workspace,
            pom,
            name,
            &[
                "dependency:copy-dependencies",
                "-DincludeScope=runtime",
                &output,
            ],
        )
    })?;
    Ok(folder)
}

/// Runs `mvn` quietly on a project.
pub(crate) fn run(
    workspace: &Workspace,
    pom: &Path,
    name: &str,
    goals: &[&str],
) -> Result<(), Failure> {
    let mut command = workspace.command("mvn");
    command
        .args(["-B", "-q", "-ntp", "-f"])
        .arg(pom)
        .args(goals);
    let logs = workspace.made("logs")?.join("install");
    Process::complete(command, &format!("mvn-{name}"), &logs, INSTALL_LIMIT)?;
    Ok(())
}
