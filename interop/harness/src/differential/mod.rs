//! Apache Kafka as the oracle: the same scripts of group requests are played on it and on kohort,
//! and what the two answer is compared.

mod comparison;
mod connection;
mod differences;
mod generate;
mod normal;
mod play;
mod probe;
mod shrink;
mod state;
mod step;
mod to_kafka;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;

use crate::broker::{Broker, BrokerKind};
use crate::failure::Failure;
use crate::fresh;
use crate::install::Toolchain;
use crate::report::Passed;
use crate::run::Run;
use crate::suites::Suite;
use comparison::{compared, first_difference, side_by_side};
pub(crate) use connection::{Connection, Received, decode};
use play::{Transcript, play};
use step::Script;

/// All suites that compare with Apache Kafka.
pub(crate) fn suites() -> Vec<Suite> {
    vec![suite(), state::suite(), to_kafka::suite()]
}

/// What makes both brokers answer at once what they answer at all, and lets no session end.
macro_rules! settings {
    ($($more:expr),*) => {
        &[
            ("group.initial.rebalance.delay.ms", "0"),
            ("group.consumer.assignment.interval.ms", "0"),
            ("group.consumer.session.timeout.ms", "300000"),
            ("group.consumer.max.session.timeout.ms", "300000"),
            ("auto.create.topics.enable", "false"),
            $($more,)*
        ]
    };
}

use settings;

const KOHORT_SETTINGS: &[(&str, &str)] =
    settings!(("kohort.group.new.partitions.from.start", "false"));
const KAFKA_SETTINGS: &[(&str, &str)] = settings!(
    ("group.consumer.assignor.offload.enable", "false"),
    ("group.coordinator.append.linger.ms", "0"),
    // On a busy machine the only broker must not be taken for dead.
    ("broker.session.timeout.ms", "120000")
);

/// How many scripts `cargo xtask test` plays that no earlier run has.
const FRESH_SCRIPTS: u64 = 100;
/// Each script has topics of its own, and with thousands of them Kafka takes so long to resolve a
/// regular expression that a group seems to have settled before.
const SCRIPTS_PER_PAIR: usize = 400;
/// So many differences are shown.
const SHOWN: usize = 8;
/// A script that takes longer is mentioned.
const SLOW: Duration = Duration::from_secs(30);

/// What to compare.
#[derive(Args)]
pub struct Options {
    /// How many scripts
    #[arg(long, value_name = "N", default_value_t = 500)]
    scripts: u64,
    /// The seed of the first; each next has the next seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    from: u64,
    /// Plays the scripts of these seeds instead; may be given several times
    #[arg(long, value_name = "SEED", conflicts_with_all = ["scripts", "from"])]
    seed: Vec<u64>,
    /// Plays a script from a file instead, as a failure prints it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scripts", "from", "seed"])]
    script: Option<PathBuf>,
    /// How many scripts are played at a time
    #[arg(long, value_name = "N", default_value_t = 16)]
    workers: usize,
    /// Shows scripts that differ as they are, instead of the shortest that differ
    #[arg(long)]
    whole: bool,
    /// Prints both transcripts in full
    #[arg(long)]
    show: bool,
    /// The program to test, instead of the one built here
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
}

/// The comparison in `cargo xtask test`.
fn suite() -> Suite {
    Suite::new(
        "differential/groups",
        &[Toolchain::Java],
        compare_fixed_and_fresh,
    )
}

/// Two brokers to compare.
struct Pair {
    kafka: Broker,
    kohort: Broker,
}

impl Pair {
    /// Starts both; `number` tells this pair from others of the same run.
    fn start(run: &Run, number: usize) -> Result<Pair, Failure> {
        let kafka = run.against(BrokerKind::Kafka);
        let kohort = run.against(BrokerKind::Kohort);
        Ok(Pair {
            kafka: kafka.start_broker_with(&format!("kafka-{number}"), KAFKA_SETTINGS)?,
            kohort: kohort.start_broker_with(&format!("kohort-{number}"), KOHORT_SETTINGS)?,
        })
    }

