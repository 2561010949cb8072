//! A rewind happens as a whole or not at all, and two are never mixed.
//!
//! Whoever asks for several partitions wants them to fit together, and a coordinator may be lost at
//! any moment. What one step decides is in the log as one batch, which is there as a whole or not at
//! all; so a step that ends a rewind has to hold all of it: each new offset, what was committed
//! before (for an undo), and the end. A rewind that is given up, which it is only when a topic is
//! gone or somebody asks for that, changes no offset. No other begins while one is under way. And who
//! is told that it has happened is told so when it has.

use std::collections::{BTreeMap, BTreeSet};

use kohort_coordinator::{
    Record, Reply, Request,
    inspect::{Goals, GroupState},
};
use kohort_group::Id;
use kohort_wire::messages::OffsetCommitResponse;

use super::{Happened, Invariant, Step};
use crate::{coordinator::Origin, eras::wish, world::World};

pub(super) struct RewindWhole;

impl Invariant for RewindWhole {
    fn name(&self) -> &'static str {
        "a rewind happens as a whole or not at all"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        if let Happened::Answers(answers) = happened {
            return answered(world, answers);
        }
        let Some(step) = happened.step() else {
            return Ok(());
        };
        let is_concerned =
            |record: &Record| matches!(record, Record::Rewind(..) | Record::Rewound(..));
        if !step.records.iter().any(|r| is_concerned(r) || is_wished(r)) {
            return Ok(());
        }
        decided(world, &step, is_cancel(happened))
    }
}

/// Whether an offset is committed that an administrator has asked for.
fn is_wished(record: &Record) -> bool {
    matches!(record, Record::OffsetCommit(_, Some(value)) if wish(&value.metadata).is_some())
}

/// What a step has done to the rewind of a group.
#[derive(Default)]
struct Account<'a> {
    under_way: Option<Goals>,
    /// The offsets that it has committed or, if there are none, deleted.
    written: BTreeMap<(Id, i32), Option<i64>>,
    /// What others have committed in the same step, and before.
    committed: BTreeMap<(Id, i32), i64>,
    /// Those among them that an administrator has asked for.
    wished: BTreeSet<(Id, i32)>,
    happened: Option<&'a Record>,
}

/// Whether somebody asks for the end of the rewind.
fn is_cancel(happened: &Happened<'_>) -> bool {
    let Happened::Decided {
        request: Request::OffsetCommit { request, .. },
        ..
    } = happened
    else {
        return false;
    };
    let mut partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.any(|partition| {
        let metadata = partition.committed_metadata.as_deref().unwrap_or_default();
        metadata.ends_with(" cancel")
    })
}

fn decided(world: &World, step: &Step<'_>, is_cancelled: bool) -> Result<(), String> {
    let mut accounts: BTreeMap<Id, Account<'_>> = BTreeMap::new();
    for (id, group) in step.before {
        let under_way = group.rewind.as_ref().map(|(goals, _)| goals.clone());
        let account = Account {
            under_way,
            ..Account::default()
        };
        accounts.insert(id.clone(), account);
    }
    for record in step.records {
        match record {
            Record::OffsetCommit(key, value) => {
                let account = accounts.entry(Id::from(&*key.group)).or_default();
                let place = (Id::from(&*key.topic), key.partition);
                let offset = value.as_ref().map(|value| value.offset);
                if is_wished(record) {
                    account.wished.insert(place.clone());
                } else if let Some(offset) = offset {
                    account.committed.insert(place.clone(), offset);
                }
                account.written.insert(place, offset);
            }
            Record::Rewind(key, Some(value)) => {
                let id = Id::from(&*key.group_id);
                let account = accounts.entry(id.clone()).or_default();
                let topics = value.topics.iter();
                let goals = topics.flat_map(|topic| {
                    let name = Id::from(&*topic.name);
                    let partitions = topic.partitions.iter();
                    partitions.map(move |p| ((name.clone(), p.partition_index), p.offset))
                });
                if account.under_way.replace(goals.collect()).is_some() {
                    return Err(format!("group {id} has two rewinds under way"));
                }
            }
            Record::Rewound(key, Some(_)) => {
                let account = accounts.entry(Id::from(&*key.group_id)).or_default();
                account.happened = Some(record);
            }
            Record::Rewind(key, None) => {
                let id = Id::from(&*key.group_id);
                let account = accounts.remove(&id).unwrap_or_default();
                ended(world, step.before.get(&id), &id, account, is_cancelled)?;
            }
            _ => {}
        }
    }
    for (id, account) in accounts {
        if !account.wished.is_empty() || account.happened.is_some() {
            return Err(format!(
                "group {id}: {:?} are written of a rewind that has not ended",
                account.written
            ));
        }
    }
    Ok(())
}

