//! The broker is killed while a rewind waits for an owner, and while that lets go; the broker that
//! starts next finishes it, and the administrator that asks again does not have it happen twice.

use std::time::Duration;

use rustix::process::Signal;

use super::super::explained::json;
use super::super::stage::{GROUP, GROUP_LIMIT, Stage, TOPIC};
use super::{Again, begin};
use crate::agent::{Agent, Protocol, catalog};
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;
use crate::wait::wait_for;

/// How long after the owner goes on the broker is killed, in milliseconds; `None`: before.
const MOMENTS: [Option<u64>; 2] = [None, Some(250)];
const MORE_MOMENTS: [Option<u64>; 6] =
    [None, Some(0), Some(100), Some(300), Some(600), Some(1_000)];

pub(crate) fn rewind_killed(
    run: &Run,
    source: &catalog::Source,
    protocol: Protocol,
    assignor: Option<&str>,
) -> Result<Passed, Failure> {
    let agent = Agent::install(source, run)?;
    let administrator = match source.name {
        "kohort" => Agent::install(super::source("java"), run)?,
        _ => agent.clone(),
    };
    let mut stage = Stage::set(run, &agent, protocol)?;
    let played = play(&mut stage, &agent, &administrator, assignor);
    let (again, repeated) = played.map_err(|failure| stage.explain(failure))?;
    Ok(Passed {
        note: format!(
            "{} rewinds finished after kills, {again} records again; asked again after {repeated}",
            moments(run).len()
        ),
        clients: vec![agent.client, administrator.client],
        ..Passed::default()
    })
}

fn moments(run: &Run) -> &'static [Option<u64>] {
    if run.is_full() {
        &MORE_MOMENTS
    } else {
        &MOMENTS
    }
}

fn play(
    stage: &mut Stage<'_>,
    agent: &Agent,
    administrator: &Agent,
    assignor: Option<&str>,
) -> Result<(usize, usize), Failure> {
    let members = [
        stage.join_as(agent, None, assignor)?,
        stage.join_as(agent, None, assignor)?,
    ];
    begin(stage, agent, &members)?;
    let (mut again, mut repeated) = (0, 0);
    for (round, moment) in moments(stage.run).iter().enumerate() {
        let (count, is_repeated) = kill_once(stage, members, administrator, (round, *moment))?;
        again += count;
        repeated += usize::from(is_repeated);
    }
    for member in members {
        stage.cast.close(member)?;
    }
    Ok((again, repeated))
}

/// Gives how many records came again, and whether the administrator had to be started again.
fn kill_once(
    stage: &mut Stage<'_>,
    [owner, other]: [usize; 2],
    administrator: &Agent,
    (round, moment): (usize, Option<u64>),
) -> Result<(usize, bool), Failure> {
    let of = |stage: &Stage<'_>, member: usize| stage.cast.member(member).owned.clone();
    let named = of(stage, owner).into_iter().take(2);
    let named = named.chain(of(stage, other).into_iter().take(1));
    let goals: Vec<(i32, i64)> = named
        .enumerate()
        .map(|(index, partition)| (partition, (2 + 5 * round + index) as i64))
        .collect();
    let asked: Vec<_> = goals
        .iter()
        .map(|&(index, to)| (TOPIC, index, to))
        .collect();
    let again = Again::of(&stage.cast, &goals);

    stage.note("an owner sleeps, and a rewind waits for it")?;
    stage.cast.signal(owner, Signal::STOP);
    // Events that were not written yet when the broker was killed are lost.
    let before = times_rewound(stage)?;
    let (run, broker) = (stage.run, &stage.broker);
    let asking = administrator.start_rewind(run, broker, GROUP, &asked)?;
    wait_for("a rewind that waits", GROUP_LIMIT, || {
        let explained = json(stage, &["groups", "explain", GROUP])?;
        // Members that would keep partitions through a rebalance are put out, and it waits for none.
        let is_begun = !explained["rewind"].is_null() || times_rewound(stage)? > before;
        Ok(is_begun.then_some(()))
    })?;

    stage.note("the broker is killed and started again")?;
    stage.cast.commits_may_fail = true;
    if let Some(ms) = moment {
        stage.cast.signal(owner, Signal::CONT);
        stage.cast.listen(Duration::from_millis(ms))?;
    }
    stage.broker.kill();
    stage.broker.start_again()?;
    if moment.is_none() {
        stage.cast.signal(owner, Signal::CONT);
    }

    stage.note("the rewind is finished")?;
    again.until_delivered(&mut stage.cast)?;
    let is_repeated = asking.finish().is_err();
    if is_repeated {
        // As whoever gets an error does.
        let (run, broker) = (stage.run, &stage.broker);
        administrator
            .start_rewind(run, broker, GROUP, &asked)?
            .finish()?;
    }
    stage.until_shared_by(&[owner, other])?;
    stage.until_settled(2)?;
    stage.cast.commits_may_fail = false;
    again.at_least(&stage.cast)?;
    let rewound = times_rewound(stage)?;
    if rewound > round + 1 {
        return Err(Failure::new(format!(
            "{} rewinds were asked for, and {rewound} have happened",
            round + 1
        )));
    }
    Ok((again.count(), is_repeated))
}

fn times_rewound(stage: &Stage<'_>) -> Result<usize, Failure> {
    let history = json(stage, &["groups", "history", GROUP])?;
    let events = history.as_array().into_iter().flatten();
    Ok(events.filter(|event| event["event"] == "rewound").count())
}
