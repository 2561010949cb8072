//! Which suites a run consists of, and how it runs them.

use std::path::PathBuf;

use clap::Args;

use super::{Suite, all};
use crate::broker::BrokerKind;
use crate::failure::Failure;
use crate::report::Report;
use crate::run::Run;
use crate::workspace::Workspace;

/// What a run consists of.
#[derive(Args)]
pub struct Selection {
    /// Only steps and suites whose name contains this; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Leave out the interop suites marked as slow
    #[arg(long)]
    quick: bool,
    /// All tests of other projects' suites, not only those that fit into a few minutes
    #[arg(long)]
    full: bool,
    /// The broker under the interop suites; Apache Kafka checks the programs themselves. Suites
    /// that are about one broker start that one, and are left out if this names another
    #[arg(long, value_enum)]
    broker: Option<BrokerKind>,
    /// The program to test, instead of the one built here
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// No second try for a suite of other people's programs that fails
    #[arg(long)]
    once: bool,
    /// Print the names of steps and suites, and run nothing
    #[arg(long)]
    list: bool,
}

impl Selection {
    /// Whether a step with this name is selected.
    pub fn chooses(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }

    /// Whether names are printed and nothing is run.
    pub fn only_lists(&self) -> bool {
        self.list
    }

    /// Whether the program of this repository is under test, rather than Apache Kafka or a program
    /// that was named.
    pub(crate) fn needs_build(&self) -> bool {
        let kafka = self
            .broker
            .is_some_and(|broker| broker != BrokerKind::Kohort);
        !kafka && self.program.is_none() && !self.list
    }

    fn chooses_suite(&self, suite: &Suite) -> bool {
        let is_about_another =
            self.broker.is_some() && suite.broker.is_some() && suite.broker != self.broker;
        let is_asked_for = self.full || !self.only.is_empty();
        let is_left_out = is_about_another
            || (self.quick && suite.slow)
            || (suite.on_demand && !is_asked_for && !self.list);
        self.chooses(&suite.name) && !is_left_out
    }
}

/// Runs the selected suites, or prints their names.
pub(crate) fn run(
    workspace: &Workspace,
    selection: &Selection,
    report: &mut Report,
) -> Result<(), Failure> {
    let workspace = workspace.testing(selection.program.as_deref())?;
    let run = Run::new(workspace, BrokerKind::Kohort).full(selection.full);
    for suite in all() {
        if !selection.chooses_suite(&suite) {
            continue;
        }
        if selection.list {
            println!("{}", suite.name);
            continue;
        }
        let broker = suite.broker.or(selection.broker);
        let run = run.against(broker.unwrap_or(BrokerKind::Kohort));
        if let Some(missing) = suite.missing_toolchain(run.broker_kind()) {
            report.skip(&suite.name, &missing);
            continue;
        }
        let play = |tries| {
            if tries > 1 {
                run.keep_logs(&suite.name)?;
            }
            (suite.run)(&run.in_suite(&suite.name)?)
        };
        if selection.once || suite.is_ours_alone {
            report.run(&suite.name, || play(1));
        } else {
            report.run_twice(&suite.name, play);
        }
    }
    Ok(())
}
