//! A broker to run suites against: kohort itself, or Apache Kafka as the oracle.

mod kafka;
mod kohort;
mod ready;

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use rustix::process::Signal;

use crate::failure::Failure;
use crate::install::Toolchain;
use crate::process::Process;
use crate::run::Run;

/// From SIGTERM to the end of the process.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Which program is the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BrokerKind {
    /// `target/release/kohort serve`
    Kohort,
    /// Apache Kafka 4.4.0, one node
    Kafka,
}

impl BrokerKind {
    /// What the machine needs for this broker.
    pub(crate) fn toolchain(self) -> Option<Toolchain> {
        (self == Self::Kafka).then_some(Toolchain::Java)
    }
}

/// Names and values of a broker's settings; `{address}` is where it listens.
type Settings = &'static [(&'static str, &'static str)];

/// Settings, under Kafka's names, that let a group notice quickly that a member
/// is gone. Every broker of a suite has them.
const SETTINGS: Settings = &[
    ("offsets.topic.num.partitions", "8"),
    ("group.initial.rebalance.delay.ms", "500"),
    ("group.consumer.session.timeout.ms", "6000"),
    ("group.consumer.min.session.timeout.ms", "6000"),
    ("group.consumer.heartbeat.interval.ms", "1000"),
    ("group.consumer.min.heartbeat.interval.ms", "1000"),
];

/// A broker on 127.0.0.1 with a folder of its own, which ends when dropped.
pub(crate) struct Broker {
    run: Run,
    port: u16,
    folder: PathBuf,
    settings: Settings,
    process: Option<Process>,
}

impl Broker {
    /// Starts a broker on an empty folder and a free port, and waits until it answers.
    pub(crate) fn start(run: &Run, name: &str, settings: Settings) -> Result<Self, Failure> {
        let folder = run.data().join(name);
        std::fs::create_dir_all(&folder)?;
        let mut broker = Self {
            run: run.clone(),
            port: free_port()?,
            folder,
            settings,
            process: None,
        };
        if run.broker_kind() == BrokerKind::Kafka {
            kafka::format(run, broker.port, &broker.folder, settings)?;
        }
        broker.start_again()?;
        Ok(broker)
    }

    /// `host:port`, for clients.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The folder with its data.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Stops the broker as an operator does, with SIGTERM, and waits for its end.
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

    /// Kills the broker where it stands, with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Starts it again, after `stop` or `kill`, on the same port and folder.
    pub(crate) fn start_again(&mut self) -> Result<(), Failure> {
        let command = self.command()?;
        let mut process = Process::start(command, "broker", self.run.logs())?;
        ready::wait_until_it_answers(&mut process, &self.address())?;
        self.process = Some(process);
        Ok(())
    }

    fn command(&self) -> Result<Command, Failure> {
        match self.run.broker_kind() {
            BrokerKind::Kohort => {
                kohort::command(&self.run, &self.address(), &self.folder, self.settings)
            }
            BrokerKind::Kafka => kafka::command(&self.run, &self.folder),
        }
    }

    /// How much processor time it has used.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, Failure> {
        match &self.process {
            Some(process) => process.cpu_seconds(),
            None => Ok(0.0),
        }
    }

    /// The end of the broker's log, for the message of a failure.
    pub(crate) fn tail(&self) -> String {
        self.process.as_ref().map(Process::tail).unwrap_or_default()
    }
}

/// A port that nobody listens on at the moment.
pub(crate) fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
