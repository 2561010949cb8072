//! A commit that is sent again does not undo a later one that has succeeded: the offset that an
//! application was told is committed does not go back while it owns the partition.

use kohort_coordinator::Record;

use super::{Happened, Invariant};
use crate::{coordinator::Origin, eras::era_of, world::World};

pub(super) struct CommitOrder;

impl Invariant for CommitOrder {
    fn name(&self) -> &'static str {
        "commits count in the order in which they were begun"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        let Happened::Decided {
            // What comes late from a connection that was given up can be in any order.
            origin:
                Origin::Node {
                    node,
                    is_ghost: false,
                    ..
                },
            records,
            ..
        } = happened
        else {
            return Ok(());
        };
        for record in *records {
            let Record::OffsetCommit(key, Some(value)) = record else {
                continue;
            };
            let name = (key.topic.clone(), key.partition);
            let Some(held) = world.nodes[*node].partitions.get(&name) else {
                continue;
            };
            // A commit by name that was meant for another topic of the name (see `NoRecordSkipped`).
            let is_confused = world.confused.contains(&*key.topic);
            let is_same = era_of(&value.metadata) == Some(held.era) && held.reads == value.topic_id;
            if is_same && !is_confused && value.offset < held.reported {
                let (name, before) = (world.nodes[*node].name(*node), held.reported);
                return Err(format!(
                    "{name} commits {} of {}-{} after {before}",
                    value.offset, key.topic, key.partition
                ));
            }
        }
        Ok(())
    }
}
