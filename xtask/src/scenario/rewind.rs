//! A live group is rewound by the administrators of three libraries, and each time its members go on
//! at the new offsets, deliver everything from there once, and nothing else again.

use std::collections::{BTreeMap, BTreeSet};

use super::stage::{GROUP, GROUP_LIMIT, PARTITIONS, Stage, TOPIC};
use crate::agent::{Agent, Protocol, catalog};
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;

const RECORDS: u64 = 400;
/// Whose administrators ask for a rewind, one after the other.
const ADMINISTRATORS: [&str; 3] = ["java", "confluent-kafka", "kafka-python"];

pub(crate) fn rewind(
    run: &Run,
    source: &catalog::Source,
    protocol: Protocol,
    assignor: Option<&str>,
) -> Result<Passed, Failure> {
    let agent = Agent::install(source, run)?;
    let mut administrators = Vec::new();
    for source in catalog::ALL {
        if ADMINISTRATORS.contains(&source.name) {
            administrators.push(Agent::install(source, run)?);
        }
    }
    let mut stage = Stage::set(run, &agent, protocol)?;
    let played = play(&mut stage, &agent, assignor, &administrators);
    let again = played.map_err(|failure| stage.explain(failure))?;
    let clients = administrators.into_iter().map(|agent| agent.client);
    Ok(Passed {
        note: format!("3 rewinds, {again} records again and nothing else"),
        clients: std::iter::once(agent.client).chain(clients).collect(),
    })
}

fn play(
    stage: &mut Stage<'_>,
    agent: &Agent,
    assignor: Option<&str>,
    administrators: &[Agent],
) -> Result<usize, Failure> {
    stage.note("two members read everything")?;
    let members = [
        stage.join_as(agent, None, assignor)?,
        stage.join_as(agent, None, assignor)?,
    ];
    stage.until_shared_by(&members)?;
    stage.produce(agent, "none", RECORDS)?;
    stage.until_delivered()?;
    stage.until_settled(members.len())?;

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
    let ends = ends(&stage.cast.delivered);
    let begun = stage.cast.delivered.len();
    let changes = stage.cast.member(other).changes;
    administrator.rewind(stage.run, &stage.broker, TOPIC, GROUP, &goals)?;

    let expected: BTreeMap<i32, Vec<i64>> = goals
        .iter()
        .map(|&(partition, to)| {
            let end = ends.get(&partition).copied().unwrap_or_default();
            (partition, (to..end).collect())
        })
        .collect();
    let count: usize = expected.values().map(Vec::len).sum();
    let what = format!("{count} records again from {goals:?}");
    stage.cast.until(&what, GROUP_LIMIT, |cast| {
        Ok(cast.delivered.len() - begun >= count)
    })?;
    stage.until_shared_by(&members)?;
    stage.until_settled(members.len())?;

    let mut delivered: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    let mut owners: BTreeMap<i32, BTreeSet<usize>> = BTreeMap::new();
    for &(member, partition, offset) in &stage.cast.delivered[begun..] {
        delivered.entry(partition).or_default().push(offset);
        owners.entry(partition).or_default().insert(member);
    }
    if delivered != expected {
        return Err(Failure::new(format!(
            "after a rewind by {} to {goals:?} was delivered {delivered:?}",
            administrator.client
        )));
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
    Ok(count)
}

/// The offset behind what was delivered of each partition.
fn ends(delivered: &[(usize, i32, i64)]) -> BTreeMap<i32, i64> {
    let mut ends: BTreeMap<i32, i64> = (0..PARTITIONS as i32).map(|index| (index, 0)).collect();
    for &(_, partition, offset) in delivered {
        let end = ends.entry(partition).or_default();
        *end = (*end).max(offset + 1);
    }
    ends
}
