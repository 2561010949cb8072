//! A process that ends when its owner lets go of it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::failure::Failure;
use crate::interrupt;
use crate::wait::wait_for;

/// Lines of a log that a failure shows, of a process among others.
const TAIL_LINES: usize = 12;
/// And of one that ran by itself, such as a compiler.
pub(crate) const LONG_TAIL_LINES: usize = 60;
/// Characters of each of them.
const TAIL_WIDTH: usize = 240;

/// A child in a process group of its own, whose output goes to a file. Dropping
/// it kills the group and waits for the child: by return, by `?` or by panic.
pub(crate) struct Process {
    name: String,
    child: Child,
    pid: Pid,
    status: Option<ExitStatus>,
    log: PathBuf,
}

impl Process {
    /// Starts `command`; both its outputs go to `<logs>/<name>.log`.
    pub(crate) fn start(mut command: Command, name: &str, logs: &Path) -> Result<Self, Failure> {
        let log = free_log(logs, name)?;
        let file = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?);
        Self::spawn(command, name, log, file)
    }

    /// Starts `command` and gives each line of its standard output to `on_line`,
    /// on a thread of its own, after writing it to `<logs>/<name>.out` with the
    /// seconds since `began`. Standard
    /// error goes to `<logs>/<name>.log`. The last call is with `None`, when the
    /// output has ended.
    pub(crate) fn start_with_lines(
        mut command: Command,
        name: &str,
        logs: &Path,
        on_line: impl FnMut(Option<&str>) + Send + 'static,
    ) -> Result<Self, Failure> {
        command.stdin(Stdio::null());
        Self::spawn_with_lines(command, name, logs, on_line)
    }

    /// The same with a standard input, for `say`.
    pub(crate) fn start_to_converse(
        mut command: Command,
        name: &str,
        logs: &Path,
        on_line: impl FnMut(Option<&str>) + Send + 'static,
    ) -> Result<Self, Failure> {
        command.stdin(Stdio::piped());
        Self::spawn_with_lines(command, name, logs, on_line)
    }

    fn spawn_with_lines(
        mut command: Command,
        name: &str,
        logs: &Path,
        mut on_line: impl FnMut(Option<&str>) + Send + 'static,
    ) -> Result<Self, Failure> {
        let log = free_log(logs, name)?;
        let mut copy = File::create(log.with_extension("out"))?;
        let errors = File::create(&log)?;
        command.stdout(Stdio::piped());
        let mut process = Self::spawn(command, name, log, errors)?;
        let Some(output) = process.child.stdout.take() else {
            return Err(Failure::new(format!("{name}: no standard output")));
        };
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { break };
                let _ = writeln!(copy, "{:8.3} {line}", began().elapsed().as_secs_f64());
                on_line(Some(&line));
            }
            on_line(None);
        });
        Ok(process)
    }

    fn spawn(
        mut command: Command,
        name: &str,
        log: PathBuf,
        errors: File,
    ) -> Result<Self, Failure> {
        command.stderr(errors).process_group(0);
        let child = command.spawn().map_err(|error| {
            Failure::new(format!(
                "cannot start {}: {error}",
                command.get_program().display()
            ))
        })?;
        let pid = Pid::from_child(&child);
        interrupt::started(pid);
        Ok(Self {
            name: name.to_owned(),
            child,
            pid,
            status: None,
            log,
        })
    }

    /// Runs `command` to its end; anything but success within `limit` is a failure that shows
    /// the end of its output.
    pub(crate) fn complete(
        command: Command,
        name: &str,
        logs: &Path,
        limit: Duration,
    ) -> Result<PathBuf, Failure> {
        let mut process = Self::start(command, name, logs)?;
        let status = process.wait(limit)?;
        if status.success() {
            Ok(process.log.clone())
        } else {
            let tail = tail(&process.log, LONG_TAIL_LINES);
            Err(Failure::new(format!("{name} ended with {status}{tail}")))
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How much processor time it has used (Linux).
    pub(crate) fn cpu_seconds(&self) -> Result<f64, Failure> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name in parentheses may hold anything; utime and stime are the 14th and 15th field.
        let fields = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace();
        let ticks: u64 = fields
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum();
        Ok(ticks as f64 / 100.0)
    }

    /// Writes a line to the standard input of a process that was started to converse. One that
    /// does not listen is no fault.
    pub(crate) fn say(&mut self, line: &str) {
        if let Some(input) = &mut self.child.stdin {
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// What it has written so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Sends a signal to the process itself.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// How the process ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
            if self.status.is_some() {
                interrupt::ended(self.pid);
            }
        }
        Ok(self.status)
    }

    /// Waits until the process has ended; kills it when `limit` is over.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<ExitStatus, Failure> {
        let what = format!("the end of {}", self.name);
        let waited = wait_for(&what, limit, || self.ended());
        waited.map_err(|failure| {
            self.kill();
            Failure::new(format!("{failure}{}", self.tail()))
        })
    }

    /// Kills the process and its group at once (SIGKILL).
    pub(crate) fn kill(&mut self) {
        if self.status.is_none() {
            let _ = kill_process_group(self.pid, Signal::KILL);
            interrupt::ended(self.pid);
            self.status = self.child.wait().ok();
        }
    }

    /// A failure that says how the process ended and shows the end of its log.
    pub(crate) fn failed(&self, status: ExitStatus) -> Failure {
        Failure::new(format!("{} ended with {status}{}", self.name, self.tail()))
    }

    /// The end of the process's log and the log's path, to add to a message.
    pub(crate) fn tail(&self) -> String {
        tail(&self.log, TAIL_LINES)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The moment from which times in logs count: the first call, at the start of the program.
pub(crate) fn began() -> Instant {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    *BEGAN.get_or_init(Instant::now)
}

/// The last `count` lines of a log, and its path.
pub(crate) fn tail(log: &Path, count: usize) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = String::new();
    for line in &lines[lines.len().saturating_sub(count)..] {
        shown.push_str("\n    | ");
        shown.extend(line.chars().take(TAIL_WIDTH));
    }
    format!("{shown}\n    log: {}", log.display())
}

/// A process that is started again keeps the log of its former life.
fn free_log(logs: &Path, name: &str) -> Result<PathBuf, Failure> {
    static COUNT: AtomicUsize = AtomicUsize::new(1);
    fs::create_dir_all(logs)?;
    let plain = logs.join(format!("{name}.log"));
    if !plain.exists() {
        return Ok(plain);
    }
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let numbered = logs.join(format!("{name}.{number}.log"));
        if !numbered.exists() {
            return Ok(numbered);
        }
    }
}
