//! Nobody holds up a group for longer than its time.
//!
//! An owner that never lets go is put out after its rebalance timeout, whether its partitions are to
//! go to another or to be rewound; one that is dead, after its session. So a revocation ends within
//! the rebalance timeout. A rewind ends within a session and two rebalance timeouts: an owner that is
//! letting go of something else is told to let go of what is rewound only after that. A coordinator
//! that takes over gives everybody their time anew.

use std::collections::BTreeMap;

use kohort_coordinator::inspect::{GroupState, MembersState, Place};
use kohort_group::Id;
use kohort_member::Millis;

use super::{Happened, Invariant};
use crate::world::World;

/// The longest rebalance timeout of a member (`adversary.rs`).
pub(crate) const REBALANCE_TIMEOUT_MAX_MS: Millis = 20_000;

/// The longest session of a classic member.
const CLASSIC_SESSION_MAX_MS: Millis = 10_000;

/// What a coordinator may be late: it takes nothing while it writes.
const SLACK_MS: Millis = 2_000;

/// What takes its time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    Revocation(Id, Id, Place),
    Rewind(Id),
}

#[derive(Default)]
pub(super) struct Limits {
    /// Since when, and what exactly: of another one the time begins anew.
    since: BTreeMap<Wait, (Millis, String)>,
}

impl Invariant for Limits {
    fn name(&self) -> &'static str {
        "nobody holds up a group for longer than its time"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        if happened.step().is_none() {
            return Ok(());
        }
        let coordinator = &world.coordinator;
        let mut waits = BTreeMap::new();
        for (id, group) in &coordinator.live {
            revocations(world, id, group, &mut waits);
            if let Some((_, record)) = &group.rewind {
                let is_classic = matches!(group.members, MembersState::Classic(_));
                let what = format!("{} {is_classic} {record}", coordinator.life);
                let limit = rewind_ms(world);
                waits.insert(Wait::Rewind(id.clone()), (limit, what));
            }
        }
        self.since.retain(|wait, (_, what)| {
            let now = waits.get(wait);
            now.is_some_and(|(_, now)| now == what)
        });
        for (wait, (limit, what)) in waits {
            let (since, _) = self.since.entry(wait.clone()).or_insert((world.now, what));
            let waited = world.now - *since;
            if waited > limit + SLACK_MS {
                return Err(format!("{wait:?} takes {waited} ms, and may take {limit}"));
            }
        }
        Ok(())
    }
}

fn revocations(
    world: &World,
    id: &Id,
    group: &GroupState,
    waits: &mut BTreeMap<Wait, (Millis, String)>,
) {
    let MembersState::Consumer(state) = &group.members else {
        return;
    };
    for (member_id, member) in &state.members {
        // One that has left for a while lets go when it comes back, or its session ends.
        if member.is_classic || member.epoch < 0 {
            continue;
        }
        let nodes = world.nodes.iter();
        let mut nodes = nodes.filter(|node| *node.own_id == **member_id);
        let limit = nodes.next().map(|node| node.role.rebalance_timeout_ms);
        let limit = limit.map_or(REBALANCE_TIMEOUT_MAX_MS, i64::from);
        for place in member.revoking.keys() {
            let wait = Wait::Revocation(id.clone(), member_id.clone(), *place);
            // Whose subscription changes is asked anew.
            let what = format!(
                "{} {} {:?}",
                world.coordinator.life, member.epoch, member.profile
            );
            waits.insert(wait, (limit, what));
        }
    }
}

fn rewind_ms(world: &World) -> Millis {
    let session = Millis::from(world.profile.config.consumer_session_timeout_ms);
    session.max(CLASSIC_SESSION_MAX_MS) + 2 * REBALANCE_TIMEOUT_MAX_MS
}
