//! Apache Kafka as one KRaft node that is broker and controller.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{SETTINGS, Settings, free_port};
use crate::failure::Failure;
use crate::install::maven;
use crate::process::Process;
use crate::run::Run;

const SERVER: &str = "kafka.Kafka";
const FORMAT: &str = "kafka.tools.StorageTool";

/// Writes the node's settings and formats its folder.
pub(super) fn format(run: &Run, port: u16, folder: &Path, more: Settings) -> Result<(), Failure> {
    let controller = free_port()?;
    let mut settings = format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.voters=1@127.0.0.1:{controller}\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
         controller.listener.names=CONTROLLER\n\
         inter.broker.listener.name=PLAINTEXT\n\
         log.dirs={folder}/logs\n\
         broker.session.timeout.ms=1000\n\
         broker.heartbeat.interval.ms=200\n\
         offsets.topic.replication.factor=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n\
         share.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\n",
        folder = folder.display(),
    );
    for (name, value) in SETTINGS.iter().chain(more) {
        let value = value.replace("{address}", &format!("127.0.0.1:{port}"));
        settings.push_str(&format!("{name}={value}\n"));
    }
    let file = folder.join("server.properties");
    std::fs::write(&file, settings)?;
    let mut command = java(run, FORMAT, "128m")?;
    command
        .args(["format", "--cluster-id", "a29ob3J0LWludGVyb3A", "--config"])
        .arg(file);
    Process::complete(command, "format", run.logs(), Duration::from_secs(60))?;
    Ok(())
}

pub(super) fn command(run: &Run, folder: &Path) -> Result<Command, Failure> {
    let mut command = java(run, SERVER, "512m")?;
    command.arg(folder.join("server.properties"));
    Ok(command)
}

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
