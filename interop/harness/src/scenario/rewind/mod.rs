//! A live group is rewound by the administrators of three libraries, and each time its members go on
//! at the new offsets, deliver everything from there once, and nothing else again.

mod again;
mod crowd;
mod elsewhere;
mod killed;
mod stuck;

use std::collections::{BTreeMap, BTreeSet};

use super::stage::{GROUP, Stage, TOPIC};
use crate::agent::{Agent, Protocol, catalog};
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;
use again::Again;
pub(crate) use crowd::rewind_crowd;
pub(crate) use elsewhere::rewind_elsewhere;
pub(crate) use killed::rewind_killed;
pub(crate) use stuck::{Stuck, rewind_stuck};

const RECORDS: u64 = 400;
/// Whose administrators ask for a rewind, one after the other.
const ADMINISTRATORS: [&str; 3] = ["java", "confluent-kafka", "kafka-python"];

pub(crate) fn rewind(
    run: &Run,
    members: &catalog::Source,
    protocol: Protocol,
    assignor: Option<&str>,
) -> Result<Passed, Failure> {
    let agent = Agent::install(members, run)?;
    let mut administrators = Vec::new();
    for name in ADMINISTRATORS {
        administrators.push(Agent::install(source(name), run)?);
    }
    let mut stage = Stage::set(run, &agent, protocol)?;
    let played = play(&mut stage, &agent, assignor, &administrators);
    let again = played.map_err(|failure| stage.explain(failure))?;
    let clients = administrators.into_iter().map(|agent| agent.client);
    Ok(Passed {
        note: format!("3 rewinds, {again} records again and nothing else"),
        clients: std::iter::once(agent.client).chain(clients).collect(),
        ..Passed::default()
    })
}

fn play(
    stage: &mut Stage<'_>,
    agent: &Agent,
    assignor: Option<&str>,
    administrators: &[Agent],
) -> Result<usize, Failure> {
    let members = [
        stage.join_as(agent, None, assignor)?,
        stage.join_as(agent, None, assignor)?,
    ];
    begin(stage, agent, &members)?;

    let mut again = 0;
    for (round, administrator) in administrators.iter().enumerate() {
        stage.note(match round {
            0 => "the first administrator rewinds",
            1 => "the second administrator rewinds",
            _ => "the third administrator rewinds",
        })?;
        again += rewind_once(stage, members, administrator, round)?;
    }
    stage.note("the group goes on")?;
    stage.produce(agent, "none", RECORDS)?;
    stage.until_delivered()?;
    stage.until_settled(members.len())?;
    for member in members {
        stage.cast.close(member)?;
    }
    Ok(again)
}

/// Rewinds two partitions of one member, and checks what is delivered until the group has settled.
fn rewind_once(
    stage: &mut Stage<'_>,
    members: [usize; 2],
    administrator: &Agent,
    round: usize,
) -> Result<usize, Failure> {
    let [owner, other] = members;
    let named: Vec<i32> = stage.cast.member(owner).owned.iter().copied().collect();
    let goals: Vec<(i32, i64)> = named
        .into_iter()
        .take(2)
        .enumerate()
        .map(|(index, partition)| (partition, (3 + 4 * round + index) as i64))
        .collect();
    let again = Again::of(&stage.cast, &goals);
    let changes = stage.cast.member(other).changes;
    administrator.rewind(stage.run, &stage.broker, TOPIC, GROUP, &goals)?;

    again.until_delivered(&mut stage.cast)?;
    stage.until_shared_by(&members)?;
    stage.until_settled(members.len())?;
    again
        .exactly(&stage.cast)
        .map_err(|failure| failure.during(&administrator.client))?;
    let mut owners: BTreeMap<i32, BTreeSet<usize>> = BTreeMap::new();
    for &(member, partition, _) in again.delivered(&stage.cast) {
        owners.entry(partition).or_default().insert(member);
    }
    // A classic rebalance may hand a partition on once more.
    if stage.protocol == Protocol::Consumer && owners.values().any(|owners| owners.len() > 1) {
        return Err(Failure::new(format!("read by two members: {owners:?}")));
    }
    let changed = stage.cast.member(other).changes - changes;
    if stage.protocol == Protocol::Consumer && changed > 0 {
        return Err(Failure::new(format!(
            "member {other} owns nothing of what was rewound and saw {changed} changes"
        )));
    }
    Ok(again.count())
}

/// An agent by its name.
fn source(name: &str) -> &'static catalog::Source {
    let mut all = catalog::ALL.iter();
    all.find(|source| source.name == name)
        .unwrap_or(&catalog::KOHORT)
}

/// Members share a topic, and have read and committed all of it.
fn begin(stage: &mut Stage<'_>, agent: &Agent, members: &[usize]) -> Result<(), Failure> {
    stage.note("members read everything")?;
    stage.until_shared_by(members)?;
    stage.produce(agent, "none", RECORDS)?;
    stage.until_delivered()?;
    stage.until_settled(members.len())
}
