//! Whoever begins a partition after a rewind begins where it went.
//!
//! That is what a rewind is for: the first record that the new owner delivers is the one at the new
//! offset. Those who begin after it begin at what has been committed since, which is not before the
//! new offset, and not behind a record that has not been processed again (`no_record_skipped`). An
//! application that was told where to begin before the rewind, and hears of it after, has been put
//! out; what it does counts for nothing (`rewind_stands` sees to its commits).

use super::{Happened, Invariant};
use crate::world::World;

pub(super) struct RewindBegins;

impl Invariant for RewindBegins {
    fn name(&self) -> &'static str {
        "whoever begins after a rewind begins where it went"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        let Happened::Begins {
            node,
            place,
            era,
            offset,
            ..
        } = *happened
        else {
            return Ok(());
        };
        let it = &world.nodes[node];
        let account = world.ledger.account(&it.role.group, place);
        let name = world.cluster.name(place.0);
        // Nobody can read what is gone.
        let is_gone = world.cluster.by_id(place.0).is_none();
        if is_gone || name.is_some_and(|name| world.confused.contains(name)) {
            return Ok(());
        }
        if era > account.era {
            return Err(format!(
                "{} begins {place:?} after a rewind that is not durable",
                it.name(node)
            ));
        }
        if era == account.era && offset < account.begins_at {
            Err(format!(
                "{} begins {place:?} at {offset}, and it was rewound to {}",
                it.name(node),
                account.begins_at
            ))
        } else {
            Ok(())
        }
    }
}
