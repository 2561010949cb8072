//! How long rebalances of a large group of stock consumers take, on kohort and on Apache Kafka, and
//! what its heartbeats cost.
//!
//! All members of a group are in one process (`Herd.java`, `confluent_herd.py`), which measures:
//! from the change until every member has what it is to have.

use std::ffi::OsString;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Deserialize;

use crate::agent::{Agent, Protocol, catalog};
use crate::broker::{Broker, BrokerKind};
use crate::failure::Failure;
use crate::install::{maven, python};
use crate::process::Process;
use crate::programs;
use crate::run::Run;
use crate::workspace::Workspace;

/// How long one group may take in all.
const LIMIT: Duration = Duration::from_secs(900);

/// What the brokers have when nobody says anything, instead of what other suites set.
const SETTINGS: &[(&str, &str)] = &[
    ("group.initial.rebalance.delay.ms", "3000"),
    ("group.consumer.session.timeout.ms", "45000"),
    ("group.consumer.min.session.timeout.ms", "45000"),
    ("group.consumer.heartbeat.interval.ms", "5000"),
    ("group.consumer.min.heartbeat.interval.ms", "5000"),
];

/// What to measure.
#[derive(Args)]
pub struct Options {
    /// Only measurements whose name (`kohort/java/consumer`) contains this; may be given several
    /// times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// How many members the group has
    #[arg(long, default_value_t = 100)]
    members: usize,
    /// How often all members are restarted one after the other
    #[arg(long, default_value_t = 1)]
    rolls: usize,
    /// The program to measure, instead of the one built here
    #[arg(long, value_name = "FILE")]
    program: Option<std::path::PathBuf>,
}

/// What a herd says.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Said {
    Settled {
        what: String,
        ms: u64,
        after_ms: u64,
    },
    SteadyBegins,
    SteadyEnds,
    Closed,
}

struct Library {
    name: &'static str,
    command: fn(&Workspace) -> Result<Vec<OsString>, Failure>,
}

const LIBRARIES: [Library; 2] = [
    Library {
        name: "java",
        command: |workspace| {
            let mut command = maven::program(workspace, "Herd")?;
            for word in &mut command {
                if word == "-Xmx256m" {
                    *word = "-Xmx640m".into();
                }
            }
            Ok(command)
        },
    },
    Library {
        name: "librdkafka",
        command: |workspace| python::agent(workspace, "confluent_herd.py"),
    },
];

/// Measures rebalances, and prints a line for each group.
pub fn measure(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    if options.program.is_none() {
        programs::build(workspace)?;
    }
    let workspace = workspace.testing(options.program.as_deref())?;
    println!("milliseconds until every member has what it is to have; `+` after the last change");
    for library in &LIBRARIES {
        for protocol in Protocol::ALL {
            for (name, kind) in [("kohort", BrokerKind::Kohort), ("kafka", BrokerKind::Kafka)] {
                let name = format!("{name}/{}/{}", library.name, protocol.name());
                let only = &options.only;
                if only.is_empty() || only.iter().any(|part| name.contains(part.as_str())) {
                    let run = Run::new(workspace.clone(), kind).in_suite(&name)?;
                    match measure_group(&run, library, protocol, options) {
                        Ok(line) => println!("{name:<28} {line}"),
                        Err(failure) => println!("{name:<28} {failure}"),
                    }
                }
            }
        }
    }
    Ok(())
}

fn measure_group(
    run: &Run,
    library: &Library,
    protocol: Protocol,
    options: &Options,
) -> Result<String, Failure> {
    let members = options.members;
    let broker = Broker::start(run, "broker", SETTINGS)?;
    let partitions = 2 * members;
    Agent::install(&catalog::ALL[0], run)?.create(run, &broker, "herd", partitions)?;
    let words = (library.command)(run.workspace())?;
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .args(["measure", "--group", "herd"]);
    command.args(["--bootstrap", &broker.address(), "--topic", "herd"]);
    command.args(["--protocol", protocol.name()]);
    command.args(["--members", &members.to_string()]);
    command.args(["--partitions", &partitions.to_string()]);
    command.args(["--rolls", &options.rolls.to_string()]);
    let (sender, lines) = mpsc::channel();
    let mut process = Process::start_with_lines(command, library.name, run.logs(), move |line| {
        let _ = sender.send(line.map(str::to_owned));
    })?;
    let mut told = Vec::new();
    let mut steady = None;
    let deadline = Instant::now() + LIMIT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(Some(line)) = lines.recv_timeout(left) else {
            let status = process.wait(Duration::from_secs(5))?;
            return Err(process.failed(status));
        };
        let Ok(said) = serde_json::from_str(&line) else {
            continue;
        };
        match said {
            Said::Settled { what, ms, after_ms } if what == "start" || what == "roll" => {
                told.push(format!("{what} {ms} (+{after_ms})"));
            }
            Said::Settled { what, ms, .. } => told.push(format!("{what} {ms}")),
            Said::SteadyBegins => steady = Some((Instant::now(), broker.cpu_seconds()?)),
            Said::SteadyEnds => {
                if let Some((since, cpu_seconds)) = steady.take() {
                    let used = broker.cpu_seconds()? - cpu_seconds;
                    let percent = 100.0 * used / since.elapsed().as_secs_f64();
                    told.push(format!("steady {percent:.1} % of a processor"));
                }
            }
            Said::Closed => return Ok(told.join(", ")),
        }
    }
}
