//! kafka-python's tests, from its source distribution, in a virtual environment of their own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{INSTALL_LIMIT, stamp};
use crate::failure::Failure;
use crate::process::Process;
use crate::workspace::Workspace;

/// The command of the interpreter, and the folder to start it in.
pub(crate) fn environment(
    workspace: &Workspace,
    version: &str,
) -> Result<(PathBuf, PathBuf), Failure> {
    let own = workspace.sources().join("suites/kafka-python");
    let folder = workspace.made("kafka-python")?;
    let python = folder.join("python/bin/python");
    let sources = folder.join(format!("kafka_python-{version}"));
    let requirements = own.join("requirements.txt");
    let helper = own.join("service.py");
    let wanted = format!("{version} {}", fs::read_to_string(&requirements)?);
    let wanted = wanted.split_whitespace().collect::<Vec<_>>().join(" ");
    stamp::unless_made_from(&folder, &wanted, || {
        fs::remove_dir_all(&folder)?;
        fs::create_dir_all(&folder)?;
        let logs = workspace.made("logs")?.join("install");
        let complete = |command: Command, name: &str| {
            let name = format!("kafka-python-{name}");
            Process::complete(command, &name, &logs, INSTALL_LIMIT)
        };
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(folder.join("python"));
        complete(create, "venv")?;
        let pip = |goal: &str| {
            let mut command = Command::new(&python);
            command.current_dir(&folder).args(["-m", "pip", goal]);
            command.args(["--quiet", "--disable-pip-version-check"]);
            command
        };
        let mut download = pip("download");
        download.args(["--no-deps", "--no-binary", ":all:"]);
        download.arg(format!("kafka-python=={version}"));
        complete(download, "download")?;
        let mut unpack = Command::new("tar");
        unpack.current_dir(&folder).arg("xzf");
        unpack.args(stamp::files(&folder, &[".tar.gz"])?);
        complete(unpack, "tar")?;
        let mut install = pip("install");
        install.arg("-r").arg(&requirements);
        install.arg(format!("kafka-python=={version}"));
        complete(install, "install")?;
        Ok(())
    })?;
    // What the distribution lacks: the mark of a package, and the helper that starts brokers.
    fs::write(sources.join("test/__init__.py"), "")?;
    fs::copy(helper, sources.join("test/service.py"))?;
    Ok((python, sources))
}
