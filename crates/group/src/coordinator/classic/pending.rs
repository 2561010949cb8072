//! Ids that were given out, and whose members have not come back with them yet.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::coordinator::{Id, Millis, alarm::Deadline};

/// How many ids a group may have given out to members that have not come back with them. Past that
/// the oldest is forgotten.
const PENDING_MEMBERS_MAX: usize = 10_000;

/// Ids that were given out, and by when their members have to come back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending {
    deadlines: HashMap<Id, Deadline>,
    /// The order in which they were given out; ids that have come back are dropped in passing.
    order: VecDeque<Id>,
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        self.deadlines.is_empty()
    }

    /// Every id with the time that is left to come back with it.
    pub(crate) fn inspect(&self, now: Millis) -> BTreeMap<Id, Option<Millis>> {
        let ids = self.deadlines.iter();
        ids.map(|(id, deadline)| (id.clone(), deadline.left(now)))
            .collect()
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.deadlines.contains_key(id)
    }

    /// The ids, in no particular order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &Id> {
        self.deadlines.keys()
    }

    pub(crate) fn deadline_mut(&mut self, id: &str) -> Option<&mut Deadline> {
        self.deadlines.get_mut(id)
    }

    /// Remembers an id, and forgets the oldest if there are too many.
    pub(crate) fn insert(&mut self, id: Id, deadline: Deadline) {
        if self.order.len() >= 2 * PENDING_MEMBERS_MAX {
            self.order.retain(|id| self.deadlines.contains_key(id));
        }
        while self.deadlines.len() >= PENDING_MEMBERS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.deadlines.remove(&oldest);
        }
        self.order.push_back(id.clone());
        self.deadlines.insert(id, deadline);
    }

    /// Forgets an id. `false`: it was not remembered.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        let removed = self.deadlines.remove(id).is_some();
        while self
            .order
            .front()
            .is_some_and(|id| !self.deadlines.contains_key(id))
        {
            self.order.pop_front();
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_when_there_are_too_many() {
        let mut pending = Pending::default();
        for index in 0..3 * PENDING_MEMBERS_MAX {
            pending.insert(index.to_string().into(), Deadline::default());
            assert!(pending.order.len() <= 2 * PENDING_MEMBERS_MAX);
        }
        assert_eq!(pending.deadlines.len(), PENDING_MEMBERS_MAX);
        assert!(!pending.contains("0"));
        let last = (3 * PENDING_MEMBERS_MAX - 1).to_string();
        assert!(pending.remove(&last));
        assert!(!pending.remove(&last));
    }
}
