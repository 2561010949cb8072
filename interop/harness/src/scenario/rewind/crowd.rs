//! A group of both protocols and of three libraries, static members among them, that reads two topics:
//! both are rewound at once; and two administrators want different things at the same time, while
//! members come and go.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::Value;

use super::super::cast::{Cast, Joining};
use super::super::explained::json;
use super::super::stage::{GROUP, GROUP_LIMIT, PARTITIONS, Stage, TOPIC};
use super::{Again, RECORDS, source};
use crate::agent::{Agent, Protocol};
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;
use crate::wait::wait_for;

/// The other topic.
const MORE: &str = "more";

struct Agents {
    java: Agent,
    confluent: Agent,
    kohort: Agent,
}

pub(crate) fn rewind_crowd(run: &Run) -> Result<Passed, Failure> {
    let agents = Agents {
        java: Agent::install(source("java"), run)?,
        confluent: Agent::install(source("confluent-kafka"), run)?,
        kohort: Agent::install(source("kohort"), run)?,
    };
    let mut stage = Stage::set(run, &agents.confluent, Protocol::Consumer)?;
    let played = play(&mut stage, &agents);
    let refused = played.map_err(|failure| stage.explain(failure))?;
    let Agents {
        java,
        confluent,
        kohort,
    } = agents;
    Ok(Passed {
        note: format!("two topics at once; of two administrators {refused}"),
        clients: vec![java.client, confluent.client, kohort.client],
        ..Passed::default()
    })
}

fn play(stage: &mut Stage<'_>, agents: &Agents) -> Result<String, Failure> {
    stage.note("members of both protocols read two topics")?;
    let run = stage.run;
    agents
        .confluent
        .create(run, &stage.broker, MORE, PARTITIONS)?;
    let mut more = Cast::new();
    let events = [
        (&agents.confluent, Protocol::Classic, None),
        (&agents.java, Protocol::Consumer, Some("static-java")),
        (&agents.kohort, Protocol::Consumer, None),
    ];
    let mut members = Vec::new();
    for (agent, protocol, instance_id) in events {
        let joining = Joining {
            protocol,
            instance_id,
            ..stage.joining()
        };
        members.push(stage.cast.join(run, agent, &joining)?);
        // A classic member has to be there before the first of the other protocol converts the group.
        stage.until_shared_by(&members)?;
    }
    let others = [
        (&agents.kohort, Protocol::Classic, None),
        (
            &agents.confluent,
            Protocol::Consumer,
            Some("static-confluent"),
        ),
    ];
    let mut readers = Vec::new();
    for (agent, protocol, instance_id) in others {
        let joining = Joining {
            topic: MORE,
            protocol,
            instance_id,
            ..stage.joining()
        };
        readers.push(more.join(run, agent, &joining)?);
    }
    until_shares(&mut more, &readers)?;
    stage.until_shared_by(&members)?;
    stage.produce(&agents.confluent, "none", RECORDS)?;
    let values = 0..RECORDS;
    let producing = agents
        .kohort
        .produce(run, &stage.broker, MORE, "none", values, 0)?;
    producing.finish()?;
    stage.until_delivered()?;
    more.until("all records of the other topic", GROUP_LIMIT, |cast| {
        Ok(cast.ledger.distinct() as u64 == RECORDS)
    })?;
    settled(stage, 5)?;

    stage.note("both topics are rewound at once")?;
    let goals = firsts(&stage.cast, &members, 3);
    let more_goals = firsts(&more, &readers, 4);
    let (again, more_again) = (
        Again::of(&stage.cast, &goals),
        Again::of(&more, &more_goals),
    );
    let named = |topic: &'static str, goals: &[(i32, i64)]| -> Vec<(&'static str, i32, i64)> {
        goals
            .iter()
            .map(|&(index, to)| (topic, index, to))
            .collect()
    };
    let both = [named(TOPIC, &goals), named(MORE, &more_goals)].concat();
    let asking = agents.java.start_rewind(run, &stage.broker, GROUP, &both)?;
    asking.finish()?;
    again.until_delivered(&mut stage.cast)?;
    more_again.until_delivered(&mut more)?;
    settled(stage, 5)?;
    again.exactly(&stage.cast)?;
    more_again.exactly(&more)?;

    stage.note("two administrators want different things, while members come and go")?;
    let [leaver, _, sleeper] = [members[0], members[1], members[2]];
    let wanted: Vec<i32> = goals.iter().map(|&(index, _)| index).collect();
    let to = |offset: i64| -> Vec<(i32, i64)> { wanted.iter().map(|&it| (it, offset)).collect() };
    let (low, high) = (to(7), to(11));
    let again = Again::of(&stage.cast, &low);
    stage.cast.signal(sleeper, Signal::STOP);
    let first = agents
        .java
        .start_rewind(run, &stage.broker, GROUP, &named(TOPIC, &low))?;
    until_it_waits(stage)?;
    let second = agents
        .confluent
        .start_rewind(run, &stage.broker, GROUP, &named(TOPIC, &high))?;
    let newcomer = stage.join_as(&agents.confluent, None, None)?;
    stage.cast.close(leaver)?;
    let refusal = second.finish();
    stage.cast.signal(sleeper, Signal::CONT);
    first.finish()?;
    let refused = match refusal {
        // The other one was over already.
        Ok(()) => "both had their turn".to_owned(),
        Err(failure) if failure.to_string().contains("REBALANCE_IN_PROGRESS") => {
            again.until_delivered(&mut stage.cast)?;
            "librdkafka's was told that another one is under way".to_owned()
        }
        Err(failure) => return Err(failure.during("the second administrator")),
    };
    let members = [members[1], sleeper, newcomer];
    stage.until_shared_by(&members)?;
    settled(stage, 5)?;
    let below = again.delivered(&stage.cast).iter();
    let below = below.filter(|(_, index, offset)| !wanted.contains(index) || *offset < 7);
    if below.count() > 0 {
        return Err(Failure::new("something else was delivered again"));
    }
    stage.note("Java's administrator comes second, and has its turn")?;
    let (low, high) = (to(13), to(17));
    let again = Again::of(&stage.cast, &high);
    let (refused_before, before) = (count(stage, "rewind_refused")?, count(stage, "rewound")?);
    stage.cast.signal(sleeper, Signal::STOP);
    let first = agents
        .confluent
        .start_rewind(run, &stage.broker, GROUP, &named(TOPIC, &low))?;
    until_it_waits(stage)?;
    let second = agents
        .java
        .start_rewind(run, &stage.broker, GROUP, &named(TOPIC, &high))?;
    wait_for(
        "the second administrator to be refused",
        GROUP_LIMIT,
        || {
            // Unless the sleeper has been put out already.
            let is_refused = count(stage, "rewind_refused")? > refused_before;
            let is_refused = is_refused || count(stage, "rewound")? > before;
            Ok(is_refused.then_some(()))
        },
    )?;
    stage.cast.signal(sleeper, Signal::CONT);
    first.finish()?;
    second.finish()?;
    again.until_delivered(&mut stage.cast)?;
    stage.until_shared_by(&members)?;
    settled(stage, 5)?;
    let rewound = count(stage, "rewound")? - before;
    if rewound != 2 {
        return Err(Failure::new(format!("{rewound} rewinds instead of 2")));
    }
    not_mixed(stage, &[7, 11, 13, 17])?;
    for member in members {
        stage.cast.close(member)?;
    }
    for reader in readers {
        more.close(reader)?;
    }
    Ok(refused)
}

