//! The program that runs the simulator: `cargo xtask sim`.

use std::{
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use clap::{Parser, Subcommand};
use kohort_sim::{
    Seeds,
    model::{Named, WORLDS, explore},
};

/// Simulated groups.
#[derive(Parser)]
#[command(name = "kohort-sim")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs seeds, one after the other on each core
    Run {
        /// How many
        #[arg(long, default_value_t = 1000)]
        seeds: u64,
        /// The first
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Begin no more after so many seconds
        #[arg(long)]
        seconds: Option<u64>,
        /// How many at a time; all cores unless given
        #[arg(long)]
        threads: Option<usize>,
        /// Run each seed twice, and compare
        #[arg(long)]
        twice: bool,
        /// Print all that happens
        #[arg(long)]
        trace: bool,
        /// End after so many failures
        #[arg(long, default_value_t = 5)]
        failures: usize,
    },
    /// Goes through all states of small worlds
    Model {
        /// Only worlds whose name contains this
        #[arg(default_value = "")]
        name: String,
        /// The large ones as well
        #[arg(long)]
        large: bool,
        /// No more states than so many of each; all of them, and as many as are known, unless given
        #[arg(long)]
        states: Option<u64>,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().task {
        Task::Run {
            seeds,
            from,
            seconds,
            threads,
            twice,
            trace,
            failures,
        } => {
            let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
            run(&Seeds {
                from,
                count: seeds,
                limit: seconds.map(Duration::from_secs),
                threads: threads.unwrap_or(cores),
                twice,
                trace,
                failures_max: failures,
            })
        }
        Task::Model {
            name,
            large,
            states,
        } => model(&name, large, states),
    }
}

fn run(seeds: &Seeds) -> ExitCode {
    let began = Instant::now();
    let totals = seeds.run();
    for (seed, failure) in &totals.failures {
        println!("\nseed {seed}, {failure}");
        println!("again: cargo xtask sim --from {seed} --seeds 1 --trace");
    }
    println!(
        "{} seeds, {} failed; {} steps, {} records processed, {} simulated hours, in {:.1} s",
        totals.seeds,
        totals.failures.len(),
        totals.steps,
        totals.processed,
        totals.virtual_seconds / 3600,
        began.elapsed().as_secs_f64()
    );
    if totals.failures.is_empty() && totals.seeds > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Goes through the worlds, on all cores. Each has to have as many states as are known.
fn model(name: &str, large: bool, states_max: Option<u64>) -> ExitCode {
    let worlds: Vec<&Named> = WORLDS
        .iter()
        .filter(|world| world.name.contains(name) && (large || !world.is_large))
        .collect();
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(world) = worlds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    let outcome = explore(&world.small, states_max.unwrap_or(u64::MAX));
                    let seconds = began.elapsed().as_secs_f64();
                    let problem = match outcome {
                        Ok(explored) => {
                            println!("{}: {explored}, in {seconds:.1} s", world.name);
                            let known = world.known.filter(|_| states_max.is_none());
                            known
                                .filter(|known| *known != explored)
                                .map(|known| format!("known are {known}"))
                        }
                        Err(problem) => Some(problem),
                    };
                    if let Some(problem) = problem {
                        println!("{}: {problem}", world.name);
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    if failed.into_inner() == 0 && !worlds.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
