//! Every record is processed at least once: nobody begins behind a record that has not been, and no
//! offset is committed past what has been processed (KAFKA-18641, platformatic/kafka #267, kop #1289).
//!
//! Applications begin a partition at its committed offset or, if there is none, where their clients
//! say: at its first record, or at its end.
//! So if a commit is lost, goes back, or is of another topic of the same name, it shows here: as a
//! beginning behind what has been processed, or as an offset of records that nobody has seen.
//!
//! A rewind says what counts as processed: everything before the new offset, and nothing from there
//! on. So after it the same is asked of what is processed anew (`ledger.rs`).
//!
//! One thing the protocol cannot tell: a commit by topic name (before version 10) that was meant for
//! a topic that has been deleted, and that comes when there is another of the same name. Where that
//! has happened, the topic is looked at no more.

use kohort_group::Id;

use super::{Happened, Invariant};
use crate::world::World;

pub(super) struct NoRecordSkipped;

impl Invariant for NoRecordSkipped {
    fn name(&self) -> &'static str {
        "no record is skipped"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        match happened {
            Happened::Begins {
                node,
                place,
                era,
                offset,
                finds_nothing,
                is_committed,
                ..
            } => {
                let node_id = *node;
                let node = &world.nodes[node_id];
                let account = world.ledger.account(&node.role.group, *place);
                let done = world.done(&node.role.group, *place);
                let name = world.cluster.name(place.0);
                let is_confused = name.is_some_and(|name| world.confused.contains(name));
                // Who begins in an earlier era has been put out, and does not count any more.
                if *era != account.era || is_confused {
                    return Ok(());
                }
                let is_gone = world.cluster.by_id(place.0).is_none();
                if *finds_nothing && *is_committed && !is_gone {
                    return Err(format!(
                        "{} is told that nothing is committed for {place:?}",
                        node.name(node_id)
                    ));
                }
                // Whose client begins at the end means to skip what there is.
                let skips = *finds_nothing && world.profile.resets_to_latest;
                if *offset > done && !skips {
                    return Err(format!(
                        "{} begins {place:?} at {offset}, and only records before {done} have been processed",
                        node.name(node_id)
                    ));
                }
            }
            Happened::Answers(_) => {
                let durable = world.coordinator.standby.durable();
                for (group, state) in durable {
                    committed(world, group, state)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn committed(
    world: &World,
    group: &Id,
    state: &kohort_coordinator::inspect::GroupState,
) -> Result<(), String> {
    for ((topic, partition), offset) in &state.offsets {
        let Some(known) = world.cluster.get(topic) else {
            continue;
        };
        // What was committed for a topic that was deleted may be there for a while.
        if !offset.topic_id.is_zero() && offset.topic_id != known.id {
            continue;
        }
        if world.confused.contains(&**topic) {
            continue;
        }
        let done = world.done(group, (known.id, *partition));
        if offset.offset > done {
            return Err(format!(
                "group {group} has committed {} for {topic}-{partition}, and only records before {done} have been processed",
                offset.offset
            ));
        }
    }
    Ok(())
}
