//! A target has every partition once (KAFKA-19431, KAFKA-18688).
//!
//! What members are meant to own is what they will own. No partition may be in two targets, none
//! may go to a member that is not there, and a member that is stable owns what it is meant to.

use std::collections::BTreeMap;

use kohort_coordinator::inspect::{ConsumerGroupState, MembersState};

use super::{Happened, Invariant};
use crate::world::World;

pub(super) struct Targets;

impl Invariant for Targets {
    fn name(&self) -> &'static str {
        "a target has every partition once"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        match happened {
            Happened::Decided { .. } | Happened::Acted { .. } | Happened::Loaded { .. } => {}
            _ => return Ok(()),
        }
        for (id, group) in &world.coordinator.live {
            if let MembersState::Consumer(group) = &group.members {
                target(id, group)?;
            }
        }
        Ok(())
    }
}

fn target(id: &str, group: &ConsumerGroupState) -> Result<(), String> {
    let mut owners = BTreeMap::new();
    for (member_id, target) in &group.targets {
        if !group.members.contains_key(member_id) {
            return Err(format!(
                "group {id}: the target of {member_id}, who is no member"
            ));
        }
        for place in target {
            if let Some(other) = owners.insert(place, member_id) {
                return Err(format!(
                    "group {id}: {place:?} is meant for {other} and {member_id}"
                ));
            }
        }
    }
    for (instance_id, member_id) in &group.instances {
        let holder = group.members.get(member_id);
        if holder.is_none_or(|holder| holder.instance_id.as_ref() != Some(instance_id)) {
            return Err(format!(
                "group {id}: instance {instance_id} is with {member_id}, who does not hold it"
            ));
        }
    }
    Ok(())
}
