//! Apache Kafka as the oracle: the same scripts of group requests are played on it and on kohort,
//! and what the two answer is compared.

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

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;

use crate::broker::{Broker, BrokerKind};
use crate::failure::Failure;
use crate::install::Toolchain;
use crate::report::Passed;
use crate::run::Run;
use crate::suites::Suite;
pub(crate) use connection::{Connection, Received, decode};
use differences::{Asked, Difference};
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

/// So many differences are shown.
const SHOWN: usize = 8;
/// A script that takes longer is mentioned.
const SLOW: Duration = Duration::from_secs(30);

/// What to compare.
#[derive(Args)]
pub(crate) struct Options {
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

/// The short form, for `cargo xtask test`.
fn suite() -> Suite {
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
    Suite::new("differential/groups", &[Toolchain::Java], move |run| {
        compare(run, &options)
    })
}

/// Two brokers to compare.
struct Pair {
    kafka: Broker,
    kohort: Broker,
}

impl Pair {
    fn start(run: &Run) -> Result<Pair, Failure> {
        let kafka = run.against(BrokerKind::Kafka);
        let kohort = run.against(BrokerKind::Kohort);
        Ok(Pair {
            kafka: kafka.start_broker_with("kafka", KAFKA_SETTINGS)?,
            kohort: kohort.start_broker_with("kohort", KOHORT_SETTINGS)?,
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
    let pair = Pair::start(run)?;
    if let Some(file) = &options.script {
        let text = std::fs::read_to_string(file)?;
        let script: Script = serde_json::from_str(&text)
            .map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
        let transcripts = pair.play(&script)?;
        println!("{}", side_by_side(&script, &transcripts, options.show));
        return match first_difference(&script, &transcripts) {
            Some(step) => Err(Failure::new(format!("step {step} differs"))),
            None => Ok(Passed::note("no difference")),
        };
    }
    let mut seeds = options.seed.clone();
    let is_run = seeds.is_empty() && options.scripts > 1;
    if seeds.is_empty() {
        seeds.extend(options.from..options.from + options.scripts);
    }
    if is_run {
        // Those that show the differences that are meant, whether or not it is their turn.
        seeds.extend(differences::ALL.iter().filter_map(|one| one.seed));
        seeds.sort_unstable();
        seeds.dedup();
    }
    let next = AtomicUsize::new(0);
    let failures: Mutex<Vec<(u64, Failure)>> = Mutex::new(Vec::new());
    let differing: Mutex<Vec<Script>> = Mutex::new(Vec::new());
    let meant: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    let steps = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..options.workers {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let script = generate::script(seed);
                    steps.fetch_add(script.steps.len() as u64, Ordering::Relaxed);
                    let started = std::time::Instant::now();
                    match pair.play(&script) {
                        Ok(transcripts) => {
                            let comparison = compared(&script, &transcripts);
                            lock(&meant).extend(comparison.meant.iter().map(|one| one.name));
                            if let Some(step) = comparison.differs_at {
                                let file = run.logs().join(format!("seed-{seed}.txt"));
                                println!("   seed {seed}: step {step} differs: {}", file.display());
                                let text = side_by_side(&script, &transcripts, true);
                                let _ = std::fs::write(file, text);
                                lock(&differing).push(script);
                            }
                        }
                        Err(failure) => {
                            println!("   seed {seed}: {failure}");
                            lock(&failures).push((seed, failure));
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
    let mut differing = differing.into_inner().unwrap_or_default();
    differing.sort_by_key(|script| script.seed);
    let failures = failures.into_inner().unwrap_or_default();
    let mut report = String::new();
    let meant = meant.into_inner().unwrap_or_default();
    for difference in differences::ALL {
        if is_run && difference.seed.is_some() && !meant.contains(&difference.name) {
            report.push_str(&format!(
                "\n{} is said to differ, and was not met: {}",
                difference.name, difference.reason
            ));
        }
    }
    let mut unrepeated = 0;
    for (seed, failure) in &failures {
        // On a busy machine a broker may have been too slow for a script to go on.
        let script = generate::script(*seed);
        match pair.play(&script.again(1)) {
            Ok(transcripts) if first_difference(&script, &transcripts).is_none() => unrepeated += 1,
            _ => report.push_str(&format!("\nseed {seed}: {failure}")),
        }
    }
    for script in differing.iter().take(SHOWN) {
        let shortest = match options.whole {
            true => {
                let transcripts = pair.play(&script.again(1))?;
                first_difference(script, &transcripts).map(|_| (script.clone(), transcripts))
            }
            false => shrink::shrink(&pair, script)?,
        };
        let Some((script, transcripts)) = shortest else {
            unrepeated += 1;
            println!("   seed {}: does not differ when played again", script.seed);
            continue;
        };
        let json = serde_json::to_string(&script).unwrap_or_default();
        let text = side_by_side(&script, &transcripts, options.show);
        report.push_str(&format!("\nseed {}\n{text}  {json}\n", script.seed));
    }
    for script in differing.iter().skip(SHOWN) {
        report.push_str(&format!("\nseed {}", script.seed));
    }
    let steps = steps.into_inner();
    let mut note = format!("{} scripts, {steps} steps; meant:", seeds.len());
    for difference in differences::ALL {
        let count = meant
            .iter()
            .filter(|name| **name == difference.name)
            .count();
        note.push_str(&format!(" {count} {},", difference.name));
    }
    note.push_str(&format!(" {unrepeated} not repeated"));
    if report.is_empty() {
        return Ok(Passed::note(note));
    }
    Err(Failure::new(format!(
        "of {note}; {} differed, {} could not be played{report}",
        differing.len(),
        failures.len()
    )))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What comparing two transcripts came to.
struct Comparison {
    /// The first step whose answers differ, and are not meant to
    differs_at: Option<usize>,
    /// The differences that are meant, as often as they were met
    meant: Vec<&'static Difference>,
}

fn compared(script: &Script, [kafka, kohort]: &[Transcript; 2]) -> Comparison {
    let mut comparison = Comparison {
        differs_at: None,
        meant: Vec::new(),
    };
    let nothing = Vec::new();
    for (index, step) in script.steps.iter().enumerate() {
        let kafka = kafka.get(index).unwrap_or(&nothing);
        let kohort = kohort.get(index).unwrap_or(&nothing);
        if kafka == kohort {
            continue;
        }
        let before = &script.steps[..index];
        let Some(difference) = differences::meant(&Asked { step, before }, kafka, kohort) else {
            comparison.differs_at = Some(index);
            break;
        };
        comparison.meant.push(difference);
        if !difference.passes {
            break;
        }
    }
    comparison
}

fn first_difference(script: &Script, transcripts: &[Transcript; 2]) -> Option<usize> {
    compared(script, transcripts).differs_at
}

/// The script with its answers, up to the first that differs; there, both.
fn side_by_side(script: &Script, transcripts: &[Transcript; 2], all: bool) -> String {
    let different = first_difference(script, transcripts);
    let mut text = String::new();
    for (index, step) in script.steps.iter().enumerate() {
        text.push_str(&format!("  {index:2} {step:?}\n"));
        let [kafka, kohort] = transcripts.each_ref().map(|one| one.get(index).cloned());
        let (kafka, kohort) = (kafka.unwrap_or_default(), kohort.unwrap_or_default());
        if kafka == kohort {
            for line in kafka {
                text.push_str(&format!("              {line}\n"));
            }
        } else {
            let before = &script.steps[..index];
            let asked = Asked { step, before };
            if let Some(difference) = differences::meant(&asked, &kafka, &kohort) {
                let Difference { name, reason, .. } = difference;
                text.push_str(&format!("              meant, {name}: {reason}\n"));
            }
            for (name, lines) in [("kafka", kafka), ("kohort", kohort)] {
                for line in lines {
                    text.push_str(&format!("     {name:>7}: {line}\n"));
                }
            }
        }
        if different == Some(index) && !all {
            break;
        }
    }
    text
}
