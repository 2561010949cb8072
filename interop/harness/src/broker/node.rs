//! One node of a broker: a process, a port and a folder.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use super::{free_port, ready};
use crate::failure::Failure;
use crate::process::Process;
use crate::run::Run;

/// From SIGTERM to the end of the process.
const STOP_LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Node {
    /// From 1.
    pub(super) id: usize,
    pub(super) port: u16,
    /// Where Apache Kafka's controllers talk.
    pub(super) controller_port: u16,
    pub(super) folder: PathBuf,
    pub(super) process: Option<Process>,
}

impl Node {
    pub(super) fn new(run: &Run, name: &str, id: usize) -> Result<Self, Failure> {
        let name = match run.broker_kind().nodes() {
            1 => name.to_owned(),
            _ => format!("{name}-{id}"),
        };
        let folder = run.data().join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(Self {
            id,
            port: free_port()?,
            controller_port: free_port()?,
            folder,
            process: None,
        })
    }

    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn start(&mut self, run: &Run, command: Command) -> Result<(), Failure> {
        let name = self.folder.file_name().unwrap_or_default();
        let process = Process::start(command, &name.to_string_lossy(), run.logs())?;
        self.process = Some(process);
        Ok(())
    }

    pub(super) fn until_it_answers(&mut self) -> Result<(), Failure> {
        let address = self.address();
        match &mut self.process {
            Some(process) => ready::wait_until_it_answers(process, &address),
            None => Ok(()),
        }
    }

    /// Stops the node as an operator does, with SIGTERM, and waits for its end.
    pub(crate) fn stop(&mut self) -> Result<(), Failure> {
        if let Some(mut process) = self.process.take() {
            process.signal(Signal::TERM);
            let status = process.wait(STOP_LIMIT)?;
            // A JVM that ends because of a signal says so in its status.
            if !status.success() && status.code() != Some(143) {
                return Err(process.failed(status).during("stopping the broker"));
            }
        }
        Ok(())
    }

    /// Kills the node where it stands, with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Stops the node in its tracks, with SIGSTOP: its connections stay, and nobody answers.
    pub(crate) fn suspend(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a suspended node go on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }

    /// How much processor time it has used since it was started.
    pub(super) fn cpu_seconds(&self) -> Result<f64, Failure> {
        self.process.as_ref().map_or(Ok(0.0), Process::cpu_seconds)
    }

    /// The end of the node's log, if it runs.
    pub(super) fn tail(&self) -> String {
        self.process.as_ref().map(Process::tail).unwrap_or_default()
    }
}
