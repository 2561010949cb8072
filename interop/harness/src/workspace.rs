//! Where things are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// The repository, and the folder for what tasks make.
#[derive(Clone)]
pub struct Workspace {
    root: PathBuf,
    target: PathBuf,
    program: PathBuf,
}

impl Workspace {
    /// Finds this repository, and where cargo builds it.
    pub fn find() -> Result<Self, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .ok_or_else(|| Failure::new("the harness is not in interop/ of the repository"))?
            .to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => std::path::absolute(folder)?,
            None => root.join("target"),
        };
        let program = built(&target, "kohort");
        Ok(Self {
            root,
            target,
            program,
        })
    }

    /// A program of this workspace, built with the release profile.
    pub(crate) fn built(&self, name: &str) -> PathBuf {
        built(&self.target, name)
    }

    /// Where cargo puts what it builds.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The repository.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The sources of the interop programs.
    pub(crate) fn sources(&self) -> PathBuf {
        self.root.join("interop")
    }

    /// `target/interop/<name>`, made if absent: clients, data, logs.
    pub(crate) fn made(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.target.join("interop").join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// The program under test: the one that users run, built with the release profile.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The same workspace with another program under test, if one is named.
    pub(crate) fn testing(&self, program: Option<&Path>) -> Result<Self, Failure> {
        let mut workspace = self.clone();
        if let Some(program) = program {
            workspace.program = std::path::absolute(program)?;
        }
        Ok(workspace)
    }

    /// A command that starts in the root of the repository.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// `cargo`, the one that runs this program.
    pub fn cargo(&self) -> Command {
        let mut command = self.command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // What cargo told this program about its package: to the build script of ring it would be
        // news, after which half of the workspace is compiled again.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command
    }
}

fn built(target: &Path, name: &str) -> PathBuf {
    target.join("release").join(name)
}
