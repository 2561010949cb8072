//! Checks of kohort's client that judge by themselves, through its public API alone: the same
//! against every broker. See interop/README.md for what they print and wish for.

mod admin;
mod by_hand;
mod facade;
mod failures;
mod groups;
mod hands;
mod isolation;
mod members;
mod producing;
mod report;
mod rest;
mod security;
mod subscribing;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::report::Report;
use crate::world::{Checked, World};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that the client offers.
    Api(At),
    /// Brokers that die, fall asleep and come back, and leaders that move.
    Failures(At),
    /// TLS and SASL.
    Security {
        #[command(flatten)]
        at: At,
        /// The address over TLS, with client certificates.
        #[arg(long)]
        tls: String,
        /// The address over TLS, with SASL.
        #[arg(long)]
        sasl_tls: String,
        /// The address with SASL alone, where sessions are short.
        #[arg(long)]
        sasl: String,
        /// The folder with the certificates.
        #[arg(long)]
        certificates: PathBuf,
    },
}

/// Where the broker is, and what it is like.
#[derive(clap::Args)]
struct At {
    #[arg(long)]
    bootstrap: String,
    /// How many nodes it has.
    #[arg(long, default_value_t = 1)]
    nodes: usize,
    /// Only checks whose name contains this.
    #[arg(long)]
    only: Option<String>,
}

// One thread, so that what the client uses can be measured and nothing hides behind another one.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(std::env::var("RUST_LOG").unwrap_or("info".to_owned()))
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    println!("version kohort {}", env!("CARGO_PKG_VERSION"));
    let result = perform(Arguments::parse().command).await;
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

async fn perform(command: Command) -> Checked<bool> {
    match command {
        Command::Api(at) => {
            let world = World::reach(&at.bootstrap, at.nodes).await?;
            let mut report = Report::new(at.only);
            admin::check(&world, &mut report);
            producing::check(&world, &mut report);
            by_hand::check(&world, &mut report);
            subscribing::check(&world, &mut report);
            groups::check(&world, &mut report);
            isolation::check(&world, &mut report).await;
            facade::check(&world, &mut report);
            report.run_together().await;
            // What nobody does costs nothing: nobody else may do anything meanwhile.
            rest::check(&world, &mut report);
            report.run_alone().await;
            Ok(report.all_passed())
        }
        Command::Failures(at) => {
            let world = World::reach(&at.bootstrap, at.nodes).await?;
            let mut report = Report::new(at.only);
            failures::check(&world, &mut report);
            report.run_alone().await;
            Ok(report.all_passed())
        }
        Command::Security {
            at,
            tls,
            sasl_tls,
            sasl,
            certificates,
        } => {
            let places = security::Places {
                tls,
                sasl_tls,
                sasl,
                certificates,
            };
            let mut report = Report::new(at.only);
            security::check(&places, &mut report);
            report.run_together().await;
            Ok(report.all_passed())
        }
    }
}
