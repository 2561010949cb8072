//! `kohort serve`.

use std::path::Path;
use std::process::Command;

use super::{SETTINGS, Settings};
use crate::failure::Failure;
use crate::run::Run;

pub(super) fn command(
    run: &Run,
    address: &str,
    folder: &Path,
    settings: Settings,
) -> Result<Command, Failure> {
    let program = run.workspace().program();
    if !program.exists() {
        return Err(Failure::new(format!(
            "{} is not built: cargo xtask interop builds it",
            program.display()
        )));
    }
    let mut command = Command::new(program);
    command
        .args(["serve", "--listen", address, "--data-dir"])
        .arg(folder);
    for (name, value) in SETTINGS.iter().chain(settings) {
        let value = value.replace("{address}", address);
        command.args(["--set", &format!("{name}={value}")]);
    }
    Ok(command)
}
