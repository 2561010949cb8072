//! No commit undoes a rewind.
//!
//! Once the new offset is in force, it moves only by the word of whoever began there: an application
//! that began the partition before the rewind commits what it did with other records, and would take
//! the group back to where it was, or past what is to be read again. Such a commit may have been
//! under way for long, and its sender may be a member at its epoch. So applications commit, along
//! with each offset, in which era between two rewinds they began the partition, and no commit of an
//! earlier era may be accepted. Nothing else may move the offset either, but another rewind; and it
//! goes only with its topic or its group.

use kohort_group::coordinator::{Id, Record};

use super::{Happened, Invariant, Step};
use crate::{
    eras::{era_of, rewound},
    world::World,
};

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
            let Record::OffsetCommit(key, value) = record else {
                continue;
            };
            let group = Id::from(&*key.group);
            if world.confused.contains(&key.topic) {
                continue;
            }
            match value {
                Some(value) => {
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
                None => deleted(world, &step, &group, (&key.topic, key.partition))?,
            }
        }
        Ok(())
    }
}

/// An offset goes only with its topic or its group, or because it was rewound to where there is none.
fn deleted(
    world: &World,
    step: &Step<'_>,
    group: &Id,
    (topic, partition): (&str, i32),
) -> Result<(), String> {
    let key = (Id::from(topic), partition);
    let before = step.before.get(group);
    let Some(committed) = before.and_then(|before| before.offsets.get(&key)) else {
        return Ok(());
    };
    let view = &world.coordinator.view;
    let is_there = view
        .get(topic)
        .is_some_and(|known| known.id == committed.topic_id);
    let place = (committed.topic_id, partition);
    let is_rewound = step
        .records
        .iter()
        .flat_map(rewound)
        .any(|rewound| rewound.group == *group && rewound.place == place && rewound.to < 0);
    let has_group = world.coordinator.live.contains_key(group);
    match is_there && has_group && !is_rewound {
        true => Err(format!(
            "the offset of {topic}-{partition} of group {group} is deleted"
        )),
        false => Ok(()),
    }
}
