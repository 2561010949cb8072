//! No commit undoes a rewind.
//!
//! Once the new offset is in force, it moves only by the word of whoever began there: an application
//! that began the partition before the rewind commits what it did with other records, and would take
//! the group back to where it was, or past what is to be read again. Such a commit may have been
//! under way for long, and its sender may be a member at its epoch. So applications commit, along
//! with each offset, in which era between two rewinds they began the partition, and no commit of an
//! earlier era may be accepted. Nothing else may move the offset either, but another rewind (for when
//! it may go altogether see `offsets_kept`).

use kohort_coordinator::Record;
use kohort_group::Id;

use super::{Happened, Invariant};
use crate::{eras::era_of, world::World};

pub(super) struct RewindStands;

impl Invariant for RewindStands {
    fn name(&self) -> &'static str {
        "no commit undoes a rewind"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        let Some(step) = happened.step() else {
            return Ok(());
        };
        for record in step.records {
            let Record::OffsetCommit(key, Some(value)) = record else {
                continue;
            };
            let group = Id::from(&*key.group);
            if world.confused.contains(&key.topic) {
                continue;
            }
            let place = (value.topic_id, key.partition);
            let era = world.eras.live(&group, place);
            match era_of(&value.metadata) {
                Some(own) if own != era => {
                    return Err(format!(
                        "{}-{} of group {group} is in era {era}, and {} is committed by somebody who began it in era {own}",
                        key.topic, key.partition, value.offset
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
