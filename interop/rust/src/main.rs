//! The agent for kohort's own client; see interop/README.md for its commands and its output.

mod consume;
mod event;
mod produce;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use kohort::admin::NewTopic;
use kohort::producer::Compression;
use kohort::{Admin, ClientConfig, Properties};
use serde_json::json;

use crate::event::emit;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Version,
    Create {
        #[command(flatten)]
        at: At,
        #[arg(long)]
        partitions: i32,
    },
    Grow {
        #[command(flatten)]
        at: At,
        #[arg(long)]
        partitions: i32,
    },
    Produce(produce::Options),
    Consume(consume::Options),
}

/// Which topic, and where.
#[derive(Args)]
struct At {
    #[arg(long)]
    bootstrap: String,
    #[arg(long)]
    topic: String,
}

impl At {
    /// What every client is told.
    fn properties(&self) -> Properties {
        Properties::default().with("bootstrap.servers", &self.bootstrap)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter("info")
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    match perform(Arguments::parse().command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn perform(command: Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Version => version(),
        Command::Create { at, partitions } => create(&at, partitions).await?,
        Command::Grow { at, partitions } => grow(&at, partitions).await?,
        Command::Produce(options) => produce::produce(&options).await?,
        Command::Consume(options) => consume::consume(options).await?,
    }
    Ok(())
}

fn version() {
    emit(&json!({
        "event": "version",
        "client": concat!("kohort ", env!("CARGO_PKG_VERSION")),
        "protocols": ["classic", "consumer"],
        "compressions": Compression::ALL.map(Compression::name),
        "idempotent": true,
        "static_members": true,
    }));
}

async fn create(at: &At, partitions: i32) -> kohort::Result<()> {
    let admin = Admin::connect(ClientConfig::from_properties(&at.properties())?).await?;
    let topic = NewTopic::new(at.topic.as_str(), partitions).replication_factor(1);
    admin.create_topic(&topic).await?;
    until_there(&admin, at, partitions).await
}

async fn grow(at: &At, partitions: i32) -> kohort::Result<()> {
    let admin = Admin::connect(ClientConfig::from_properties(&at.properties())?).await?;
    admin.create_partitions(&at.topic, partitions).await?;
    until_there(&admin, at, partitions).await
}

async fn until_there(admin: &Admin, at: &At, partitions: i32) -> kohort::Result<()> {
    let there = async || -> kohort::Result<bool> {
        let topics = admin.list_topics(false).await?;
        let found = topics.iter().find(|topic| *topic.name == *at.topic);
        Ok(found.is_some_and(|topic| topic.partitions.len() == partitions as usize))
    };
    while !there().await? {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    emit(&json!({"event": "created"}));
    Ok(())
}
