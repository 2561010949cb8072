//! The program `kohort`: reads the command line and hands over to a command, one file each.

mod failure;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Consumer groups for Kafka: a broker, and tools for groups.
#[derive(Debug, Parser)]
#[command(name = "kohort", version, about)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
}

fn main() -> ExitCode {
    let done = match Program::parse().command {
        Command::Serve(serve) => serve.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("kohort: {failure}");
            ExitCode::FAILURE
        }
    }
}
