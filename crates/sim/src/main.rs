//! The program that runs the simulator: `cargo xtask sim`.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::{Parser, Subcommand};
use kohort_sim::Seeds;

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
    },
}

fn main() -> ExitCode {
    let Task::Run {
        seeds,
        from,
        seconds,
        threads,
        twice,
        trace,
    } = Arguments::parse().task;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let began = Instant::now();
    let totals = Seeds {
        from,
        count: seeds,
        limit: seconds.map(Duration::from_secs),
        threads: threads.unwrap_or(cores),
        twice,
        trace,
    }
    .run();
    for (seed, failure) in &totals.failures {
        println!("\nseed {seed}: {failure}");
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
    match totals.failures.is_empty() && totals.seeds > 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