    /// Plays a script on both at the same time.
    fn play(&self, script: &Script) -> Result<[Transcript; 2], Failure> {
        let (kafka, kohort) = (self.kafka.address(), self.kohort.address());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| play(script, &kafka));
            let kohort = play(script, &kohort);
            let kafka = other
                .join()
                .unwrap_or_else(|_| Err(Failure::new("the player has panicked")));
            Ok([kafka?, kohort?])
        })
    }
}

/// Compares as many scripts as asked for; a difference is a failure that shows the shortest script
/// with that difference.
pub(crate) fn compare(run: &Run, options: &Options) -> Result<Passed, Failure> {
    if let Some(file) = &options.script {
        return compare_file(&Pair::start(run, 1)?, file, options.show);
    }
    let seeds = match options.seed.is_empty() {
        false => options.seed.clone(),
        true if options.scripts > 1 => {
            with_known_differences(options.from..options.from + options.scripts)
        }
        true => vec![options.from],
    };
    let mut found = Found::default();
    for (number, seeds) in seeds.chunks(SCRIPTS_PER_PAIR).enumerate() {
        let pair = Pair::start(run, number + 1)?;
        found.add(compare_seeds(&pair, run, options, seeds)?);
    }
    if found.reports.is_empty() {
        Ok(Passed::note(found.note()))
    } else {
        Err(found.failure())
    }
}

/// The short form, for `cargo xtask test`: a fixed set of scripts, and a fresh one.
fn compare_fixed_and_fresh(run: &Run) -> Result<Passed, Failure> {
    let options = Options {
        scripts: 120,
        from: 1,
        seed: Vec::new(),
        script: None,
        workers: 16,
        whole: false,
        show: false,
        program: None,
    };
    let pair = Pair::start(run, 1)?;
    let seeds = with_known_differences(options.from..options.from + options.scripts);
    let fixed = compare_seeds(&pair, run, &options, &seeds)?;
    if !fixed.reports.is_empty() {
        return Err(fixed.failure());
    }
    let first = fresh::first_seed(run.workspace());
    let seeds: Vec<u64> = (first..first + FRESH_SCRIPTS).collect();
    let fresh = compare_seeds(&pair, run, &options, &seeds)?;
    let note = format!("{}; fresh from {first}: {}", fixed.note(), fresh.note());
    Ok(Passed::note(note).with_findings(fresh.reports))
}

/// Plays one script from a file, and prints what the two answer.
fn compare_file(pair: &Pair, file: &Path, show: bool) -> Result<Passed, Failure> {
    let text = std::fs::read_to_string(file)?;
    let script: Script = serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    let transcripts = pair.play(&script)?;
    println!("{}", side_by_side(&script, &transcripts, show));
    match first_difference(&script, &transcripts) {
        Some(step) => Err(Failure::new(format!("step {step} differs"))),
        None => Ok(Passed::note("no difference")),
    }
}

/// The seeds, and those of the scripts that show the known differences.
fn with_known_differences(seeds: Range<u64>) -> Vec<u64> {
    let known = differences::ALL.iter().filter_map(|one| one.seed);
    let mut seeds: Vec<u64> = seeds.chain(known).collect();
    seeds.sort_unstable();
    seeds.dedup();
    seeds
}

/// What comparing scripts came to.
#[derive(Default)]
struct Found {
    scripts: usize,
    steps: usize,
    /// The names of known differences, as often as they were met.
    known: Vec<&'static str>,
    differed: usize,
    not_played: usize,
    /// How many of those that differed, or could not be played, did not when played again.
    not_repeated: usize,
    /// The other differences, each with its script.
    reports: Vec<String>,
}

impl Found {
    fn add(&mut self, other: Found) {
        self.scripts += other.scripts;
        self.steps += other.steps;
        self.known.extend(other.known);
        self.differed += other.differed;
        self.not_played += other.not_played;
        self.not_repeated += other.not_repeated;
        self.reports.extend(other.reports);
    }

