//! How often consumer groups may send heartbeats, all shards together.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering},
};

use kohort_coordinator::{Load, Pace};
use parking_lot::Mutex;

/// The pace that fits the load of all shards.
#[derive(Debug)]
pub(super) struct Pacing {
    loads: Mutex<BTreeMap<i32, Load>>,
    pace: AtomicU32,
}

impl Pacing {
    pub(super) fn new() -> Pacing {
        Pacing {
            loads: Mutex::new(BTreeMap::new()),
            pace: AtomicU32::new(Pace::FREE.number()),
        }
    }

    /// The pace for now: to be asked for often.
    pub(super) fn pace(&self) -> Pace {
        Pace::from_number(self.pace.load(Ordering::Relaxed))
    }

    /// Takes a shard's load, or that it has none any more.
    pub(super) fn report(&self, shard: i32, load: Load, per_second: u32) {
        let mut loads = self.loads.lock();
        if load == Load::default() {
            loads.remove(&shard)
        } else {
            loads.insert(shard, load)
        };
        let mut all = Load::default();
        for load in loads.values() {
            all.add(load);
        }
        let pace = self.pace().adapt(&all, per_second);
        self.pace.store(pace.number(), Ordering::Relaxed);
    }
}
