//! The broker is killed, again and again, at moments that a seed chooses: then, or with the next
//! answer; and also while it starts.
//!
//! Meanwhile a producer and two members are at work that are programs of their own, and witnesses
//! that speak to the broker directly: they write, commit, make topics and groups, and are members of
//! groups, remember each acknowledgement, and look after each kill whether it still holds. Segments
//! are small and compacted all the time, so that kills meet that too. In the end, after one more
//! kill and a clean restart, everything is read from its beginning.

mod classic;
mod members;
mod offsets;
mod topics;
mod witness;
mod writer;

use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;

use super::cast::{Cast, Joining};
use super::stage::{DELIVERY_LIMIT, Stage, TOPIC};
use crate::agent::{Agent, Protocol, catalog};
use crate::broker::Broker;
use crate::differential::Connection;
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;
use kohort_wire::messages::*;
use witness::{Shared, Witness, conclude, testify};
use writer::{ProducerIds, Writer};

/// How long the broker lives between two kills, at most.
const LIFE_MAX_MS: u64 = 900;
/// How long a start is waited for that is killed before it has come to its end, at most.
const START_MAX_MS: u64 = 60;
/// For an answer with which the broker is killed, at most.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// One of so many starts is killed.
const STARTS: u8 = 6;
/// Records of the producer for each life, so that it is at work throughout.
const RECORDS_EACH: u64 = 200;
/// Delivered before the first kill.
const FIRST_RECORDS: usize = 100;
/// What the witnesses write to.
const WRITTEN: &str = "written";
const WRITTEN_PARTITIONS: i32 = 4;
const WRITTEN_SEGMENT_BYTES: &str = "262144";

/// Segments are rolled and compacted all the time.
const SETTINGS: &[(&str, &str)] = &[
    ("offsets.topic.segment.bytes", "1048576"),
    ("log.cleaner.backoff.ms", "100"),
    ("log.cleaner.min.cleanable.ratio", "0.01"),
    ("log.retention.check.interval.ms", "100"),
];

pub(crate) fn kills(
    run: &Run,
    source: &catalog::Source,
    protocol: Protocol,
    count: u64,
    seed: u64,
) -> Result<Passed, Failure> {
    let agent = Agent::install(source, run)?;
    let mut stage = Stage::set_with(run, &agent, protocol, SETTINGS)?;
    let played = play(&mut stage, &agent, count, seed);
    played.map_err(|failure| stage.explain(failure).during(format!("seed {seed}")))
}

fn play(stage: &mut Stage<'_>, agent: &Agent, count: u64, seed: u64) -> Result<Passed, Failure> {
    stage.note("two members start")?;
    let members = [stage.join(agent)?, stage.join(agent)?];
    stage.until_shared_by(&members)?;
    create_written(stage)?;

    stage.note("the broker is killed again and again")?;
    stage.cast.commits_may_fail = true;
    let mut rng = Rng::with_seed(seed);
    let mut witnesses = witnesses(&mut rng);
    let (shared, address) = (Shared::default(), stage.broker.address());
    let mut starts_killed = 0;
    std::thread::scope(|scope| {
        let mut testifying = Vec::new();
        for witness in &mut witnesses {
            let (shared, address) = (&shared, &address);
            testifying.push(scope.spawn(move || testify(&mut **witness, address, shared)));
        }
        let played = kill_and_settle(stage, agent, &members, (count, &mut rng), &shared);
        shared.stop.store(true, Ordering::Relaxed);
        for witness in testifying {
            let panicked = |_| Err(Failure::new("a witness has panicked"));
            witness.join().unwrap_or_else(panicked)?;
        }
        starts_killed = played?;
        Ok::<_, Failure>(())
    })?;
    let verdict = stage.judge()?;

    stage.note("the witnesses look at everything, before and after a clean restart")?;
    for witness in &mut witnesses {
        conclude(&mut **witness, &address)?;
    }
    stage.broker.stop()?;
    stage.broker.start_again()?;
    for witness in &mut witnesses {
        conclude(&mut **witness, &address)?;
    }
    stage.until_shared_by(&members)?;
    for member in members {
        stage.cast.close(member)?;
    }
    stage.note("somebody else reads it all")?;
    audit(stage, agent)?;

    let checks = shared.checks.load(Ordering::Relaxed);
    Ok(Passed {
        note: format!(
            "seed {seed}: {count} kills and {starts_killed} of starts; {verdict}; acknowledged: {}; \
             checked {checks} times",
            acknowledged(&witnesses)
        ),
        clients: vec![agent.client.clone()],
        ..Passed::default()
    })
}

