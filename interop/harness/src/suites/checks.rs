//! Programs that judge by themselves: each check prints `ok NAME` or `FAILED NAME reason`, what
//! runs says `version CLIENT`, and `please …` is a wish about the broker, which is fulfilled here
//! and answered with `done`, or with why it could not be done.

use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::broker::Broker;
use crate::failure::Failure;
use crate::process::Process;
use crate::report::Passed;
use crate::run::Run;

/// For all checks of one suite.
const SUITE_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Runs a program to its end, as the hands with which it reaches the broker.
pub(super) fn run(
    run: &Run,
    broker: &mut Broker,
    name: &str,
    command: Command,
) -> Result<Passed, Failure> {
    let (sender, lines) = mpsc::channel();
    let mut process = Process::start_to_converse(command, name, run.logs(), move |line| {
        let _ = sender.send(line.map(str::to_owned));
    })?;
    let mut outcome = Outcome::default();
    let deadline = Instant::now() + SUITE_LIMIT;
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Some(line)) => {
                if let Some(answer) = outcome.take(&line, broker)? {
                    process.say(&answer);
                }
            }
            Ok(None) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                return Err(Failure::new(format!(
                    "{name}: still running after {} s; passed so far: {}{}",
                    SUITE_LIMIT.as_secs(),
                    outcome.passed,
                    process.tail()
                )));
            }
        }
    }
    let status = process.wait(Duration::from_secs(20))?;
    if !outcome.failed.is_empty() {
        return Err(outcome.failure(broker));
    }
    if !status.success() || outcome.passed == 0 {
        return Err(process.failed(status));
    }
    Ok(Passed {
        note: outcome.note(),
        clients: outcome.clients,
        ..Passed::default()
    })
}

/// What a suite has said so far.
#[derive(Default)]
struct Outcome {
    passed: usize,
    failed: Vec<String>,
    clients: Vec<String>,
    notes: Vec<String>,
    wishes: usize,
}

impl Outcome {
    /// Takes a line; the answer to a wish.
    fn take(&mut self, line: &str, broker: &mut Broker) -> Result<Option<String>, Failure> {
        match line.split_once(' ') {
            Some(("ok", _)) => self.passed += 1,
            Some(("FAILED", what)) => self.failed.push(what.to_owned()),
            Some(("version", client)) => self.clients.push(client.to_owned()),
            Some(("note", note)) => self.notes.push(note.to_owned()),
            Some(("please", wish)) => {
                self.wishes += 1;
                fulfil(wish, broker).map_err(|failure| failure.during(wish))?;
                return Ok(Some("done".to_owned()));
            }
            _ => {}
        }
        Ok(None)
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
        if self.wishes > 0 {
            let times = if self.wishes == 1 { "time" } else { "times" };
            note.push_str(&format!(", the broker touched {} {times}", self.wishes));
        }
        for further in &self.notes {
            note.push_str(", ");
            note.push_str(further);
        }
        note
    }
}

/// `restart the broker`, `stop node 2`, `kill node 2`, `start node 2`, `suspend node 2`,
/// `resume node 2`.
fn fulfil(wish: &str, broker: &mut Broker) -> Result<(), Failure> {
    let unknown = || Failure::new("nobody knows how to do that");
    if wish == "restart the broker" {
        broker.stop()?;
        return broker.start_again();
    }
    let (verb, id) = wish.split_once(" node ").ok_or_else(unknown)?;
    let id = id.trim().parse().map_err(|_| unknown())?;
    match verb {
        "stop" => broker.node(id).stop(),
        "kill" => {
            broker.node(id).kill();
            Ok(())
        }
        "start" => broker.start_node(id),
        "suspend" => {
            broker.node(id).suspend();
            Ok(())
        }
        "resume" => {
            broker.node(id).resume();
            Ok(())
        }
        _ => Err(unknown()),
    }
}
