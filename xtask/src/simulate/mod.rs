//! The simulator, the models, and the bugs that they have to find.

mod planted;

use std::process::Command;

use clap::Args;
use kohort_harness::{Failure, Workspace};

pub(crate) use planted::{planted_bugs, planted_bugs_short};

/// Which seeds the simulator runs.
#[derive(Args)]
pub(crate) struct Seeds {
    /// How many
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Begin no more after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Run each seed twice, and compare
    #[arg(long)]
    twice: bool,
    /// Print all that happens
    #[arg(long)]
    trace: bool,
}

/// Which worlds the models go through.
#[derive(Args)]
pub(crate) struct Worlds {
    /// Only worlds whose name contains this
    #[arg(default_value = "")]
    name: String,
    /// The large ones as well, which take many minutes
    #[arg(long)]
    large: bool,
}

/// A command that builds the simulator, with its own profile, and runs it.
pub(crate) fn simulator(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "--profile", "sim"]);
    command.args(["--package", "kohort-sim", "--"]);
    command
}

/// Runs seeds, printing as it goes.
pub(crate) fn sim(workspace: &Workspace, seeds: &Seeds) -> Result<bool, Failure> {
    let mut command = simulator(workspace);
    command.arg("run");
    command.arg(format!("--seeds={}", seeds.seeds));
    command.arg(format!("--from={}", seeds.from));
    if let Some(seconds) = seeds.seconds {
        command.arg(format!("--seconds={seconds}"));
    }
    for (flag, is_set) in [("--twice", seeds.twice), ("--trace", seeds.trace)] {
        if is_set {
            command.arg(flag);
        }
    }
    Ok(command.status()?.success())
}

/// Goes through all states of small worlds.
pub(crate) fn model(workspace: &Workspace, worlds: &Worlds) -> Result<bool, Failure> {
    let mut command = simulator(workspace);
    command.args(["model", &worlds.name]);
    if worlds.large {
        command.arg("--large");
    }
    Ok(command.status()?.success())
}

/// The failures in what the simulator prints: of each the line that names the seed and the broken
/// promise, and the command that shows it again.
pub(crate) fn failed_seeds(said: &str) -> Vec<String> {
    let mut failures: Vec<String> = Vec::new();
    for line in said.lines() {
        if line.starts_with("seed ") {
            failures.push(line.to_owned());
        } else if line.starts_with("again: ")
            && let Some(failure) = failures.last_mut()
        {
            failure.push_str("\n    ");
            failure.push_str(line);
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::failed_seeds;

    #[test]
    fn a_failed_seed_is_named_with_the_promise_and_how_to_see_it_again() {
        let said = "\nseed 7, step 12: one owner: two of them\n  100.0 some step\n\
            again: cargo xtask sim --from 7 --seeds 1 --trace\n\
            100 seeds, 1 failed; 900 steps\n";
        let expected = "seed 7, step 12: one owner: two of them\n    \
            again: cargo xtask sim --from 7 --seeds 1 --trace";
        assert_eq!(failed_seeds(said), [expected]);
        assert!(failed_seeds("100 seeds, 0 failed; 900 steps\n").is_empty());
    }
}
