//! Tasks of this repository: `cargo xtask help`.

mod checks;
mod fuzz;
mod simulate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kohort_harness::{Failure, Report, Selection, Workspace, begin, tasks};

/// Tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything that must hold before a change lands: format, lints, tests, documentation, the
    /// program, and every interop suite
    Test(Selection),
    /// Only the interop suites: real Kafka clients and tools against a broker
    Interop(Selection),
    /// Members of kohort's own client that join, leave and die, while a producer writes: every
    /// record must be seen
    Soak(tasks::Soak),
    /// Simulated groups: everything goes wrong as a seed says, and promises are checked
    Sim(simulate::Seeds),
    /// The models: every state of small worlds
    Model(simulate::Worlds),
    /// Plants known mistakes one by one, and shows what finds them
    PlantedBugs {
        /// Only bugs whose name contains this
        #[arg(default_value = "")]
        name: String,
        /// Ask the simulator, the models and the tests, also if the first has found it
        #[arg(long)]
        all: bool,
    },
    /// Compares kohort's answers with Apache Kafka's, over random scripts of group requests
    Differential(tasks::Differential),
    /// Kills the broker again and again under producers and groups of kohort's client
    Kills(tasks::Kills),
    /// The tests that make their input from seeds, for as long as one wants: decoders, log recovery,
    /// the coordinator and its records
    Fuzz(fuzz::Options),
    /// The criterion benches of the hot paths
    Bench {
        /// Only benches whose name contains this
        filter: Option<String>,
    },
    /// Producing and consuming with kohort's client and with rdkafka, against Apache Kafka:
    /// records per second, and per second of processor time
    Throughput(tasks::Throughput),
    /// How long rebalances of a group of a hundred stock consumers take, on kohort and on Apache
    /// Kafka; best on a quiet machine
    RebalanceTimes(tasks::RebalanceTimes),
}

fn main() -> ExitCode {
    begin();
    match perform(Arguments::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn perform(task: Task) -> Result<bool, Failure> {
    let workspace = Workspace::find()?;
    match task {
        Task::Test(selection) => test(&workspace, &selection),
        Task::Interop(selection) => tasks::interop(&workspace, &selection),
        Task::Soak(options) => tasks::soak(&workspace, &options),
        Task::Sim(seeds) => simulate::sim(&workspace, &seeds),
        Task::Model(worlds) => simulate::model(&workspace, &worlds),
        Task::PlantedBugs { name, all } => simulate::planted_bugs(&workspace, &name, all),
        Task::Differential(options) => tasks::differential(&workspace, &options),
        Task::Kills(options) => tasks::kills(&workspace, &options),
        Task::Fuzz(options) => fuzz::fuzz(&workspace, &options),
        Task::Bench { filter } => checks::bench(&workspace, filter.as_deref()),
        Task::Throughput(options) => tasks::throughput(&workspace, &options).map(|()| true),
        Task::RebalanceTimes(options) => {
            tasks::rebalance_times(&workspace, &options).map(|()| true)
        }
    }
}

fn test(workspace: &Workspace, selection: &Selection) -> Result<bool, Failure> {
    let mut report = Report::default();
    for check in checks::ALL {
        if !selection.chooses(check.name) {
            continue;
        }
        if selection.only_lists() {
            println!("{}", check.name);
        } else {
            report.run(check.name, || (check.run)(workspace));
        }
    }
    tasks::interop_suites(workspace, selection, &mut report)?;
    Ok(report.finish())
}
