//! The program `kohort`: reads the command line and hands over to a command, one file each.

#![warn(clippy::print_stdout)]

mod client;
mod consume;
mod demo;
mod explain;
mod failure;
mod format;
mod groups;
mod history;
mod offsets;
mod output;
mod produce;
mod rewind;
mod serve;
mod signals;
mod topic_pattern;
mod topics;

use std::{collections::HashSet, future::Future, io::Write, process::ExitCode};

use clap::{ArgAction, CommandFactory, Parser, Subcommand};

use failure::Failure;

/// Consumer groups for Kafka: a broker that any client can join, and tools for any cluster.
#[derive(Debug, Parser)]
#[command(
    name = "kohort",
    version,
    arg_required_else_help = true,
    disable_version_flag = true,
    max_term_width = 80,
    after_help = "Examples:
  kohort serve --data-dir ./data
  kohort topics create orders -p 6
  kohort groups describe billing"
)]
struct Program {
    /// Print the version.
    #[arg(short = 'v', short_alias = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Demo(demo::Demo),
    /// Create, list, describe and delete topics.
    #[command(subcommand)]
    Topics(topics::Topics),
    /// Write lines from standard input or files to a topic.
    Produce(produce::Produce),
    /// Print a topic's records, alone or as a member of a group.
    Consume(consume::Consume),
    /// List, describe, explain, rewind and delete groups; show their history.
    #[command(subcommand)]
    Groups(groups::Groups),
    /// Print a completion script for a shell.
    #[command(after_help = "Example:
  kohort completions bash > ~/.local/share/bash-completion/completions/kohort")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the version.
    Version,
}

fn main() -> ExitCode {
    let done = match Program::parse().command {
        Command::Serve(serve) => serve.run(),
        Command::Demo(demo) => block_on(demo.run()),
        Command::Topics(topics) => block_on(topics.run()),
        Command::Produce(produce) => block_on(produce.run()),
        Command::Consume(consume) => block_on(consume.run()),
        Command::Groups(groups) => block_on(groups.run()),
        Command::Version => {
            output::line(concat!("kohort ", env!("CARGO_PKG_VERSION"))).map_err(Failure::from)
        }
        Command::Completions { shell } => {
            let mut program = Program::command();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut program, "kohort", &mut script);
            std::io::stdout().write_all(&script).map_err(Failure::from)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("kohort: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The variables of the environment that stand for a flag of some command.
fn environment_flags() -> HashSet<String> {
    let program = Program::command();
    let commands = program
        .get_subcommands()
        .flat_map(|command| std::iter::once(command).chain(command.get_subcommands()));
    let arguments = commands.flat_map(clap::Command::get_arguments);
    let variables = arguments.filter_map(|argument| argument.get_env()?.to_str());
    variables
        .map(str::to_owned)
        .chain([
            serve::LOG_VARIABLE.to_owned(),
            client::BOOTSTRAP_SERVER_VARIABLE.to_owned(),
        ])
        .collect()
}

/// Runs a command that talks to a cluster.
fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    let done = runtime.block_on(command);
    // A read of standard input that nobody waits for any more must not keep the program.
    runtime.shutdown_background();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Program::command().debug_assert();
    }
}
