//! A static member (group.instance.id) is restarted and nobody else notices.

use super::stage::{Stage, with_members_of};
use crate::agent::{Agent, Protocol, catalog};
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;

const RECORDS: u64 = 300;
const INSTANCES: [&str; 3] = ["one", "two", "three"];

pub(crate) fn static_members(
    run: &Run,
    source: &catalog::Source,
    protocol: Protocol,
) -> Result<Passed, Failure> {
    with_members_of(source, run, protocol, play)
}

fn play(stage: &mut Stage<'_>, agent: &Agent) -> Result<Passed, Failure> {
    stage.note("three static members start")?;
    let mut members = Vec::new();
    for instance in INSTANCES {
        members.push(stage.join_as(agent, Some(instance), None)?);
    }
    stage.until_shared_by(&members)?;
    stage.produce(agent, "none", RECORDS)?;
    stage.until_delivered()?;
    stage.until_settled(members.len())?;

    stage.note("one is restarted")?;
    // It comes back, within its session timeout, to what it had.
    let restarted = members.remove(2);
    let owned = stage.cast.member(restarted).owned.clone();
    let changes: Vec<usize> = members
        .iter()
        .map(|&number| stage.cast.member(number).changes)
        .collect();
    match stage.protocol {
        // A new member takes the id of one that has vanished.
        Protocol::Classic => stage.cast.kill(restarted)?,
        // Only a member that has said goodbye for a while frees its id (KIP-848).
        Protocol::Consumer => stage.cast.close(restarted)?,
    }
    let again = stage.join_as(agent, Some(INSTANCES[2]), None)?;
    members.push(again);
    stage.until_shared_by(&members)?;
    if stage.cast.member(again).owned != owned {
        return Err(Failure::new(format!(
            "the restarted static member owns {:?} and had {owned:?}",
            stage.cast.member(again).owned
        )));
    }
    stage.produce(agent, "none", RECORDS)?;
    stage.until_delivered()?;
    stage.until_settled(members.len())?;
    for (&number, before) in members.iter().zip(changes) {
        let after = stage.cast.member(number).changes;
        if after != before {
            return Err(Failure::new(format!(
                "member {number} saw {} changes while a static member was restarted",
                after - before
            )));
        }
    }
    for member in members {
        stage.cast.close(member)?;
    }
    let verdict = stage.judge()?;
    Ok(Passed {
        note: verdict.to_string(),
        clients: vec![agent.client.clone()],
        ..Passed::default()
    })
}
