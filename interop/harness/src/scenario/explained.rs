//! A member is slow, and the group says so: who, what it has to do, and until when; and afterwards
//! that it was the last.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::stage::{GROUP, GROUP_LIMIT, Stage, TOPIC, with_members_of};
use crate::agent::{Agent, Protocol, catalog};
use crate::broker::BrokerKind;
use crate::failure::Failure;
use crate::process::Process;
use crate::report::Passed;
use crate::run::Run;
use crate::wait::wait_for;

/// For one command of the program.
pub(super) const COMMAND_LIMIT: Duration = Duration::from_secs(20);

/// So long the group has to name the same member: well below a session of 6 s.
const WAITED_FOR: Duration = Duration::from_millis(1_500);

pub(crate) fn explained(
    run: &Run,
    source: &catalog::Source,
    protocol: Protocol,
) -> Result<Passed, Failure> {
    with_members_of(source, run, protocol, play)
}

fn play(stage: &mut Stage<'_>, agent: &Agent) -> Result<Passed, Failure> {
    let has_history = stage.run.broker_kind() == BrokerKind::Kohort;
    let passed = |note: &str| Passed {
        note: note.to_owned(),
        clients: vec![agent.client.clone()],
        ..Passed::default()
    };
    stage.note("two members start")?;
    let slow = stage.join(agent)?;
    let other = stage.join(agent)?;
    stage.until_shared_by(&[slow, other])?;
    if !has_history && stage.protocol == Protocol::Classic {
        // Whom a classic group waits for cannot be seen from outside.
        return Ok(passed("this broker keeps no history"));
    }

    stage.note("one is stopped, and a third member comes")?;
    stage.cast.signal(slow, Signal::STOP);
    // The program under test: it starts at once, long before the session of the other ends.
    let mut command = program(stage, &["consume", "-G", GROUP, TOPIC]);
    command.args(["--protocol", stage.protocol.name()]);
    let third = Process::start(command, "member-third", stage.run.logs())?;
    let needs = match stage.protocol {
        Protocol::Classic => "rejoin",
        Protocol::Consumer => "revoke",
    };
    let mut seen = Value::Null;
    let mut since: Option<(Value, Instant)> = None;
    let waited = wait_for("the group to say whom it waits for", GROUP_LIMIT, || {
        seen = json(stage, &["groups", "explain", GROUP])?;
        let waits_for = seen["waits_for"].as_array();
        let only = waits_for.filter(|all| all.len() == 1).map(|all| &all[0]);
        let only = only.filter(|one| one["needs"] == needs);
        // The others do the same, and are waited for, for a moment.
        match (&since, only) {
            (Some((member, at)), Some(one)) if *member == one["member"] => {
                return Ok((at.elapsed() >= WAITED_FOR).then(|| one.clone()));
            }
            _ => since = only.map(|one| (one["member"].clone(), Instant::now())),
        }
        Ok(None)
    });
    let waited = waited.map_err(|failure| Failure::new(format!("{failure}; last seen: {seen}")))?;
    if has_history {
        check(&seen["causes"]["first"][0]["kind"], "member_joined")?;
    }
    if has_history && stage.protocol == Protocol::Classic {
        let left_ms = waited["left_ms"].as_i64().unwrap_or_default();
        if left_ms <= 0 {
            return Err(Failure::new(format!("no time is left: {waited}")));
        }
    }

    stage.note("it goes on")?;
    stage.cast.signal(slow, Signal::CONT);
    wait_for("a stable group of three", GROUP_LIMIT, || {
        seen = json(stage, &["groups", "explain", GROUP])?;
        let is_done = seen["state"] == "Stable" && seen["members"] == 3;
        Ok(is_done.then_some(()))
    })
    .map_err(|failure| Failure::new(format!("{failure}; last seen: {seen}")))?;
    if has_history {
        let late = wait_for("the history to be written", COMMAND_LIMIT, || {
            let history = json(stage, &["groups", "history", GROUP])?;
            let events = history.as_array().into_iter().flatten().rev();
            let mut ends = events.filter(|event| match stage.protocol {
                Protocol::Classic => event["event"] == "join_ended" && event["members"] == 3,
                Protocol::Consumer => event["event"] == "stable",
            });
            let last = ends.next().map(|event| event["last"]["member"].clone());
            Ok(last.filter(|member| *member == waited["member"]))
        });
        late.map_err(|failure| Failure::new(format!("{failure}: {waited}")))?;
    }
    drop(third);
    stage.cast.close(slow)?;
    stage.cast.close(other)?;
    Ok(passed(&format!(
        "the group waited for a member to {needs}, and named it"
    )))
}

fn check(seen: &Value, expected: &str) -> Result<(), Failure> {
    if seen == expected {
        Ok(())
    } else {
        Err(Failure::new(format!("{seen} instead of {expected}")))
    }
}

pub(super) fn program(stage: &Stage<'_>, arguments: &[&str]) -> Command {
    let mut command = Command::new(stage.run.workspace().program());
    command.args(arguments);
    command.args(["--bootstrap-server", &stage.broker.address()]);
    command
}

/// What the program says in JSON.
pub(super) fn json(stage: &Stage<'_>, arguments: &[&str]) -> Result<Value, Failure> {
    let mut command = program(stage, arguments);
    command.args(["-o", "json"]);
    let log = Process::complete(command, arguments[1], stage.run.logs(), COMMAND_LIMIT)?;
    // The log also has the remarks, which the program writes to standard error.
    let log_text = std::fs::read_to_string(&log)?;
    let output = log_text
        .lines()
        .filter(|line| !line.starts_with("kohort: "));
    let text = output.collect::<Vec<_>>().join("\n");
    serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("{arguments:?}: {error}, in {}", log.display())))
}
