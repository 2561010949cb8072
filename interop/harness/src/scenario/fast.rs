//! A group of the consumer protocol rebalances without waiting for the heartbeats of its members, and
//! does not wait for the session of one that was killed.

use std::time::{Duration, Instant};

use super::explained::{COMMAND_LIMIT, json};
use super::stage::{GROUP, GROUP_LIMIT, PARTITIONS, Stage};
use crate::agent::{Agent, Protocol, catalog};
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;
use crate::wait::wait_for;

/// As Kafka has them, but for the grace, and the longest heartbeat interval, twice which is the
/// shortest that a grace can be.
const SETTINGS: &[(&str, &str)] = &[
    ("group.consumer.session.timeout.ms", "45000"),
    ("group.consumer.min.session.timeout.ms", "45000"),
    ("group.consumer.heartbeat.interval.ms", "1500"),
    ("group.consumer.min.heartbeat.interval.ms", "1500"),
    ("kohort.group.consumer.connection.grace.ms", "3000"),
];

/// Partitions go from one member to another with two heartbeats of each. At the longest interval that
/// is seldom less; at the shortest it is, also on a busy machine.
const REBALANCE_MS: i64 = 1_400;

/// How long a member that was killed may be missed: far less than its session.
const MISSED: Duration = Duration::from_secs(15);

pub(crate) fn fast(run: &Run, source: &catalog::Source) -> Result<Passed, Failure> {
    let agent = Agent::install(source, run)?;
    let mut stage = Stage::set_with(run, &agent, Protocol::Consumer, SETTINGS)?;
    let played = play(&mut stage, &agent);
    played.map_err(|failure| stage.explain(failure))
}

fn play(stage: &mut Stage<'_>, agent: &Agent) -> Result<Passed, Failure> {
    stage.note("two members start, and then a third")?;
    let mut members = vec![stage.join(agent)?, stage.join(agent)?];
    stage.until_shared_by(&members)?;
    members.push(stage.join(agent)?);
    stage.until_shared_by(&members)?;
    let (mut fastest, mut history): (Option<i64>, _) = (None, String::new());
    let told = wait_for("the history of a fast rebalance", COMMAND_LIMIT, || {
        let events = json(stage, &["groups", "history", GROUP])?;
        // Of a rebalance in which nobody lets go the time says nothing.
        let mut has_revoked = false;
        fastest = None;
        for event in events.as_array().into_iter().flatten() {
            match event["event"].as_str() {
                Some("revocation_asked") => has_revoked = true,
                Some("stable") if std::mem::take(&mut has_revoked) => {
                    fastest = fastest.into_iter().chain(event["total_ms"].as_i64()).min();
                }
                _ => {}
            }
        }
        history = events.to_string();
        Ok(fastest.filter(|&ms| ms <= REBALANCE_MS))
    });
    let fastest = told.map_err(|failure| {
        Failure::new(format!(
            "{failure}: the fastest took {fastest:?} ms: {history}"
        ))
    })?;

    stage.note("one is killed")?;
    let dead = members.remove(0);
    stage.cast.kill(dead)?;
    let killed_at = Instant::now();
    stage
        .cast
        .until("the others to share all", GROUP_LIMIT, |cast| {
            Ok(cast.shares(&members, PARTITIONS))
        })?;
    let missed = killed_at.elapsed();
    if missed > MISSED {
        return Err(Failure::new(format!(
            "who was killed was missed for {missed:?}"
        )));
    }
    for member in members {
        stage.cast.close(member)?;
    }
    Ok(Passed {
        note: format!(
            "a rebalance in {fastest} ms, and {:.1} s after a kill",
            missed.as_secs_f64()
        ),
        clients: vec![agent.client.clone()],
        ..Passed::default()
    })
}
