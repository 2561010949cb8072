//! The tasks of `cargo xtask` that run real programs, with their options.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::agent::{Protocol, catalog};
use crate::broker::BrokerKind;
use crate::failure::Failure;
use crate::report::{Passed, Report};
use crate::run::Run;
use crate::suites::{self, Selection};
use crate::workspace::Workspace;
use crate::{differential, programs, scenario};

pub use crate::differential::Options as Differential;
pub use crate::rebalances::{Options as RebalanceTimes, measure as rebalance_times};
pub use crate::throughput::{Options as Throughput, measure as throughput};

/// What is asked of a soak.
#[derive(Args)]
pub struct Soak {
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    #[arg(long, value_enum, default_value_t = BrokerKind::Kohort)]
    broker: BrokerKind,
    /// Records a second
    #[arg(long, default_value_t = 50)]
    rate: u64,
    /// Who joins, leaves and dies when; without it, another time each time
    #[arg(long)]
    seed: Option<u64>,
}

/// When the broker is killed, and under which clients.
#[derive(Args)]
pub struct Kills {
    /// How many times
    #[arg(long, value_name = "N", default_value_t = 300)]
    count: u64,
    /// Chooses the moments
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    from: u64,
    /// The group's protocol
    #[arg(long, value_enum, default_value_t = Protocol::Consumer)]
    protocol: Protocol,
    /// The program to test, instead of the one built here
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Runs the selected suites as a part of a longer report.
pub fn interop_suites(
    workspace: &Workspace,
    selection: &Selection,
    report: &mut Report,
) -> Result<(), Failure> {
    suites::run(workspace, selection, report)
}

/// Builds the program if it is the one under test, and runs the selected suites.
pub fn interop(workspace: &Workspace, selection: &Selection) -> Result<bool, Failure> {
    let mut report = Report::default();
    if selection.needs_build() {
        report.run("build", || {
            programs::build(workspace).map(|()| Passed::default())
        });
    }
    suites::run(workspace, selection, &mut report)?;
    Ok(report.finish())
}

/// Lets members of kohort's own client join, leave and die, while a producer writes.
pub fn soak(workspace: &Workspace, options: &Soak) -> Result<bool, Failure> {
    let mut report = Report::default();
    let soak = scenario::Soak {
        length: Duration::from_secs(60 * options.minutes),
        rate: options.rate,
        seed: options.seed.unwrap_or_else(|| fastrand::u64(..10_000)),
    };
    let run = Run::new(workspace.clone(), options.broker);
    let run = run.in_suite(&format!("soak/{}", options.broker.name()))?;
    println!("   seed {}", soak.seed);
    report.run("soak", || scenario::soak(&run, soak));
    Ok(report.finish())
}

/// Kills the broker again and again under producers and groups of kohort's client.
pub fn kills(workspace: &Workspace, options: &Kills) -> Result<bool, Failure> {
    let mut report = Report::default();
    let workspace = workspace.testing(options.program.as_deref())?;
    let run = Run::new(workspace, BrokerKind::Kohort).in_suite("kills")?;
    report.run("kills", || {
        let source = &catalog::KOHORT;
        scenario::kills(&run, source, options.protocol, options.count, options.from)
    });
    Ok(report.finish())
}

/// Compares kohort's answers with Apache Kafka's.
pub fn differential(workspace: &Workspace, options: &Differential) -> Result<bool, Failure> {
    let mut report = Report::default();
    let workspace = workspace.testing(options.program.as_deref())?;
    let run = Run::new(workspace, BrokerKind::Kohort).in_suite("differential")?;
    report.run("differential", || differential::compare(&run, options));
    Ok(report.finish())
}
