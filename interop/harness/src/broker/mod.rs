//! A broker to run suites against: kohort itself, or Apache Kafka, of one node or of three.

mod kafka;
mod kohort;
mod node;
mod ready;

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use crate::failure::Failure;
use crate::install::Toolchain;
use crate::process::Process;
use crate::run::Run;
use node::Node;

/// Which program is the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BrokerKind {
    /// `target/release/kohort serve`
    Kohort,
    /// Apache Kafka 4.4.0, one node
    Kafka,
    /// Apache Kafka 4.4.0, three nodes that are brokers and controllers
    Kafka3,
}

impl BrokerKind {
    pub(crate) const ALL: [Self; 3] = [Self::Kohort, Self::Kafka, Self::Kafka3];

    /// What it is called in the names of suites.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kohort => "kohort",
            Self::Kafka => "kafka",
            Self::Kafka3 => "kafka3",
        }
    }

    /// What the machine needs for this broker.
    pub(crate) fn toolchain(self) -> Option<Toolchain> {
        (self != Self::Kohort).then_some(Toolchain::Java)
    }

    /// How many nodes it has.
    pub(crate) fn nodes(self) -> usize {
        match self {
            Self::Kohort | Self::Kafka => 1,
            Self::Kafka3 => 3,
        }
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

/// What a suite wants of an Apache Kafka node beyond the usual.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extras {
    /// Listeners: name, port, security protocol.
    pub(crate) listeners: Vec<(&'static str, u16, &'static str)>,
    pub(crate) settings: Vec<(String, String)>,
    /// Users for SCRAM, in the words of `kafka-storage format --add-scram`.
    pub(crate) scram: Vec<String>,
}

/// One or more nodes on 127.0.0.1, each with a folder of its own, which end when dropped.
pub(crate) struct Broker {
    run: Run,
    settings: Settings,
    /// What the command line begins with: a program that runs the broker somewhere.
    within: Vec<String>,
    nodes: Vec<Node>,
}

impl Broker {
    /// Starts a broker on empty folders and free ports, and waits until all of its nodes answer.
    pub(crate) fn start(run: &Run, name: &str, settings: Settings) -> Result<Self, Failure> {
        Self::start_with(run, name, settings, &Extras::default())
    }

    /// The same with what only Apache Kafka has.
    pub(crate) fn start_with(
        run: &Run,
        name: &str,
        settings: Settings,
        extras: &Extras,
    ) -> Result<Self, Failure> {
        let kind = run.broker_kind();
        let mut nodes = Vec::new();
        for id in 1..=kind.nodes() {
            nodes.push(Node::new(run, name, id)?);
        }
        if kind != BrokerKind::Kohort {
            kafka::format(run, &nodes, settings, extras)?;
        }
        let mut broker = Self {
            run: run.clone(),
            settings,
            within: Vec::new(),
            nodes,
        };
        broker.start_again()?;
        Ok(broker)
    }

    /// kohort, run by another program: the words that its command line begins with. It is not
    /// started yet.
    pub(crate) fn within(run: &Run, name: &str, within: Vec<String>) -> Result<Self, Failure> {
        Ok(Self {
            run: run.clone(),
            settings: &[],
            within,
            nodes: vec![Node::new(run, name, 1)?],
        })
    }

    /// The process of the first node, if it runs.
    pub(crate) fn process(&self) -> Option<&Process> {
        self.nodes[0].process.as_ref()
    }

    /// Whether the process of the first node ends within so long.
    pub(crate) fn ends_within(&mut self, limit: Duration) -> Result<bool, Failure> {
        let Some(process) = &mut self.nodes[0].process else {
            return Ok(true);
        };
        let deadline = Instant::now() + limit;
        loop {
            if process.ended()?.is_some() {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for the end of a broker that is to end by itself: whether with success.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<bool, Failure> {
        match &mut self.nodes[0].process {
            Some(process) => Ok(process.wait(limit)?.success()),
            None => Ok(true),
        }
    }

    /// `host:port` of each node, for clients.
    pub(crate) fn address(&self) -> String {
        let addresses: Vec<_> = self.nodes.iter().map(Node::address).collect();
        addresses.join(",")
    }

    /// The folder with the data of the first node.
    pub(crate) fn folder(&self) -> &Path {
        &self.nodes[0].folder
    }

    /// Stops the broker as an operator does, with SIGTERM, and waits for its end.
    pub(crate) fn stop(&mut self) -> Result<(), Failure> {
        self.nodes.iter_mut().try_for_each(Node::stop)
    }

    /// Kills the broker where it stands, with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.nodes.iter_mut().for_each(Node::kill);
    }

    /// Starts it again, after `stop` or `kill`, on the same ports and folders.
    pub(crate) fn start_again(&mut self) -> Result<(), Failure> {
        self.begin_to_start()?;
        self.until_it_answers()
    }

    /// The same without waiting for it to answer.
    pub(crate) fn begin_to_start(&mut self) -> Result<(), Failure> {
        for node in &mut self.nodes {
            let command = command(&self.run, node, self.settings)?;
            node.start(&self.run, run_by(&self.within, command))?;
        }
        Ok(())
    }

    fn until_it_answers(&mut self) -> Result<(), Failure> {
        self.nodes.iter_mut().try_for_each(Node::until_it_answers)
    }

    /// Starts one node again and waits until it answers.
    pub(crate) fn start_node(&mut self, id: usize) -> Result<(), Failure> {
        let (run, settings) = (self.run.clone(), self.settings);
        let node = self.node(id);
        let command = command(&run, node, settings)?;
        node.start(&run, command)?;
        node.until_it_answers()
    }

    /// A node by its id. A broker of one node has that one whatever it is called.
    pub(crate) fn node(&mut self, id: usize) -> &mut Node {
        let last = self.nodes.len();
        &mut self.nodes[id.clamp(1, last) - 1]
    }

    /// How much processor time it has used, all nodes together.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, Failure> {
        self.nodes.iter().map(Node::cpu_seconds).sum()
    }

    /// The end of the broker's log, for the message of a failure; of several nodes only where
    /// their logs are.
    pub(crate) fn tail(&self) -> String {
        match &self.nodes[..] {
            [node] => node.tail(),
            _ => format!("\n    logs: {}", self.run.logs().display()),
        }
    }
}

fn command(run: &Run, node: &Node, settings: Settings) -> Result<Command, Failure> {
    match run.broker_kind() {
        BrokerKind::Kohort => kohort::command(run, &node.address(), &node.folder, settings),
        BrokerKind::Kafka | BrokerKind::Kafka3 => kafka::command(run, &node.folder),
    }
}

/// The same command with words in front of it.
fn run_by(within: &[String], command: Command) -> Command {
    let Some((program, words)) = within.split_first() else {
        return command;
    };
    let mut outer = Command::new(program);
    outer.args(words).arg(command.get_program());
    outer.args(command.get_args());
    outer
}

/// Below the ports that systems take for outgoing connections: a client that tries such a port
/// while nobody listens there may come to be connected with itself, and hold it.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A port that nobody listens on at the moment.
pub(crate) fn free_port() -> Result<u16, Failure> {
    for _ in 0..1000 {
        let port = fastrand::u16(PORTS);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(Failure::new("no free port"))
}
