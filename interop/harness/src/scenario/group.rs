//! A group of three of one client library, through everything that happens to
//! groups: a member joins, one is killed, the broker is restarted, the broker
//! is killed, all leave, one comes back.

use super::stage::{Stage, with_members_of};
use crate::agent::{Agent, Protocol, catalog};
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;

/// Records with each compression.
const EACH_COMPRESSION: u64 = 100;
/// Records while something happens.
const DURING: u64 = 600;
/// Records between happenings.
const AFTER: u64 = 60;

pub(crate) fn group(
    run: &Run,
    source: &catalog::Source,
    protocol: Protocol,
) -> Result<Passed, Failure> {
    with_members_of(source, run, protocol, play)
}

fn play(stage: &mut Stage<'_>, agent: &Agent) -> Result<Passed, Failure> {
    for compression in &agent.compressions {
        stage.produce(agent, compression, EACH_COMPRESSION)?;
    }
    stage.note("three members start")?;
    let mut members = Vec::new();
    for _ in 0..3 {
        members.push(stage.join(agent)?);
    }
    stage.until_shared_by(&members)?;
    stage.until_delivered()?;

    stage.note("a fourth joins")?;
    stage.produce_during(agent, DURING, |stage| {
        members.push(stage.join(agent)?);
        stage.until_shared_by(&members)
    })?;
    stage.until_delivered()?;

    stage.note("one is killed")?;
    stage.produce_during(agent, DURING, |stage| {
        stage.cast.kill(members.remove(1))?;
        stage.until_shared_by(&members)
    })?;
    stage.until_delivered()?;

    stage.note("the broker is restarted")?;
    stage.cast.commits_may_fail = true;
    stage.produce_during(agent, DURING, |stage| {
        stage.broker.stop()?;
        stage.broker.start_again()
    })?;
    stage.until_delivered()?;
    stage.note("the broker is killed")?;
    stage.produce_during(agent, DURING, |stage| {
        stage.broker.kill();
        stage.broker.start_again()
    })?;
    stage.until_delivered()?;
    stage.note("everybody settles")?;
    stage.until_shared_by(&members)?;
    stage.until_settled(members.len())?;
    stage.cast.commits_may_fail = false;

    stage.note("one leaves")?;
    stage.cast.close(members.remove(0))?;
    stage.until_shared_by(&members)?;
    stage.produce(agent, "none", AFTER)?;
    stage.until_delivered()?;
    stage.until_settled(members.len())?;
    stage.note("all leave, and one comes back")?;
    for member in members {
        stage.cast.close(member)?;
    }
    stage.produce(agent, "none", AFTER)?;
    let last = stage.join(agent)?;
    stage.until_shared_by(&[last])?;
    stage.until_delivered()?;
    stage.until_settled(1)?;
    stage.cast.close(last)?;

    stage.note("the end")?;
    let verdict = stage.judge()?;
    Ok(Passed {
        note: format!("{}; {verdict}", agent.compressions.join(" ")),
        clients: vec![agent.client.clone()],
        ..Passed::default()
    })
}
