//! What a rewind has delivered again.

use std::collections::{BTreeMap, BTreeSet};

use super::super::cast::Cast;
use super::super::stage::GROUP_LIMIT;
use crate::failure::Failure;

/// What is to be delivered again: begun just before a rewind is asked for, when everything that
/// there is has been delivered and committed.
pub(super) struct Again {
    goals: Vec<(i32, i64)>,
    expected: BTreeMap<i32, Vec<i64>>,
    begun: usize,
}

impl Again {
    pub(super) fn of(cast: &Cast, goals: &[(i32, i64)]) -> Self {
        let mut ends: BTreeMap<i32, i64> = BTreeMap::new();
        for &(_, partition, offset) in &cast.delivered {
            let end = ends.entry(partition).or_default();
            *end = (*end).max(offset + 1);
        }
        let expected = goals.iter().map(|&(partition, to)| {
            let end = ends.get(&partition).copied().unwrap_or_default();
            (partition, (to..end).collect())
        });
        Self {
            goals: goals.to_vec(),
            expected: expected.collect(),
            begun: cast.delivered.len(),
        }
    }

    /// How many records.
    pub(super) fn count(&self) -> usize {
        self.expected.values().map(Vec::len).sum()
    }

    /// What has been delivered since, and to whom.
    pub(super) fn delivered<'a>(&self, cast: &'a Cast) -> &'a [(usize, i32, i64)] {
        &cast.delivered[self.begun..]
    }

    /// Waits until all of it has been delivered once more.
    pub(super) fn until_delivered(&self, cast: &mut Cast) -> Result<(), Failure> {
        let expected = self.expected.iter();
        let expected: BTreeSet<(i32, i64)> = expected
            .flat_map(|(&partition, offsets)| offsets.iter().map(move |&it| (partition, it)))
            .collect();
        let what = format!("{} records again from {:?}", self.count(), self.goals);
        cast.until(&what, GROUP_LIMIT, |cast| {
            let delivered = self.delivered(cast).iter();
            let delivered: BTreeSet<_> = delivered.map(|&(_, p, offset)| (p, offset)).collect();
            Ok(expected.is_subset(&delivered))
        })
    }

    /// It was delivered once, in order, and nothing else was.
    pub(super) fn exactly(&self, cast: &Cast) -> Result<(), Failure> {
        match self.by_partition(cast) {
            delivered if delivered == self.expected => Ok(()),
            delivered => Err(self.wrong(&delivered)),
        }
    }

    /// It was delivered, beginning at the new offsets, and nothing else was. Some of it may have come
    /// again: what was not committed when the broker was killed.
    pub(super) fn at_least(&self, cast: &Cast) -> Result<(), Failure> {
        let delivered = self.by_partition(cast);
        let is_right = |(partition, offsets): (&i32, &Vec<i64>)| {
            let expected = self.expected.get(partition);
            expected.is_some_and(|expected| {
                let all: BTreeSet<_> = offsets.iter().collect();
                offsets.first() == expected.first() && all.into_iter().eq(expected)
            })
        };
        if delivered.len() == self.expected.len() && delivered.iter().all(is_right) {
            Ok(())
        } else {
            Err(self.wrong(&delivered))
        }
    }

    fn by_partition(&self, cast: &Cast) -> BTreeMap<i32, Vec<i64>> {
        let mut delivered: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
        for &(_, partition, offset) in self.delivered(cast) {
            delivered.entry(partition).or_default().push(offset);
        }
        delivered
    }

    fn wrong(&self, delivered: &BTreeMap<i32, Vec<i64>>) -> Failure {
        Failure::new(format!(
            "after a rewind to {:?} was delivered {delivered:?}",
            self.goals
        ))
    }
}
