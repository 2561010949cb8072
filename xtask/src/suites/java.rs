//! What only the Java world has: the Admin client, Kafka's command-line tools,
//! Kafka Streams and Kafka Connect. The checks are in interop/java; each prints
//! `ok NAME` or `FAILED NAME reason`, and here they become one suite each kind.

use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::Suite;
use crate::broker::Broker;
use crate::failure::Failure;
use crate::install::{Toolchain, maven};
use crate::process::Process;
use crate::report::Passed;
use crate::run::Run;

/// For all checks of one suite.
const SUITE_LIMIT: Duration = Duration::from_secs(10 * 60);

/// The suites of `kohort.interop.Main`, by the words it knows them by.
pub(super) fn all() -> Vec<Suite> {
    [
        ("java/admin", "admin"),
        ("java/clients", "clients"),
        ("java/groups", "groups"),
        ("kafka-tools", "tools"),
        ("kafka-streams", "streams"),
        ("kafka-connect", "connect"),
    ]
    .map(|(name, word)| {
        let mut suite = Suite::new(name, &[Toolchain::Java], move |run| checks(run, word));
        suite.slow = matches!(word, "groups" | "streams" | "connect");
        suite
    })
    .into()
}

/// Runs one suite to its end, restarting the broker when it asks for that.
fn checks(run: &Run, word: &str) -> Result<Passed, Failure> {
    let program = maven::program(run.workspace(), "Main")?;
    let mut broker = run.start_broker()?;
    let work = run.data().join("work");
    std::fs::create_dir_all(&work)?;
    let mut command = Command::new(&program[0]);
    command
        .args(&program[1..])
        .args([word, "--bootstrap", &broker.address(), "--data-dir"])
        .arg(broker.folder())
        .arg("--work-dir")
        .arg(&work);

    let (sender, lines) = mpsc::channel();
    let mut process = Process::start_with_lines(command, word, run.logs(), move |line| {
        let _ = sender.send(line.map(str::to_owned));
    })?;
    let mut outcome = Outcome::default();
    let deadline = Instant::now() + SUITE_LIMIT;
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Some(line)) => outcome.take(&line, &mut broker)?,
            Ok(None) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                return Err(Failure::new(format!(
                    "{word}: still running after {} s; passed so far: {}{}",
                    SUITE_LIMIT.as_secs(),
                    outcome.passed,
                    process.tail()
                )));
            }
        }
    }
    let status = process.wait(Duration::from_secs(20))?;
    if !outcome.failed.is_empty() {
        return Err(outcome.failure(&broker));
    }
    if !status.success() || outcome.passed == 0 {
        return Err(process.failed(status));
    }
    Ok(Passed {
        note: outcome.note(),
        clients: outcome.clients,
    })
}

/// What a suite has said so far.
#[derive(Default)]
struct Outcome {
    passed: usize,
    failed: Vec<String>,
    clients: Vec<String>,
    restarts: usize,
}

impl Outcome {
    fn take(&mut self, line: &str, broker: &mut Broker) -> Result<(), Failure> {
        match line.split_once(' ') {
            Some(("ok", _)) => self.passed += 1,
            Some(("FAILED", what)) => self.failed.push(what.to_owned()),
            Some(("version", client)) => self.clients.push(client.to_owned()),
            Some(("please", "restart the broker")) => {
                broker.stop()?;
                broker.start_again()?;
                self.restarts += 1;
            }
            _ => {}
        }
        Ok(())
    }

    fn failure(&self, broker: &Broker) -> Failure {
        let mut text = format!(
            "{} of {}",
            self.failed.len(),
            self.failed.len() + self.passed
        );
        text.push_str(" checks failed");
        for check in &self.failed {
            text.push_str("\n    FAILED ");
            text.push_str(check);
        }
        text.push_str(&broker.tail());
        Failure::new(text)
    }

    fn note(&self) -> String {
        let checks = if self.passed == 1 { "check" } else { "checks" };
        let mut note = format!("{} {checks}", self.passed);
        if self.restarts > 0 {
            note.push_str(", the broker restarted in the middle");
        }
        note
    }
}
