//! Apache Kafka as KRaft nodes that are brokers and controllers.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::node::Node;
use super::{Extras, SETTINGS, Settings};
use crate::failure::Failure;
use crate::install::maven;
use crate::process::Process;
use crate::run::Run;

const SERVER: &str = "kafka.Kafka";
const FORMAT: &str = "kafka.tools.StorageTool";
const FORMAT_LIMIT: Duration = Duration::from_secs(60);

/// Writes the settings of the nodes and formats their folders.
pub(super) fn format(
    run: &Run,
    nodes: &[Node],
    more: Settings,
    extras: &Extras,
) -> Result<(), Failure> {
    for node in nodes {
        let file = node.folder.join("server.properties");
        std::fs::write(&file, settings(node, nodes, more, extras))?;
        let mut command = java(run, FORMAT, "128m")?;
        command
            .args(["format", "--cluster-id", "a29ob3J0LWludGVyb3A", "--config"])
            .arg(file);
        for user in &extras.scram {
            command.args(["--add-scram", user]);
        }
        Process::complete(command, "format", run.logs(), FORMAT_LIMIT)?;
    }
    Ok(())
}

fn settings(node: &Node, nodes: &[Node], more: Settings, extras: &Extras) -> String {
    let mut listeners = format!("PLAINTEXT://{}", node.address());
    let mut protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT".to_owned();
    for (name, port, protocol) in &extras.listeners {
        let _ = write!(listeners, ",{name}://127.0.0.1:{port}");
        let _ = write!(protocols, ",{name}:{protocol}");
    }
    let voters: Vec<_> = nodes
        .iter()
        .map(|node| format!("{}@127.0.0.1:{}", node.id, node.controller_port))
        .collect();
    let several = nodes.len() > 1;
    let (replicas, in_sync) = if several { (3, 2) } else { (1, 1) };
    // One node comes back quickly after it was killed if its former life is soon forgotten; of
    // several on two cores none is to be taken for dead because it was slow.
    let (session_ms, heartbeat_ms) = if several { (3000, 500) } else { (1000, 200) };
    let mut settings = format!(
        "process.roles=broker,controller\n\
         node.id={id}\n\
         controller.quorum.voters={voters}\n\
         listeners={listeners},CONTROLLER://127.0.0.1:{controller_port}\n\
         advertised.listeners={listeners}\n\
         listener.security.protocol.map={protocols}\n\
         controller.listener.names=CONTROLLER\n\
         inter.broker.listener.name=PLAINTEXT\n\
         log.dirs={folder}/logs\n\
         broker.session.timeout.ms={session_ms}\n\
         broker.heartbeat.interval.ms={heartbeat_ms}\n\
         default.replication.factor={replicas}\n\
         min.insync.replicas={in_sync}\n\
         offsets.topic.replication.factor={replicas}\n\
         transaction.state.log.num.partitions=4\n\
         transaction.state.log.replication.factor={replicas}\n\
         transaction.state.log.min.isr={in_sync}\n\
         share.coordinator.state.topic.replication.factor={replicas}\n\
         share.coordinator.state.topic.min.isr={in_sync}\n\
         leader.imbalance.check.interval.seconds=5\n\
         leader.imbalance.per.broker.percentage=0\n",
        id = node.id,
        voters = voters.join(","),
        controller_port = node.controller_port,
        folder = node.folder.display(),
    );
    for (name, value) in SETTINGS.iter().chain(more) {
        let value = value.replace("{address}", &node.address());
        let _ = writeln!(settings, "{name}={value}");
    }
    for (name, value) in &extras.settings {
        let _ = writeln!(settings, "{name}={value}");
    }
    settings
}

pub(super) fn command(run: &Run, folder: &Path) -> Result<Command, Failure> {
    let heap = match run.broker_kind().nodes() {
        1 => "512m",
        _ => "320m",
    };
    let mut command = java(run, SERVER, heap)?;
    command.arg(folder.join("server.properties"));
    Ok(command)
}

/// One of the programs in Kafka's jars.
fn java(run: &Run, class: &str, heap: &str) -> Result<Command, Failure> {
    let jars = maven::kafka(run.workspace())?;
    let mut command = Command::new("java");
    command
        .args([
            &format!("-Xmx{heap}"),
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
        ])
        .args([
            "-Xshare:auto",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-cp",
        ])
        .arg(format!("{}/*", jars.display()))
        .arg(class);
    Ok(command)
}
