//! New partitions of a topic start at their first record, also for consumers that start at the end
//! where nothing is committed and that notice new partitions late.

use super::stage::{GROUP_LIMIT, PARTITIONS, Stage, TOPIC, with_members_of};
use crate::agent::{Agent, Protocol, catalog};
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;

const RECORDS: u64 = 300;
const PARTITIONS_AFTER: usize = 2 * PARTITIONS;

pub(crate) fn new_partitions(
    run: &Run,
    source: &catalog::Source,
    protocol: Protocol,
) -> Result<Passed, Failure> {
    with_members_of(source, run, protocol, play)
}

fn play(stage: &mut Stage<'_>, agent: &Agent) -> Result<Passed, Failure> {
    stage.note("a group begins, and commits for all partitions that there are")?;
    let first = stage.join(agent)?;
    stage.until_shared_by(&[first])?;
    stage.produce(agent, "none", RECORDS)?;
    stage.until_delivered()?;
    stage.until_settled(1)?;
    stage.cast.close(first)?;

    stage.note("members that start at the end take over")?;
    let members = [stage.join_at_end(agent)?, stage.join_at_end(agent)?];
    stage.until_shared_by(&members)?;

    stage.note("the topic gets more partitions, and records at once")?;
    agent.grow(stage.run, &stage.broker, TOPIC, PARTITIONS_AFTER)?;
    stage.produce(agent, "none", RECORDS)?;
    stage.until_delivered()?;
    let what = format!("members sharing {PARTITIONS_AFTER} partitions");
    stage.cast.until(&what, GROUP_LIMIT, |cast| {
        Ok(cast.shares(&members, PARTITIONS_AFTER))
    })?;

    stage.note("the topic gets still more while the group has no members")?;
    for member in members {
        stage.cast.close(member)?;
    }
    agent.grow(stage.run, &stage.broker, TOPIC, PARTITIONS_AFTER + 4)?;
    stage.produce(agent, "none", RECORDS)?;
    let last = stage.join_at_end(agent)?;
    stage.until_delivered()?;
    stage.cast.close(last)?;
    let verdict = stage.judge()?;
    Ok(Passed {
        note: verdict.to_string(),
        clients: vec![agent.client.clone()],
        ..Passed::default()
    })
}
