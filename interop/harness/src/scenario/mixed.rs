//! One group whose members are of different client libraries.

use super::stage::Stage;
use crate::agent::{Agent, Protocol};
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;

/// Records that each library produces, with one of the compressions that all of them have.
const EACH: u64 = 100;
/// Records while something happens.
const DURING: u64 = 600;

/// The assignor that every library has.
const CLASSIC_ASSIGNOR: &str = "range";

pub(crate) fn mixed(run: &Run, agents: &[Agent], protocol: Protocol) -> Result<Passed, Failure> {
    let [first, .., last] = agents else {
        return Err(Failure::new("a mixed group needs two libraries"));
    };
    let mut stage = Stage::set(run, first, protocol)?;
    let assignor = (protocol == Protocol::Classic).then_some(CLASSIC_ASSIGNOR);
    let played = play(&mut stage, agents, first, last, assignor);
    played.map_err(|failure| stage.explain(failure))
}

fn play(
    stage: &mut Stage<'_>,
    agents: &[Agent],
    first: &Agent,
    last: &Agent,
    assignor: Option<&str>,
) -> Result<Passed, Failure> {
    let common = first.compressions.iter().filter(|&compression| {
        agents
            .iter()
            .all(|agent| agent.compressions.contains(compression))
    });
    let common: Vec<&String> = common.collect();
    stage.note("one member of each library starts")?;
    let mut members = Vec::new();
    for (agent, compression) in agents.iter().zip(common.into_iter().cycle()) {
        // Every library reads what every other has compressed.
        stage.produce(agent, compression, EACH)?;
        members.push(stage.join_as(agent, None, assignor)?);
    }
    stage.until_shared_by(&members)?;
    stage.until_delivered()?;

    stage.note("one is killed and another joins")?;
    stage.produce_during(first, DURING, |stage| {
        stage.cast.kill(members.remove(0))?;
        members.push(stage.join_as(last, None, assignor)?);
        stage.until_shared_by(&members)
    })?;
    stage.until_delivered()?;

    stage.note("the broker is restarted")?;
    stage.cast.commits_may_fail = true;
    stage.produce_during(last, DURING, |stage| {
        stage.broker.stop()?;
        stage.broker.start_again()
    })?;
    stage.until_delivered()?;
    stage.note("everybody settles")?;
    stage.until_shared_by(&members)?;
    stage.until_settled(members.len())?;
    stage.cast.commits_may_fail = false;

    stage.note("half of them leave")?;
    for member in members.split_off(members.len() / 2) {
        stage.cast.close(member)?;
    }
    stage.until_shared_by(&members)?;
    stage.produce(last, "none", EACH)?;
    stage.until_delivered()?;
    stage.until_settled(members.len())?;
    for member in members {
        stage.cast.close(member)?;
    }

    let verdict = stage.judge()?;
    Ok(Passed {
        note: verdict.to_string(),
        clients: agents.iter().map(|agent| agent.client.clone()).collect(),
        ..Passed::default()
    })
}
