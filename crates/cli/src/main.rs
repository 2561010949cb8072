//! The program `kohort`: reads the command line and hands over to a command, one file each.

#![warn(clippy::print_stdout)]

mod client;
mod completion;
mod consume;
mod demo;
mod explain;
mod failure;
mod format;
mod groups;
mod history;
mod lag;
mod log;
mod offsets;
mod output;
mod produce;
mod rewind;
mod serve;
mod signals;
mod times;
mod topics;

use std::{collections::HashSet, future::Future, io::Write, process::ExitCode};

use clap::{ArgAction, CommandFactory, Parser, Subcommand};
use clap_complete::CompleteEnv;

use failure::Failure;

/// The width of help, however wide the terminal: long lines are hard to read.
const HELP_WIDTH: usize = 80;

/// A Kafka broker in one program, and tools for consumer groups on any Kafka cluster
#[derive(Debug, Parser)]
#[command(
    name = "kohort",
    version,
    disable_version_flag = true,
    arg_required_else_help = true,
    max_term_width = HELP_WIDTH,
    after_help = "Examples:
  kohort serve --in-memory
  kohort topics create orders -p 6
  echo hello | kohort produce -t orders
  kohort consume -G billing orders
  kohort groups explain billing"
)]
struct Program {
    #[command(subcommand)]
    command: Command,
    /// Print version
    #[arg(short = 'v', short_alias = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Demo(demo::Demo),
    /// Create, list, describe and delete topics
    #[command(
        subcommand,
        after_help = "Example:
  kohort topics create orders -p 6"
    )]
    Topics(topics::Topics),
    Produce(produce::Produce),
    Consume(consume::Consume),
    /// List, describe, explain, rewind and delete groups, and show their history
    #[command(
        subcommand,
        after_help = "Examples:
  kohort groups describe billing
  kohort groups explain billing
  kohort groups rewind billing --topic orders --to-earliest"
    )]
    Groups(groups::Groups),
    #[command(subcommand)]
    Log(log::Log),
    /// Print the script that completes commands, topics and groups in a shell
    #[command(after_help = "Examples:
  echo 'source <(kohort completions bash)' >> ~/.bashrc
  echo 'source <(kohort completions zsh)' >> ~/.zshrc
  kohort completions fish > ~/.config/fish/completions/kohort.fish")]
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Print version
    #[command(after_help = "Example:
  kohort version")]
    Version,
}

fn main() -> ExitCode {
    CompleteEnv::with_factory(Program::command).complete();
    let done = match Program::parse().command {
        Command::Serve(serve) => serve.run(),
        Command::Demo(demo) => block_on(demo.run()),
        Command::Topics(topics) => block_on(topics.run()),
        Command::Produce(produce) => block_on(produce.run()),
        Command::Consume(consume) => block_on(consume.run()),
        Command::Groups(groups) => block_on(groups.run()),
        Command::Log(log) => log.run(),
        Command::Completions { shell } => completion::print_script(shell),
        Command::Version => output::line(format_args!("kohort {}", env!("CARGO_PKG_VERSION")))
            .map_err(Failure::from),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has seen enough.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            // Standard error may be closed; there is no better place to report that.
            let _ = writeln!(std::io::stderr(), "kohort: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The environment variables that stand for a flag of a command.
fn environment_flags() -> HashSet<String> {
    let program = Program::command();
    let commands = program
        .get_subcommands()
        .flat_map(|command| std::iter::once(command).chain(command.get_subcommands()));
    let arguments = commands.flat_map(clap::Command::get_arguments);
    let variables = arguments.filter_map(|argument| argument.get_env()?.to_str());
    variables
        .map(str::to_owned)
        .chain([serve::LOG_VARIABLE, client::OLD_SERVERS_VARIABLE].map(str::to_owned))
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
    // A read of standard input that is no longer needed must not keep the program alive.
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

    /// Each command with its long and its short help.
    fn helps() -> Vec<(String, String, String)> {
        fn collect(
            path: &str,
            command: &mut clap::Command,
            all: &mut Vec<(String, String, String)>,
        ) {
            let long = command.clone().render_long_help().to_string();
            let short = command.clone().render_help().to_string();
            all.push((path.to_owned(), long, short));
            for sub in command.get_subcommands_mut() {
                let path = format!("{path} {}", sub.get_name());
                if sub.get_name() != "help" {
                    collect(&path, sub, all);
                }
            }
        }
        let mut program = Program::command();
        program.build();
        let mut all = Vec::new();
        collect("kohort", &mut program, &mut all);
        all
    }

    #[test]
    fn every_help_has_an_example_and_fits_into_80_columns() {
        let helps = helps();
        assert!(helps.len() > 15, "{}", helps.len());
        for (path, long, short) in helps {
            assert!(long.contains("Example"), "{path}:\n{long}");
            for line in short.lines().chain(long.lines()) {
                assert!(line.chars().count() <= HELP_WIDTH, "{path}: {line}");
            }
        }
    }

    #[test]
    fn connection_options_come_last() {
        for (path, long, _) in helps() {
            let Some(connection) = long.find("\nConnection:\n") else {
                continue;
            };
            let options = long
                .find("\nOptions:\n")
                .expect("every command has options");
            assert!(options < connection, "{path}");
            let rest = &long[connection..];
            assert!(!rest.contains("--help"), "{path}");
        }
    }

    #[test]
    fn every_option_is_described() {
        fn check(path: &str, command: &clap::Command) {
            for argument in command.get_arguments() {
                let is_described = argument.get_help().is_some();
                assert!(is_described, "{path}: {}", argument.get_id());
            }
            for sub in command.get_subcommands() {
                assert!(sub.get_about().is_some(), "{path} {}", sub.get_name());
                check(&format!("{path} {}", sub.get_name()), sub);
            }
        }
        check("kohort", &Program::command());
    }
}
