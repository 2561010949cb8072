//! Tasks of this repository: `cargo xtask help`.

mod agent;
mod broker;
mod checks;
mod differential;
mod disks;
mod failure;
mod fresh;
mod fuzz;
mod install;
mod interrupt;
mod process;
mod rebalances;
mod report;
mod run;
mod scenario;
mod simulate;
mod suites;
mod throughput;
mod wait;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use broker::BrokerKind;
use failure::Failure;
use report::Report;
use run::Run;
use scenario::Soak;
use suites::Suite;
use workspace::Workspace;

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
    Soak {
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
    },
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
    Differential(differential::Options),
    /// Kills the broker again and again under producers and groups of kohort's client
    Kills(Kills),
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
    Throughput(throughput::Options),
    /// How long rebalances of a group of a hundred stock consumers take, on kohort and on Apache
    /// Kafka; best on a quiet machine
    RebalanceTimes(rebalances::Options),
}

#[derive(Args)]
struct Kills {
    /// How many times
    #[arg(long, value_name = "N", default_value_t = 300)]
    count: u64,
    /// Chooses the moments
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    from: u64,
    /// The group's protocol
    #[arg(long, value_enum, default_value_t = agent::Protocol::Consumer)]
    protocol: agent::Protocol,
    /// The program to test, instead of the one built here
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

#[derive(Args)]
struct Selection {
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
    fn chooses(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
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

fn main() -> ExitCode {
    interrupt::install();
    process::began();
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
        Task::Throughput(options) => throughput::measure(&workspace, &options).map(|()| true),
        Task::RebalanceTimes(options) => rebalances::measure(&workspace, &options).map(|()| true),
        Task::Bench { filter } => checks::bench(&workspace, filter.as_deref()),
        Task::Soak {
            minutes,
            broker,
            rate,
            seed,
        } => {
            let mut report = Report::default();
            let soak = Soak {
                length: Duration::from_secs(60 * minutes),
                rate,
                seed: seed.unwrap_or_else(|| fastrand::u64(..10_000)),
            };
            let run = Run::new(workspace.clone(), broker);
            let run = run.in_suite(&format!("soak/{}", broker.name()))?;
            println!("   seed {}", soak.seed);
            report.run("soak", || scenario::soak(&run, soak));
            Ok(report.finish())
        }
        Task::Sim(seeds) => simulate::sim(&workspace, &seeds),
        Task::Model(worlds) => simulate::model(&workspace, &worlds),
        Task::PlantedBugs { name, all } => simulate::planted_bugs(&workspace, &name, all),
        Task::Differential(options) => {
            let mut report = Report::default();
            let workspace = with_program(&workspace, options.program.as_ref())?;
            let run = Run::new(workspace, BrokerKind::Kohort).in_suite("differential")?;
            report.run("differential", || differential::compare(&run, &options));
            Ok(report.finish())
        }
        Task::Fuzz(options) => fuzz::fuzz(&workspace, &options),
        Task::Kills(kills) => {
            let mut report = Report::default();
            let workspace = with_program(&workspace, kills.program.as_ref())?;
            let run = Run::new(workspace, BrokerKind::Kohort).in_suite("kills")?;
            let Kills {
                count,
                from,
                protocol,
                ..
            } = kills;
            report.run("kills", || {
                scenario::kills(&run, &agent::catalog::KOHORT, protocol, count, from)
            });
            Ok(report.finish())
        }
        Task::Test(selection) => {
            let mut report = Report::default();
            run_checks(&workspace, &selection, &mut report);
            run_suites(&workspace, &selection, &mut report)?;
            Ok(report.finish())
        }
        Task::Interop(selection) => {
            let mut report = Report::default();
            let kafka = selection
                .broker
                .is_some_and(|broker| broker != BrokerKind::Kohort);
            let builds = !kafka && selection.program.is_none();
            if builds && !selection.list {
                report.run("build", || checks::build_program(&workspace));
            }
            run_suites(&workspace, &selection, &mut report)?;
            Ok(report.finish())
        }
    }
}

fn with_program(workspace: &Workspace, program: Option<&PathBuf>) -> Result<Workspace, Failure> {
    Ok(match program {
        Some(program) => workspace
            .clone()
            .with_program(std::path::absolute(program)?),
        None => workspace.clone(),
    })
}

fn run_checks(workspace: &Workspace, selection: &Selection, report: &mut Report) {
    for check in checks::ALL {
        if !selection.chooses(check.name) {
            continue;
        }
        if selection.list {
            println!("{}", check.name);
        } else {
            report.run(check.name, || (check.run)(workspace));
        }
    }
}

fn run_suites(
    workspace: &Workspace,
    selection: &Selection,
    report: &mut Report,
) -> Result<(), Failure> {
    let workspace = with_program(workspace, selection.program.as_ref())?;
    let run = Run::new(workspace, BrokerKind::Kohort).full(selection.full);
    for suite in suites::all() {
        if !selection.chooses_suite(&suite) {
            continue;
        }
        if selection.list {
            println!("{}", suite.name);
            continue;
        }
        let broker = suite.broker.or(selection.broker);
        let run = run.against(broker.unwrap_or(BrokerKind::Kohort));
        match suite.missing_toolchain(run.broker_kind()) {
            Some(missing) => report.skip(&suite.name, &missing),
            None => {
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
        }
    }
    Ok(())
}
