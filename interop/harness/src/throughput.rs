//! How fast kohort's client produces and consumes, beside rdkafka, against one Apache Kafka broker.
//!
//! Each run is a process of its own, which measures itself; the libraries take turns, and what is
//! told are medians. Both consumers read what rdkafka wrote.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;

use crate::broker::{Broker, BrokerKind};
use crate::failure::Failure;
use crate::process::Process;
use crate::programs;
use crate::run::Run;
use crate::workspace::Workspace;

const CLIENTS: [&str; 2] = ["kohort", "rdkafka"];
const SIZES: [u64; 2] = [100, 1000];
const COMPRESSIONS: [&str; 3] = ["none", "lz4", "zstd"];
/// How long one run may take.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// What to measure.
#[derive(Args)]
pub struct Options {
    /// Only measurements whose name (`produce/100/lz4`) contains this; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// How often each is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Megabytes of values per run
    #[arg(long, default_value_t = 200)]
    megabytes: u64,
    /// batch.size of the producers
    #[arg(long, default_value_t = 128 << 10)]
    batch_bytes: u64,
    /// Threads of kohort's runtime; 0 for one that runs on the thread of the program itself
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// What a run says of itself.
#[derive(Clone, Copy, Deserialize)]
struct Measured {
    records: u64,
    seconds: f64,
    cpu_seconds: f64,
}

struct Bench<'a> {
    options: &'a Options,
    run: Run,
    program: PathBuf,
    broker: Broker,
}

/// Measures both clients, and prints a line for each workload.
pub fn measure(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    println!("building interop/throughput, with librdkafka");
    let program = programs::build_throughput(workspace)?;
    let run = Run::new(workspace.clone(), BrokerKind::Kafka).in_suite("throughput")?;
    let broker = run.start_broker()?;
    let bench = Bench {
        options,
        run,
        program,
        broker,
    };
    println!(
        "{:<18} {:>34} {:>34} {:>7}",
        "", "kohort", "rdkafka", "ratio"
    );
    println!(
        "{:<18} {:>16} {:>17} {:>16} {:>17} {:>7}",
        "", "records/s", "per cpu second", "records/s", "per cpu second", "per cpu"
    );
    for size in SIZES {
        for compression in COMPRESSIONS {
            bench.produce_and_consume(size, compression)?;
        }
    }
    Ok(())
}

impl Bench<'_> {
    fn chooses(&self, name: &str) -> bool {
        let only = &self.options.only;
        only.is_empty() || only.iter().any(|part| name.contains(part.as_str()))
    }

    fn produce_and_consume(&self, size: u64, compression: &str) -> Result<(), Failure> {
        let [produce, consume] =
            ["produce", "consume"].map(|work| format!("{work}/{size}/{compression}"));
        if !self.chooses(&produce) && !self.chooses(&consume) {
            return Ok(());
        }
        let records = self.options.megabytes * 1_000_000 / size;
        let sizes = [
            format!("--size={size}"),
            format!("--compression={compression}"),
            format!("--batch-bytes={}", self.options.batch_bytes),
        ];
        let written = format!("written-{size}-{compression}");
        self.perform("kohort", &written, records, &["create".to_owned()])?;
        let mut arguments = vec!["produce".to_owned()];
        arguments.extend(sizes);
        self.perform("rdkafka", &written, records, &arguments)?;
        if self.chooses(&produce) {
            self.compare(&produce, |client| {
                let topic = format!("{client}-{size}-{compression}");
                self.perform(client, &topic, records, &["create".to_owned()])?;
                let measured = self.perform(client, &topic, records, &arguments)?;
                self.perform(client, &topic, records, &["delete".to_owned()])?;
                Ok(measured)
            })?;
        }
        if self.chooses(&consume) {
            self.compare(&consume, |client| {
                self.perform(client, &written, records, &["consume".to_owned()])
            })?;
        }
        self.perform("kohort", &written, records, &["delete".to_owned()])?;
        Ok(())
    }

    /// The libraries take turns; then the medians are printed.
    fn compare(
        &self,
        name: &str,
        run: impl Fn(&str) -> Result<Option<Measured>, Failure>,
    ) -> Result<(), Failure> {
        let mut all = CLIENTS.map(|_| Vec::new());
        for _ in 0..self.options.rounds {
            for (client, all) in CLIENTS.iter().zip(&mut all) {
                all.extend(run(client)?);
            }
        }
        let [ours, theirs] = all.map(|all| {
            let rate = |seconds: fn(&Measured) -> f64| {
                median(all.iter().map(|one| one.records as f64 / seconds(one)))
            };
            (rate(|one| one.seconds), rate(|one| one.cpu_seconds))
        });
        println!(
            "{name:<18} {:>16.0} {:>17.0} {:>16.0} {:>17.0} {:>7.2}",
            ours.0,
            ours.1,
            theirs.0,
            theirs.1,
            ours.1 / theirs.1
        );
        Ok(())
    }

    fn perform(
        &self,
        client: &str,
        topic: &str,
        records: u64,
        arguments: &[String],
    ) -> Result<Option<Measured>, Failure> {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .args(["--client", client, "--topic", topic])
            .arg(format!("--records={records}"))
            .arg(format!("--threads={}", self.options.threads))
            .arg(format!("--bootstrap-servers={}", self.broker.address()));
        let log = Process::complete(command, client, self.run.logs(), RUN_LIMIT)?;
        let text = std::fs::read_to_string(log)?;
        let last = text.lines().last().unwrap_or_default();
        Ok(serde_json::from_str(last).ok())
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
