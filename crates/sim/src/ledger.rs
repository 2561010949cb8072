//! What the applications of each group have processed.

use std::collections::BTreeMap;

use kohort_group::coordinator::{Id, inspect::Place};

/// What the applications of each group have processed, whoever of them it was.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Up to which offset every record has been processed.
    done: BTreeMap<(Id, Place), i64>,
    /// How many records have been processed, those more than once included.
    pub(crate) processed: u64,
}

impl Ledger {
    /// Somebody has processed the records from `from` up to, and without, `to`.
    pub(crate) fn process(&mut self, group: &Id, place: Place, from: i64, to: i64) {
        self.processed += (to - from) as u64;
        let done = self.done.entry((group.clone(), place)).or_default();
        if from <= *done {
            *done = to.max(*done);
        }
    }

    /// Up to which offset every record has been processed.
    pub(crate) fn done(&self, group: &Id, place: Place) -> i64 {
        let done = self.done.get(&(group.clone(), place));
        done.copied().unwrap_or_default()
    }
}
