//! Every record is processed at least once: nobody begins behind a record that has not been, and no
//! offset is committed past what has been processed (M5, M13, X8).
//!
//! Applications begin a partition at its committed offset, or at its first record if there is none.
//! So if a commit is lost, goes back, or is of another topic of the same name, it shows here: as a
//! beginning behind what has been processed, or as an offset of records that nobody has seen.
//!
//! One thing the protocol cannot tell: a commit by topic name (before version 10) that was meant for
//! a topic that has been deleted, and that comes when there is another of the same name. Where that
//! has happened, the topic is looked at no more.

use kohort_group::coordinator::Id;

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
                offset,
            } => {
                let node_id = *node;
                let node = &world.nodes[node_id];
                let done = world.ledger.done(&node.role.group, *place);
                let name = world.cluster.name(place.0);
                let is_confused = name.is_some_and(|name| world.confused.contains(name));
                if *offset > done && !is_confused {
                    return Err(format!(
                        "{} begins {place:?} at {offset}, and only records before {done} have been processed",
                        node.name(node_id)
                    ));
                }
            }
            Happened::Answers(_) => {
                let durable = world.coordinator.standby.durable();
                for (group, state) in &durable {
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
    state: &kohort_group::coordinator::inspect::GroupState,
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
        let done = world.ledger.done(group, (known.id, *partition));
        if offset.offset > done {
            return Err(format!(
                "group {group} has committed {} for {topic}-{partition}, and only records before {done} have been processed",
                offset.offset
            ));
        }
    }
    Ok(())
}