    fn note(&self) -> String {
        let mut note = format!("{} scripts, {} steps", self.scripts, self.steps);
        for difference in differences::ALL {
            let is_it = |name: &&&str| **name == difference.name;
            let count = self.known.iter().filter(is_it).count();
            if count > 0 {
                note.push_str(&format!(", {count} {}", difference.name));
            }
        }
        note.push_str(&format!(
            "; {} differed, {} could not be played, {} of these not again",
            self.differed, self.not_played, self.not_repeated
        ));
        note
    }

    fn failure(&self) -> Failure {
        Failure::new(format!("of {}{}", self.note(), self.reports.concat()))
    }
}

/// What came of playing each script once.
#[derive(Default)]
struct Played {
    differing: Vec<Script>,
    failures: Vec<(u64, Failure)>,
    /// The names of known differences, as often as they were met.
    known: Vec<&'static str>,
    steps: usize,
}

fn compare_seeds(
    pair: &Pair,
    run: &Run,
    options: &Options,
    seeds: &[u64],
) -> Result<Found, Failure> {
    let mut played = play_seeds(pair, run, options.workers, seeds);
    played.differing.sort_by_key(|script| script.seed);
    let mut reports = Vec::new();
    for difference in differences::ALL {
        if difference.seed.is_some_and(|seed| seeds.contains(&seed))
            && !played.known.contains(&difference.name)
        {
            reports.push(format!(
                "\n{} is said to differ, and was not met: {}",
                difference.name, difference.reason
            ));
        }
    }
    let mut not_repeated = 0;
    for (seed, failure) in &played.failures {
        // On a busy machine a broker may have been too slow for a script to go on.
        let script = generate::script(*seed);
        match pair.play(&script.again(1)) {
            Ok(transcripts) if first_difference(&script, &transcripts).is_none() => {
                not_repeated += 1;
            }
            _ => reports.push(format!("\nseed {seed}: {failure}")),
        }
    }
    for script in played.differing.iter().take(SHOWN) {
        let shortest = if options.whole {
            let transcripts = pair.play(&script.again(1))?;
            first_difference(script, &transcripts).map(|_| (script.clone(), transcripts))
        } else {
            shrink::shrink(pair, script)?
        };
        let Some((script, transcripts)) = shortest else {
            not_repeated += 1;
            println!("   seed {}: does not differ when played again", script.seed);
            continue;
        };
        let json = serde_json::to_string(&script).unwrap_or_default();
        let text = side_by_side(&script, &transcripts, options.show);
        reports.push(format!("\nseed {}\n{text}  {json}\n", script.seed));
    }
    for script in played.differing.iter().skip(SHOWN) {
        reports.push(format!("\nseed {}", script.seed));
    }
    Ok(Found {
        scripts: seeds.len(),
        steps: played.steps,
        known: played.known,
        differed: played.differing.len(),
        not_played: played.failures.len(),
        not_repeated,
        reports,
    })
}

/// Plays the scripts of the seeds, several at a time.
fn play_seeds(pair: &Pair, run: &Run, workers: usize, seeds: &[u64]) -> Played {
    let next = AtomicUsize::new(0);
    let played = Mutex::new(Played::default());
    let lock = || played.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let script = generate::script(seed);
                    let started = Instant::now();
                    let transcripts = pair.play(&script);
                    let mut played = lock();
                    played.steps += script.steps.len();
                    match transcripts {
                        Ok(transcripts) => {
                            let comparison = compared(&script, &transcripts);
                            let known = comparison.meant.iter().map(|one| one.name);
                            played.known.extend(known);
                            if let Some(step) = comparison.differs_at {
                                let file = run.logs().join(format!("seed-{seed}.txt"));
                                println!("   seed {seed}: step {step} differs: {}", file.display());
                                let text = side_by_side(&script, &transcripts, true);
                                let _ = std::fs::write(file, text);
                                played.differing.push(script);
                            }
                        }
                        Err(failure) => {
                            println!("   seed {seed}: {failure}");
                            played.failures.push((seed, failure));
                        }
                    }
                    let took = started.elapsed();
                    if took > SLOW {
                        println!("   seed {seed} took {:.1} s", took.as_secs_f64());
                    }
                }
            });
        }
    });
    played.into_inner().unwrap_or_else(PoisonError::into_inner)
}
