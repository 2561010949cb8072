//! rust-rdkafka's tests, from the sources of its crate, outside of this workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::{INSTALL_LIMIT, librdkafka, stamp};
use crate::failure::Failure;
use crate::process::Process;
use crate::workspace::Workspace;

/// A program with tests, and the name of its source.
pub(crate) struct TestProgram {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// Builds the tests of the crate `rdkafka` with an installed librdkafka, and gives the programs.
pub(crate) fn programs(
    workspace: &Workspace,
    version: &str,
    librdkafka: &Path,
) -> Result<Vec<TestProgram>, Failure> {
    let folder = workspace.made("rust-rdkafka")?;
    let logs = workspace.made("logs")?.join("install");
    stamp::unless_made_from(&folder, version, || sources(workspace, &folder, version))?;
    let installed = librdkafka::installed(librdkafka);
    let mut command = cargo(workspace, &folder);
    command
        .args(["test", "--no-run", "--locked", "--package", "rdkafka"])
        .args(["--tests", "--features", "dynamic-linking"])
        .arg("--message-format=json-render-diagnostics")
        .env("PKG_CONFIG_PATH", installed.join("lib/pkgconfig"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "0");
    let log = Process::complete(command, "rust-rdkafka-build", &logs, INSTALL_LIMIT)?;
    let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let built = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Built>(line).ok());
    let programs: Vec<TestProgram> = built
        .filter(|built| built.target.kind.iter().any(|kind| kind == "test"))
        .filter_map(|built| {
            Some(TestProgram {
                name: built.target.name,
                path: built.executable?,
            })
        })
        .collect();
    if programs.is_empty() {
        return Err(Failure::new("rust-rdkafka: cargo built no tests"));
    }
    Ok(programs)
}

/// cargo's word about a program that it has built.
#[derive(Deserialize)]
struct Built {
    target: Target,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// A workspace of its own with the crate as it is and the versions that it was locked to.
fn sources(workspace: &Workspace, folder: &Path, version: &str) -> Result<(), Failure> {
    fs::remove_dir_all(folder)?;
    // cargo gives out a crate's sources only to a package that depends on it.
    let fetcher = folder.join("fetcher");
    fs::create_dir_all(&fetcher)?;
    fs::write(fetcher.join("lib.rs"), "")?;
    let manifest = format!(
        "[package]\nname = \"fetcher\"\nedition = \"2024\"\n\
         [lib]\npath = \"lib.rs\"\n\
         [workspace]\n\
         [dependencies]\nrdkafka = {{ version = \"={version}\", default-features = false }}\n"
    );
    fs::write(fetcher.join("Cargo.toml"), manifest)?;
    let mut vendor = cargo(workspace, &fetcher);
    vendor.args(["vendor", "--versioned-dirs", "vendor"]);
    let logs = workspace.made("logs")?.join("install");
    Process::complete(vendor, "rust-rdkafka-vendor", &logs, INSTALL_LIMIT)?;
    let crate_folder = folder.join("rdkafka");
    fs::rename(
        fetcher.join("vendor").join(format!("rdkafka-{version}")),
        &crate_folder,
    )?;
    fs::remove_dir_all(&fetcher)?;
    fs::copy(crate_folder.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    fs::write(
        folder.join("Cargo.toml"),
        "[workspace]\nresolver = \"2\"\nmembers = [\"rdkafka\"]\n",
    )?;
    Ok(())
}

fn cargo(workspace: &Workspace, folder: &Path) -> Command {
    let mut command = workspace.cargo();
    command
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"));
    command
}
