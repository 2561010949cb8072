//! A client library under test: a program that speaks the protocol of
//! interop/README.md.

pub(crate) mod catalog;
mod event;

use std::ffi::OsString;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use crate::broker::Broker;
use crate::failure::Failure;
use crate::process::Process;
use crate::run::Run;

pub(crate) use event::Event;

/// The longest that a command other than `consume` may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// The two group protocols, as clients name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Protocol {
    /// JoinGroup, SyncGroup, Heartbeat
    Classic,
    /// ConsumerGroupHeartbeat, KIP-848
    Consumer,
}

impl Protocol {
    pub(crate) const ALL: [Self; 2] = [Self::Classic, Self::Consumer];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
        }
    }
}

/// An installed agent, and what it says that it can do.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) name: &'static str,
    command: Vec<OsString>,
    /// The client's name and version.
    pub(crate) client: String,
    pub(crate) compressions: Vec<String>,
    /// Whether its producer is idempotent.
    pub(crate) idempotent: bool,
}

impl Agent {
    /// Installs what `source` needs, and asks the agent what it is.
    pub(crate) fn install(source: &catalog::Source, run: &Run) -> Result<Self, Failure> {
        let command = (source.install)(run.workspace())
            .map_err(|failure| failure.during(format!("installing {}", source.name)))?;
        let mut agent = Self {
            name: source.name,
            command,
            client: String::new(),
            compressions: Vec::new(),
            idempotent: false,
        };
        match agent.ask(run, &["version"])? {
            Event::Version {
                client,
                compressions,
                idempotent,
            } => {
                agent.client = client;
                agent.compressions = compressions;
                agent.idempotent = idempotent;
                Ok(agent)
            }
            other => Err(Failure::new(format!("{} version: {other:?}", source.name))),
        }
    }

    /// Creates a topic.
    pub(crate) fn create(
        &self,
        run: &Run,
        broker: &Broker,
        topic: &str,
        partitions: usize,
    ) -> Result<(), Failure> {
        self.change("create", run, broker, topic, partitions)
    }

    /// Gives a topic more partitions; so many in all. Only some agents can.
    pub(crate) fn grow(
        &self,
        run: &Run,
        broker: &Broker,
        topic: &str,
        partitions: usize,
    ) -> Result<(), Failure> {
        self.change("grow", run, broker, topic, partitions)
    }

    /// Rewinds partitions of a live group. Only some agents can.
    pub(crate) fn rewind(
        &self,
        run: &Run,
        broker: &Broker,
        topic: &str,
        group: &str,
        offsets: &[(i32, i64)],
    ) -> Result<(), Failure> {
        let goals: Vec<_> = offsets
            .iter()
            .map(|&(index, to)| (topic, index, to))
            .collect();
        self.start_rewind(run, broker, group, &goals)?.finish()
    }

    /// Starts asking for a rewind: topics, partitions and offsets.
    pub(crate) fn start_rewind(
        &self,
        run: &Run,
        broker: &Broker,
        group: &str,
        goals: &[(&str, i32, i64)],
    ) -> Result<Working, Failure> {
        let goals: Vec<_> = goals
            .iter()
            .map(|(topic, index, to)| format!("{topic}/{index}:{to}"))
            .collect();
        let mut command = self.command();
        command.args(["rewind", "--bootstrap", &broker.address()]);
        command.args(["--group", group, "--offsets", &goals.join(",")]);
        let name = format!("{}-rewind", self.name);
        Ok(Working {
            process: Process::start(command, &name, run.logs())?,
        })
    }

    fn change(
        &self,
        command: &str,
        run: &Run,
        broker: &Broker,
        topic: &str,
        partitions: usize,
    ) -> Result<(), Failure> {
        let partitions = partitions.to_string();
        let address = broker.address();
        let arguments = [
            command,
            "--bootstrap",
            &address,
            "--topic",
            topic,
            "--partitions",
            &partitions,
        ];
        self.ask(run, &arguments).map(|_| ())
    }

    /// Starts producing; `Working::finish` waits for the end.
    pub(crate) fn produce(
        &self,
        run: &Run,
        broker: &Broker,
        topic: &str,
        compression: &str,
        values: std::ops::Range<u64>,
        rate: u64,
    ) -> Result<Working, Failure> {
        let mut command = self.command();
        command.args([
            "produce",
            "--bootstrap",
            &broker.address(),
            "--topic",
            topic,
        ]);
        command.args([
            "--compression",
            compression,
            "--start",
            &values.start.to_string(),
        ]);
        command.args(["--count", &(values.end - values.start).to_string()]);
        command.args(["--rate", &rate.to_string()]);
        let name = format!("{}-produce-{compression}", self.name);
        Ok(Working {
            process: Process::start(command, &name, run.logs())?,
        })
    }

    /// Describes a group as an administrator sees it.
    pub(crate) fn describe(
        &self,
        run: &Run,
        broker: &Broker,
        topic: &str,
        group: &str,
        protocol: Protocol,
    ) -> Result<Event, Failure> {
        let address = broker.address();
        let arguments = [
            "describe",
            "--bootstrap",
            &address,
            "--topic",
            topic,
            "--group",
            group,
        ]
        .into_iter()
        .chain(["--protocol", protocol.name()])
        .collect::<Vec<_>>();
        self.ask(run, &arguments)
    }

    /// The command line up to the agent's own arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command
    }

    /// Runs a command that answers with one event.
    fn ask(&self, run: &Run, arguments: &[&str]) -> Result<Event, Failure> {
        let mut command = self.command();
        command.args(arguments);
        let name = format!("{}-{}", self.name, arguments[0]);
        let (sender, events) = mpsc::channel();
        let mut process = Process::start_with_lines(command, &name, run.logs(), move |line| {
            if let Some(line) = line {
                let _ = sender.send(Event::parse(line));
            }
        })?;
        let status = process.wait(COMMAND_LIMIT)?;
        if !status.success() {
            return Err(process.failed(status));
        }
        let unanswered = || Failure::new(format!("{name} printed no event{}", process.tail()));
        events
            .recv_timeout(Duration::from_secs(5))
            .map_err(|_| unanswered())?
    }
}

/// An agent at work.
pub(crate) struct Working {
    process: Process,
}

impl Working {
    /// Waits until it has done what it was told: a producer until every record was acknowledged, an
    /// administrator until it was answered.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.finish_within(COMMAND_LIMIT)
    }

    /// The same within another time.
    pub(crate) fn finish_within(mut self, limit: Duration) -> Result<(), Failure> {
        let status = self.process.wait(limit)?;
        if status.success() {
            Ok(())
        } else {
            Err(self.process.failed(status))
        }
    }

    /// Whether it has ended; a failure, if it ended badly.
    pub(crate) fn check(&mut self) -> Result<bool, Failure> {
        match self.process.ended()? {
            Some(status) if !status.success() => Err(self.process.failed(status)),
            ended => Ok(ended.is_some()),
        }
    }
}
