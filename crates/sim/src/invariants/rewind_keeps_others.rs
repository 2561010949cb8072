//! What is not named by a rewind keeps its committed offset.
//!
//! A rewind of one partition that moved the offset of another would have records skipped or read
//! again that nobody asked for. (That the owners of what is not named keep their positions is seen
//! by `rewind_interrupts_nobody` and `no_record_skipped`.)

use std::collections::BTreeSet;

use kohort_group::Id;

use super::{Happened, Invariant};
use crate::{eras::rewound, world::World};

pub(super) struct RewindKeepsOthers;

impl Invariant for RewindKeepsOthers {
    fn name(&self) -> &'static str {
        "what is not named by a rewind keeps its offset"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        let Some(step) = happened.step() else {
            return Ok(());
        };
        let rewound: Vec<_> = step.records.iter().flat_map(rewound).collect();
        let groups: BTreeSet<&Id> = rewound.iter().map(|rewound| &rewound.group).collect();
        for group in groups {
            let (Some(before), Some(after)) =
                (step.before.get(group), world.coordinator.live.get(group))
            else {
                continue;
            };
            for ((topic, partition), committed) in &before.offsets {
                let place = (committed.topic_id, *partition);
                let is_named = rewound
                    .iter()
                    .any(|r| r.group == *group && r.place == place);
                // What was committed for another topic of the name goes with it.
                let is_there = world.coordinator.view.by_id(place.0).is_some();
                let now = after.offsets.get(&(topic.clone(), *partition));
                // It may have expired in the same step: see `offsets_kept`.
                let Some(now) = now else { continue };
                if !is_named && is_there && now != committed {
                    return Err(format!(
                        "{topic}-{partition} of group {group} was at {}, and is at {}",
                        committed.offset, now.offset
                    ));
                }
            }
        }
        Ok(())
    }
}
