//! Replayed state equals live state.
//!
//! A coordinator that takes over knows nothing but the log. Whatever the live one knows beyond it is
//! lost with it, and whatever it acts upon that the log does not say makes the next one act
//! differently. So after every step a second shard, which is fed with nothing but the encoded
//! records, must hold the same durable state: members, epochs, targets, who owns what, offsets, and
//! the counts that are derived from them. Soft state is not compared (sessions, parked requests, a
//! classic rebalance that is under way): members rebuild it.

use std::collections::BTreeSet;

use kohort_coordinator::inspect::{GroupState, MembersState};

use super::{Happened, Invariant};
use crate::{coordinator::Durable, world::World};

#[derive(Default)]
pub(super) struct Replay {
    steps: u64,
}

/// How often the whole log is loaded as well, whole and compacted.
const FULL_EVERY: u64 = 400;

impl Invariant for Replay {
    fn name(&self) -> &'static str {
        "replayed state equals live state"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        match happened {
            Happened::Decided { .. } | Happened::Acted { .. } | Happened::Loaded { .. } => {}
            _ => return Ok(()),
        }
        let coordinator = &world.coordinator;
        compare(&coordinator.live, coordinator.mirror.durable())?;
        self.steps += 1;
        let is_written = coordinator.out.records.is_empty() && coordinator.appending.is_none();
        if is_written && self.steps.is_multiple_of(FULL_EVERY)
            || matches!(happened, Happened::Loaded { .. })
        {
            let topics = world.cluster.snapshot();
            let loaded = coordinator.replay(topics, [0; 32])?;
            compare(coordinator.standby.durable(), &loaded.durable())?;
        }
        Ok(())
    }
}

fn compare(live: &Durable, loaded: &Durable) -> Result<(), String> {
    let ids: BTreeSet<_> = live.keys().chain(loaded.keys()).collect();
    for id in ids {
        match (live.get(id), loaded.get(id)) {
            (Some(group), Some(other)) if !same(group, other) => {
                return Err(format!(
                    "group {id} differs\nlive:   {}\nloaded: {}",
                    difference(group, other),
                    difference(other, group)
                ));
            }
            (Some(group), None) if is_written(group) => {
                return Err(format!("group {id} is not in the log: {group:#?}"));
            }
            (None, Some(other)) if is_written(other) => {
                return Err(format!("the log has a group {id} that is no more"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether any record tells of the group.
fn is_written(group: &GroupState) -> bool {
    let is_unwritten = match &group.members {
        MembersState::Classic(classic) => classic.record.as_ref().is_none_or(|r| r.is_empty()),
        MembersState::Consumer(_) => false,
    };
    !is_unwritten || !group.offsets.is_empty() || group.rewind.is_some()
}

fn same(live: &GroupState, loaded: &GroupState) -> bool {
    // Every field is named, so that a new one is not left out.
    let GroupState {
        members,
        offsets,
        rewind,
        rewound,
        seen,
    } = live;
    if (offsets, rewind, rewound, seen)
        != (
            &loaded.offsets,
            &loaded.rewind,
            &loaded.rewound,
            &loaded.seen,
        )
    {
        return false;
    }
    match (members, &loaded.members) {
        (MembersState::Consumer(live), MembersState::Consumer(loaded)) => live == loaded,
        // While it rebalances it has moved on from its last record.
        (MembersState::Classic(live), MembersState::Classic(_)) if live.record.is_none() => true,
        (MembersState::Classic(live), MembersState::Classic(loaded)) => live == loaded,
        _ => false,
    }
}

/// The lines of one that the other has not.
fn difference(one: &GroupState, other: &GroupState) -> String {
    let (one, other) = (format!("{one:#?}"), format!("{other:#?}"));
    let others: BTreeSet<&str> = other.lines().collect();
    let lines = one.lines().filter(|line| !others.contains(line));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}
