//! Maven: jars of Apache Kafka.

use std::ffi::OsString;
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

/// The folder `target/interop/java` with the programs of `interop/java`, built, and all that they
/// need.
pub(crate) fn programs(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let project = workspace.sources().join("java");
    let folder = workspace.made("java")?;
    let mut sources = vec![project.join("pom.xml")];
    for inner in [
        "resources",
        "java/kohort/interop",
        "java/org/apache/kafka/common/utils",
    ] {
        let inner = project.join("src/main").join(inner);
        sources.extend(stamp::files(&inner, &[".java", ".properties"])?);
    }
    stamp::unless_made(&folder, &sources, || {
        let built = format!("-Dbuilt={}", folder.display());
        let goals = ["package", "dependency:copy-dependencies", &built];
        run(workspace, &sources[0], "java", &goals)
    })?;
    Ok(folder)
}

/// The command that runs a class of `interop/java`.
pub(crate) fn program(workspace: &Workspace, class: &str) -> Result<Vec<OsString>, Failure> {
    let folder = programs(workspace)?;
    let mut classes = folder.join("kohort-interop.jar").into_os_string();
    classes.push(":");
    classes.push(folder.join("dependency/*"));
    let options = [
        "-Xmx256m",
        "-XX:+UseSerialGC",
        // Short runs are over before the optimizing compiler pays.
        "-XX:TieredStopAtLevel=1",
        "-cp",
    ];
    let mut command = vec![OsString::from("java")];
    command.extend(options.map(OsString::from));
    command.push(classes);
    command.push(format!("kohort.interop.{class}").into());
    Ok(command)
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
