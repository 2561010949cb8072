//! An owner of what is rewound does not let go: it is put out, the rewind happens, and what it
//! commits when it wakes up undoes nothing.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::super::explained::json;
use super::super::stage::{GROUP, GROUP_LIMIT, Stage, TOPIC};
use super::{Again, begin};
use crate::agent::{Agent, Protocol, catalog};
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;
use crate::wait::wait_for;

/// The rebalance timeout of the owner, and for how long it holds what it is to let go of.
const LIMIT_MS: u32 = 6_000;
const HOLDS_MS: u32 = 8_000;

/// By when the rewind has to have happened: the rebalance timeout or the session, both of six
/// seconds, and a slow machine.
const FENCED_WITHIN: Duration = Duration::from_secs(20);

/// How the owner is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// It heartbeats, and its application does not return: the rebalance timeout counts.
    Holds,
    /// SIGSTOP: its session counts.
    Stalled,
    /// SIGKILL just before.
    Dead,
}

pub(crate) fn rewind_stuck(
    run: &Run,
    source: &catalog::Source,
    (protocol, assignor): (Protocol, Option<&str>),
    how: Stuck,
) -> Result<Passed, Failure> {
    let agent = Agent::install(source, run)?;
    let administrator = Agent::install(super::source("confluent-kafka"), run)?;
    let mut stage = Stage::set(run, &agent, protocol)?;
    let played = play(&mut stage, &agent, &administrator, assignor, how);
    let took = played.map_err(|failure| stage.explain(failure))?;
    Ok(Passed {
        note: format!("removed, and rewound after {:.1} s", took.as_secs_f64()),
        clients: vec![agent.client, administrator.client],
        ..Passed::default()
    })
}

fn play(
    stage: &mut Stage<'_>,
    agent: &Agent,
    administrator: &Agent,
    assignor: Option<&str>,
    how: Stuck,
) -> Result<Duration, Failure> {
    let join = |stage: &mut Stage<'_>, hold_ms: u32| match how {
        // A classic group waits as long as its most patient member wants.
        Stuck::Holds => stage.join_to_hold(agent, assignor, (hold_ms, LIMIT_MS)),
        Stuck::Stalled | Stuck::Dead => stage.join_as(agent, None, assignor),
    };
    let other = join(stage, 0)?;
    stage.until_shared_by(&[other])?;
    let owner = join(stage, HOLDS_MS)?;
    begin(stage, agent, &[owner, other])?;
    let first = |member: usize| stage.cast.member(member).owned.first().copied();
    let goals: Vec<(i32, i64)> = [first(owner), first(other)]
        .into_iter()
        .flatten()
        .zip([3, 5])
        .collect();
    let asked: Vec<_> = goals
        .iter()
        .map(|&(index, to)| (TOPIC, index, to))
        .collect();
    let again = Again::of(&stage.cast, &goals);

    stage.note("an owner is stuck, and its partition is rewound")?;
    match how {
        Stuck::Holds => {}
        Stuck::Stalled => stage.cast.signal(owner, Signal::STOP),
        Stuck::Dead => stage.cast.kill(owner)?,
    }
    let begun = Instant::now();
    let (run, broker) = (stage.run, &stage.broker);
    let mut asking = administrator.start_rewind(run, broker, GROUP, &asked)?;
    if how == Stuck::Holds {
        stage
            .cast
            .until("an owner that holds", GROUP_LIMIT, |cast| {
                Ok(!cast.member(owner).held.is_empty())
            })?;
    }
    // Members that keep partitions through a rebalance are put out at once.
    if assignor != Some("cooperative-sticky") {
        wait_for("the rewind and whom it waits for", GROUP_LIMIT, || {
            let explained = json(stage, &["groups", "explain", GROUP])?;
            let is_named = explained["waits_for"][0]["member"].is_object();
            Ok((is_named && !explained["rewind"].is_null()).then_some(()))
        })?;
    }
    wait_for("the rewind", FENCED_WITHIN, || {
        Ok(asking.check()?.then_some(()))
    })?;
    let took = begun.elapsed();
    again.until_delivered(&mut stage.cast)?;

    stage.note("the owner comes back, if it lives")?;
    let members = match how {
        Stuck::Dead => vec![other],
        Stuck::Stalled => {
            stage.cast.signal(owner, Signal::CONT);
            vec![owner, other]
        }
        Stuck::Holds => {
            stage.cast.until("a late commit", GROUP_LIMIT, |cast| {
                Ok(!cast.member(owner).late_commits.is_empty())
            })?;
            if stage.cast.member(owner).late_commits.contains(&true) {
                return Err(Failure::new(
                    "a commit of the removed owner was acknowledged",
                ));
            }
            vec![owner, other]
        }
    };
    stage.until_shared_by(&members)?;
    stage.until_settled(members.len())?;
    again.exactly(&stage.cast)?;
    for member in members {
        stage.cast.close(member)?;
    }
    Ok(took)
}