fn witnesses(rng: &mut Rng) -> Vec<Box<dyn Witness>> {
    let ids = ProducerIds::default();
    let mut all: Vec<Box<dyn Witness>> = Vec::new();
    for partition in 0..WRITTEN_PARTITIONS {
        let is_idempotent = partition % 2 == 0;
        let seed = rng.u64(..);
        all.push(Box::new(Writer::new(
            WRITTEN,
            partition,
            is_idempotent,
            &ids,
            seed,
        )));
    }
    for number in 0..2 {
        all.push(Box::new(offsets::Committer::new(
            WRITTEN,
            WRITTEN_PARTITIONS,
            number,
        )));
    }
    all.push(Box::new(members::Members::new(WRITTEN, WRITTEN_PARTITIONS)));
    all.push(Box::new(classic::Classic::new()));
    all.push(Box::new(topics::Topics::new()));
    all
}

/// Kills the broker while records are produced, and waits until everything is as it shall be; how
/// many starts were killed besides.
fn kill_and_settle(
    stage: &mut Stage<'_>,
    agent: &Agent,
    members: &[usize],
    (count, rng): (u64, &mut Rng),
    shared: &Shared,
) -> Result<u64, Failure> {
    let mut producing = stage.begin_producing(agent, count * RECORDS_EACH)?;
    stage
        .cast
        .until("the first records", DELIVERY_LIMIT, |cast| {
            producing.check()?;
            Ok(cast.ledger.distinct() >= FIRST_RECORDS)
        })?;
    let starts_killed = kill_often(stage, rng, count, shared)?;
    if shared.stop.load(Ordering::Relaxed) {
        return Err(Failure::new("a witness says why"));
    }
    stage.note("what is left is produced and delivered")?;
    producing.finish_within(DELIVERY_LIMIT)?;
    stage.until_delivered()?;
    stage.note("everybody settles")?;
    stage.until_shared_by(members)?;
    stage.until_settled(members.len())?;
    Ok(starts_killed)
}

/// What all witnesses together were acknowledged.
fn acknowledged(witnesses: &[Box<dyn Witness>]) -> String {
    let mut sums: Vec<(usize, &str)> = Vec::new();
    for (count, what) in witnesses.iter().flat_map(|it| it.acknowledged()) {
        match sums.iter_mut().find(|sum| sum.1 == what) {
            Some(sum) => sum.0 += count,
            None => sums.push((count, what)),
        }
    }
    let sums = sums.iter().map(|(count, what)| format!("{count} {what}"));
    sums.collect::<Vec<_>>().join(", ")
}

/// Kills the broker so often; how many starts were killed besides.
fn kill_often(
    stage: &mut Stage<'_>,
    rng: &mut Rng,
    count: u64,
    shared: &Shared,
) -> Result<u64, Failure> {
    let mut starts = 0;
    for _ in 0..count {
        // The moment is what is chosen here, not something that is waited for.
        let life = Duration::from_millis(rng.u64(..LIFE_MAX_MS));
        stage.cast.listen(life)?;
        if shared.stop.load(Ordering::Relaxed) {
            // A witness says why.
            return Ok(starts);
        }
        if rng.bool() {
            kill_with_an_answer(&mut stage.broker)?;
        }
        stage.broker.kill();
        while rng.u8(..STARTS) == 0 {
            stage.broker.begin_to_start()?;
            std::thread::sleep(Duration::from_millis(rng.u64(..START_MAX_MS)));
            stage.broker.kill();
            starts += 1;
        }
        stage.broker.start_again()?;
    }
    Ok(starts)
}

/// Has the broker killed by the next witness that gets an answer.
fn kill_with_an_answer(broker: &mut Broker) -> Result<(), Failure> {
    let Some(process) = broker.process() else {
        return Ok(());
    };
    witness::strike(process.pid());
    // If nobody gets one, it is killed nevertheless.
    let ended = broker.ends_within(ANSWER_MAX);
    witness::withhold();
    ended.map(|_| ())
}

fn create_written(stage: &Stage<'_>) -> Result<(), Failure> {
    let request = CreateTopicsRequest {
        timeout_ms: 30_000,
        topics: vec![CreatableTopic {
            name: WRITTEN.into(),
            num_partitions: WRITTEN_PARTITIONS,
            replication_factor: 1,
            configs: vec![CreatableTopicConfig {
                name: "internal.segment.bytes".into(),
                value: Some(WRITTEN_SEGMENT_BYTES.into()),
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let mut connection = Connection::open(&stage.broker.address())?;
    let response = connection.ask(&request, 7)?.unwrap_or_default();
    match response.topics.first() {
        Some(topic) if !topic.error_code.is_error() => Ok(()),
        other => Err(Failure::new(format!("{WRITTEN} is not created: {other:?}"))),
    }
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
        holds_ms: None,
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
