//! A small file system in memory that only the processes of one suite see. It goes with them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use crate::failure::Failure;
use crate::process::Process;
use crate::run::Run;

const LIMIT: Duration = Duration::from_secs(20);

/// Mounted as long as this lives.
pub(super) struct Mount {
    run: Run,
    folder: PathBuf,
    /// Lives in the namespace, and does nothing.
    holder: Process,
}

impl Mount {
    /// Mounts it on the data folder `name`.
    pub(super) fn new(run: &Run, name: &str, bytes: u64) -> Result<Self, Failure> {
        let folder = run.data().join(name);
        fs::create_dir_all(&folder)?;
        // Needs no rights where users may have namespaces, in which they are root.
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        command.arg("mount -t tmpfs -o \"size=$1\" none \"$2\" && echo mounted && exec sleep 3600");
        command.arg("sh").arg(bytes.to_string()).arg(&folder);
        let (sender, lines) = mpsc::channel();
        let holder = Process::start_with_lines(command, "mount", run.logs(), move |line| {
            let _ = sender.send(line.map(str::to_owned));
        })?;
        match lines.recv_timeout(LIMIT) {
            Ok(Some(line)) if line == "mounted" => Ok(Self {
                run: run.clone(),
                folder,
                holder,
            }),
            _ => Err(Failure::new(format!(
                "nothing can be mounted: {}",
                holder.log().trim()
            ))),
        }
    }

    /// What a command line begins with that is to see the file system.
    pub(super) fn words(&self) -> Vec<String> {
        let pid = self.holder.pid().to_string();
        let words = [
            "nsenter",
            "--user",
            "--mount",
            "--preserve-credentials",
            "-t",
        ];
        let words = words.into_iter().map(str::to_owned);
        words.chain([pid]).collect()
    }

    fn shell(&self, script: &str, arguments: &[&str]) -> Result<(), Failure> {
        let words = self.words();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["sh", "-e", "-c", script]);
        command.arg("sh").arg(&self.folder).args(arguments);
        Process::complete(command, "shell", self.run.logs(), LIMIT)?;
        Ok(())
    }

    /// Takes room away.
    pub(super) fn put_aside(&self, name: &str, bytes: u64) -> Result<(), Failure> {
        let script = "head -c \"$3\" /dev/zero > \"$1/$2\"";
        self.shell(script, &[name, &bytes.to_string()])
    }

    /// Gives it back.
    pub(super) fn remove(&self, name: &str) -> Result<(), Failure> {
        self.shell("rm \"$1/$2\"", &[name])
    }

    /// Makes the folder one that can only be read. A second mount over the first: that one cannot
    /// be changed while files are open for writing.
    pub(super) fn freeze(&self) -> Result<(), Failure> {
        let script = "mount --bind \"$1\" \"$1\"; mount -o remount,bind,ro \"$1\"";
        self.shell(script, &[])
    }

    /// Undoes that.
    pub(super) fn thaw(&self) -> Result<(), Failure> {
        self.shell("umount \"$1\"", &[])
    }
}
