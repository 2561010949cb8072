//! Produces or consumes records as fast as it goes, with kohort or with rdkafka, and prints in one
//! line of JSON how long that took, and how much of the processors.

mod consume;
mod prepare;
mod produce;
mod usage;
mod values;

use clap::{Parser, Subcommand, ValueEnum};

/// Produces or consumes records as fast as it goes.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    work: Work,
    /// With which library
    #[arg(long, global = true, default_value = "kohort")]
    client: Client,
    /// host:port
    #[arg(long, global = true, default_value = "127.0.0.1:9092")]
    bootstrap_servers: String,
    /// The topic, which exists
    #[arg(long, global = true, default_value = "throughput")]
    topic: String,
    /// How many records
    #[arg(long, global = true, default_value_t = 1_000_000)]
    records: u64,
    /// Threads of kohort's runtime; 0 for one that runs on the thread of the program itself
    #[arg(long, global = true, default_value_t = 0)]
    threads: usize,
}

#[derive(Subcommand)]
enum Work {
    /// Makes the topic
    Create {
        /// How many partitions it has
        #[arg(long, default_value_t = 6)]
        partitions: i32,
    },
    /// Deletes the topic
    Delete,
    /// Reads all partitions from their first records
    Consume,
    /// Writes, idempotent and with acks=all, and waits for the outcome of each record
    Produce {
        /// The length of the values in bytes
        #[arg(long, default_value_t = 100)]
        size: usize,
        /// compression.type
        #[arg(long, default_value = "none")]
        compression: String,
        /// batch.size
        #[arg(long, default_value_t = 128 << 10)]
        batch_bytes: usize,
        /// linger.ms
        #[arg(long, default_value_t = 5)]
        linger_ms: u64,
    },
}

/// A library.
#[derive(Clone, Copy, ValueEnum)]
enum Client {
    Kohort,
    Rdkafka,
}

fn main() {
    let arguments = Arguments::parse();
    let usage = match (&arguments.work, arguments.client) {
        (Work::Create { partitions }, _) => {
            return on_runtime(&arguments, prepare::create(&arguments, *partitions));
        }
        (Work::Delete, _) => return on_runtime(&arguments, prepare::delete(&arguments)),
        (Work::Consume, Client::Kohort) => on_runtime(&arguments, consume::kohort(&arguments)),
        (Work::Consume, Client::Rdkafka) => consume::rdkafka(&arguments),
        (work @ Work::Produce { .. }, Client::Kohort) => {
            on_runtime(&arguments, produce::kohort(&arguments, work))
        }
        (work @ Work::Produce { .. }, Client::Rdkafka) => produce::rdkafka(&arguments, work),
    };
    println!(
        r#"{{"records":{},"seconds":{:.6},"cpu_seconds":{:.6}}}"#,
        arguments.records, usage.seconds, usage.cpu_seconds
    );
}

fn on_runtime<T>(arguments: &Arguments, work: impl Future<Output = T>) -> T {
    let mut builder = match arguments.threads {
        0 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if arguments.threads > 0 {
        builder.worker_threads(arguments.threads);
    }
    builder
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(work)
}
