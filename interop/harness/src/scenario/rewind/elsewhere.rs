//! `kohort groups rewind` and its sisters on a cluster that is not kohort: a group without members is
//! reset, and what cannot be done is said.

use serde_json::Value;

use super::super::explained::{COMMAND_LIMIT, json, program};
use super::super::stage::{GROUP, PARTITIONS, Stage, TOPIC};
use super::{Again, begin};
use crate::agent::{Agent, Protocol, catalog};
use crate::failure::Failure;
use crate::process::Process;
use crate::report::Passed;
use crate::run::Run;

pub(crate) fn rewind_elsewhere(run: &Run, protocol: Protocol) -> Result<Passed, Failure> {
    let agent = Agent::install(&catalog::KOHORT, run)?;
    let mut stage = Stage::set(run, &agent, protocol)?;
    let played = play(&mut stage, &agent);
    let again = played.map_err(|failure| stage.explain(failure))?;
    Ok(Passed {
        note: format!("refused while a member ran, then {again} records again"),
        clients: vec![agent.client],
        ..Passed::default()
    })
}

fn play(stage: &mut Stage<'_>, agent: &Agent) -> Result<usize, Failure> {
    let member = stage.join(agent)?;
    begin(stage, agent, &[member])?;

    stage.note("a live group is shown, explained, and not rewound")?;
    let to_start = ["groups", "rewind", GROUP, "--topic", TOPIC, "--to-earliest"];
    let execute = [&to_start[..], &["--execute"]].concat();
    let shown = json(stage, &to_start)?;
    all_go_to_the_start(&shown)?;
    let explained = json(stage, &["groups", "explain", GROUP])?;
    if explained["state"] != "Stable" {
        return Err(Failure::new(format!("not stable: {explained}")));
    }
    fails(
        stage,
        &execute,
        "cannot rewind a group while its members run",
    )?;
    fails(
        stage,
        &["groups", "history", GROUP],
        "keeps no history of groups",
    )?;

    stage.note("it is reset when its member has left")?;
    stage.cast.close(member)?;
    let all: Vec<(i32, i64)> = (0..PARTITIONS as i32).map(|index| (index, 0)).collect();
    let again = Again::of(&stage.cast, &all);
    let done = json(stage, &execute)?;
    all_go_to_the_start(&done)?;
    let undo = ["groups", "rewind", GROUP, "--undo", "--execute"];
    fails(stage, &undo, "remembers no rewind")?;
    let member = stage.join(agent)?;
    again.until_delivered(&mut stage.cast)?;
    stage.until_settled(1)?;
    again.exactly(&stage.cast)?;
    stage.cast.close(member)?;
    Ok(again.count())
}

fn all_go_to_the_start(rows: &Value) -> Result<(), Failure> {
    let new = rows.as_array().into_iter().flatten();
    let new: Vec<_> = new.map(|row| row["new_offset"].as_i64()).collect();
    if new == [Some(0); PARTITIONS] {
        Ok(())
    } else {
        Err(Failure::new(format!("not to the start: {rows}")))
    }
}

/// The program fails, and says why.
fn fails(stage: &Stage<'_>, arguments: &[&str], why: &str) -> Result<(), Failure> {
    let command = program(stage, arguments);
    match Process::complete(command, arguments[1], stage.run.logs(), COMMAND_LIMIT) {
        Err(failure) if failure.to_string().contains(why) => Ok(()),
        Err(failure) => Err(failure),
        Ok(_) => Err(Failure::new(format!("{arguments:?} did not fail"))),
    }
}