fn ended(
    world: &World,
    before: Option<&GroupState>,
    id: &Id,
    account: Account<'_>,
    is_cancelled: bool,
) -> Result<(), String> {
    let goals = account.under_way.unwrap_or_default();
    let Some(Record::Rewound(_, Some(value))) = account.happened else {
        let view = &world.coordinator.view;
        // It was of the topic that had the name when it was asked for: the record has its id.
        let is_there = |topic: &str| {
            let gone = before.is_some_and(|before| is_of_another(before, topic, world));
            view.get(topic).is_some() && !gone
        };
        let is_gone = goals.keys().any(|(topic, _)| !is_there(topic));
        let has_group = world.coordinator.live.contains_key(id);
        return if !account.wished.is_empty() || !is_gone && has_group && !is_cancelled {
            Err(format!("the rewind of group {id} to {goals:?} has ended"))
        } else {
            Ok(())
        };
    };
    let committed = |place: &(Id, i32)| {
        let committed = before.and_then(|before| before.offsets.get(place));
        let committed = committed.map(|committed| committed.offset);
        let since = account.committed.get(place).copied();
        since.or(committed).unwrap_or(-1)
    };
    let mut to = Goals::new();
    for topic in &value.topics {
        for partition in &topic.partitions {
            let place = (Id::from(&*topic.name), partition.partition_index);
            // One to where the last one went leaves what an undo goes back to.
            let is_there = partition.to == committed(&place);
            if partition.offset != committed(&place) && !is_there {
                return Err(format!(
                    "group {id}: {} was committed for {place:?}, and {} is kept for an undo",
                    committed(&place),
                    partition.offset
                ));
            }
            to.insert(place, partition.to);
        }
    }
    let is_all_written = goals.iter().all(|(place, to)| match to {
        0.. => account.written.get(place) == Some(&Some(*to)),
        _ => account.written.get(place) == Some(&None) || committed(place) < 0,
    });
    let only_goals = account.wished.iter().all(|place| goals.contains_key(place));
    if to == goals && is_all_written && only_goals {
        Ok(())
    } else {
        Err(format!(
            "group {id} was to be rewound to {goals:?}, is said to be at {to:?}, and written is {:?}",
            account.written
        ))
    }
}

/// Whether the topic of the rewind is another one than that which has its name now.
fn is_of_another(group: &GroupState, topic: &str, world: &World) -> bool {
    let Some(known) = world.coordinator.view.get(topic) else {
        return true;
    };
    group
        .rewind
        .as_ref()
        .is_some_and(|(_, record)| !record.contains(&format!("{:?}", known.id)))
}

fn answered(world: &World, answers: &[(Origin, Reply)]) -> Result<(), String> {
    for (origin, reply) in answers {
        if let (Origin::Administrator { number }, Reply::OffsetCommit(answer)) = (origin, reply)
            && is_good(answer)
            && !world.eras.has_happened(*number)
            && !world.is_done(*number)
        {
            return Err(format!("it is said that wish {number} has come true"));
        }
    }
    Ok(())
}

fn is_good(answer: &OffsetCommitResponse) -> bool {
    let mut partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.all(|partition| !partition.error_code.is_error())
}
