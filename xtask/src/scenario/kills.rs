//! The broker is killed, again and again, at moments that a seed chooses, under an idempotent
//! producer and a group that commits what it reads. In the end every acknowledged record is in the
//! log once and in its place, and nothing whose commit was acknowledged was delivered again.

use std::time::Duration;

use fastrand::Rng;

use super::cast::{Cast, Joining};
use super::stage::{DELIVERY_LIMIT, RATE, Stage, TOPIC};
use crate::agent::{Agent, Protocol, catalog};
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;

/// How long the broker lives between two kills, at most.
const LIFE_MAX_MS: u64 = 900;
/// Records for each life, so that the producer is at work throughout.
const RECORDS_EACH: u64 = 200;

pub(crate) fn kills(
    run: &Run,
    source: &catalog::Source,
    protocol: Protocol,
    count: u64,
    seed: u64,
) -> Result<Passed, Failure> {
    let agent = Agent::install(source, run)?;
    let mut stage = Stage::set(run, &agent, protocol)?;
    let played = play(&mut stage, &agent, count, seed);
    played.map_err(|failure| stage.explain(failure).during(format!("seed {seed}")))
}

fn play(stage: &mut Stage<'_>, agent: &Agent, count: u64, seed: u64) -> Result<Passed, Failure> {
    stage.note("two members start")?;
    let members = [stage.join(agent)?, stage.join(agent)?];
    stage.until_shared_by(&members)?;

    stage.note("the broker is killed again and again")?;
    stage.cast.commits_may_fail = true;
    let mut rng = Rng::with_seed(seed);
    stage.produce_during(agent, count * RECORDS_EACH, |stage| {
        for _ in 0..count {
            // The moment is what is chosen here, not something that is waited for.
            std::thread::sleep(Duration::from_millis(rng.u64(..LIFE_MAX_MS)));
            stage.broker.kill();
            stage.broker.start_again()?;
            stage.cast.until("", Duration::ZERO, |_| Ok(true))?;
        }
        Ok(())
    })?;
    stage.note("everybody settles")?;
    stage.until_delivered()?;
    stage.until_shared_by(&members)?;
    stage.until_settled(members.len())?;
    let verdict = stage.judge()?;
    for member in members {
        stage.cast.close(member)?;
    }

    stage.note("somebody else reads it all")?;
    audit(stage, agent)?;
    Ok(Passed {
        note: format!("{count} kills at {RATE} records/s, seed {seed}; {verdict}"),
        clients: vec![agent.client.clone()],
    })
}

/// The whole log, from its start: what was delivered before a kill must still be there after it.
fn audit(stage: &Stage<'_>, agent: &Agent) -> Result<(), Failure> {
    let mut cast = Cast::new();
    let joining = Joining {
        address: stage.broker.address(),
        topic: TOPIC,
        group: "auditors",
        protocol: stage.protocol,
        instance_id: None,
        assignor: None,
        reset: None,
    };
    let auditor = cast.join(stage.run, agent, &joining)?;
    let total = stage.produced;
    cast.until("the whole log once more", DELIVERY_LIMIT, |cast| {
        Ok(cast.ledger.distinct() as u64 >= total)
    })?;
    cast.close(auditor)?;
    cast.ledger.judge(total, true).map_err(Failure::new)?;
    match cast.ledger.first_out_of_order() {
        Some((partition, offset)) => Err(Failure::new(format!(
            "partition {partition} has at offset {offset} what was sent before the record in front"
        ))),
        None => Ok(()),
    }
}