fn until_it_waits(stage: &Stage<'_>) -> Result<(), Failure> {
    wait_for("a rewind that waits", GROUP_LIMIT, || {
        let explained = json(stage, &["groups", "explain", GROUP])?;
        Ok((!explained["rewind"].is_null()).then_some(()))
    })
}

/// How often the history tells of such an event.
fn count(stage: &Stage<'_>, event: &str) -> Result<usize, Failure> {
    let history = json(stage, &["groups", "history", GROUP])?;
    let events = history.as_array().into_iter().flatten();
    Ok(events.filter(|it| it["event"] == event).count())
}

/// A partition of each member, and where it goes.
fn firsts(cast: &Cast, members: &[usize], to: i64) -> Vec<(i32, i64)> {
    let first = members
        .iter()
        .filter_map(|&it| cast.member(it).owned.first());
    first.map(|&partition| (partition, to)).collect()
}

fn until_shares(cast: &mut Cast, members: &[usize]) -> Result<(), Failure> {
    let what = format!("members {members:?} of the other topic sharing it");
    cast.until(&what, GROUP_LIMIT, |cast| {
        Ok(cast.shares(members, PARTITIONS))
    })
}

fn settled(stage: &mut Stage<'_>, members: usize) -> Result<(), Failure> {
    stage.until_settled_in(TOPIC, members)?;
    stage.until_settled_in(MORE, members)
}

/// Each rewind that the history knows of the second part went to one of the places, all of it.
fn not_mixed(stage: &Stage<'_>, places: &[i64]) -> Result<(), Failure> {
    let history = json(stage, &["groups", "history", GROUP])?;
    let events = history.as_array().into_iter().flatten();
    for event in events.filter(|event| event["event"] == "rewound") {
        let offsets = event["offsets"]["first"].as_array().into_iter().flatten();
        let to: BTreeSet<i64> = offsets.filter_map(|it| it["to"].as_i64()).collect();
        if to.iter().any(|to| places.contains(to)) && to.len() > 1 {
            return Err(Failure::new(format!("two rewinds are mixed: {event}")));
        }
    }
    match history {
        Value::Array(_) => Ok(()),
        other => Err(Failure::new(format!("no history: {other}"))),
    }
}
