//! How often the members of consumer groups send heartbeats.
//!
//! A member learns of a rebalance with its next heartbeat, so the interval is what a rebalance costs.
//! Each answer names the interval until the next one, which lets the coordinator choose it: as short
//! as the load allows, and the same for long, since Java clients log each change.
//!
//! What the broker can bear is shared among groups, not members: a small group is never slow because
//! another is huge. So one number is enough, the [`Pace`]: how many heartbeats per minute one group
//! may ask for.

use std::collections::BTreeMap;

/// What the members of consumer groups send: how many groups there are of each kind. Groups of one
/// size, and of the same intervals, are one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Load {
    groups: BTreeMap<Demand, u64>,
}

/// How many heartbeats per minute a group sends at its longest interval, and at its shortest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Demand {
    least: u64,
    most: u64,
}

impl Load {
    /// Counts a group of so many members, which may be told these intervals.
    pub fn add_group(&mut self, members: usize, bounds: Bounds) {
        if members > 0 {
            let per_minute = |interval_ms: i32| members as u64 * 60_000 / interval_ms as u64;
            let demand = Demand {
                least: per_minute(bounds.longest_ms),
                most: per_minute(bounds.shortest_ms),
            };
            *self.groups.entry(demand).or_default() += 1;
        }
    }

    /// Counts the groups of another as well.
    pub fn add(&mut self, other: &Load) {
        for (&demand, count) in &other.groups {
            *self.groups.entry(demand).or_default() += count;
        }
    }

    /// How many heartbeats per minute come in when no group sends more than `group_rate`, except
    /// that every member sends one within its longest interval.
    fn rate(&self, group_rate: u64) -> u64 {
        let groups = self.groups.iter();
        groups
            .map(|(demand, count)| count * group_rate.clamp(demand.least, demand.most))
            .sum()
    }
}

/// The shortest and the longest interval between two heartbeats of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    shortest_ms: i32,
    longest_ms: i32,
}

impl Bounds {
    /// The longest interval is the stronger bound. Both are at least a millisecond.
    pub fn new(shortest_ms: i32, longest_ms: i32) -> Bounds {
        let longest_ms = longest_ms.max(1);
        Bounds {
            shortest_ms: shortest_ms.clamp(1, longest_ms),
            longest_ms,
        }
    }

    pub(crate) fn longest_ms(self) -> i32 {
        self.longest_ms
    }

    /// The intervals that there are: each twice the one before, up to the longest.
    fn step(self, step: u8) -> i64 {
        let interval_ms = i64::from(self.shortest_ms) << step.min(32);
        interval_ms.min(self.longest_ms.into())
    }

    /// The shortest of them that is not below what is needed.
    fn at_least(self, needed_ms: i64) -> i64 {
        let mut step = 0;
        while self.step(step) < needed_ms.min(self.longest_ms.into()) {
            step += 1;
        }
        self.step(step)
    }
}

/// How many heartbeats per minute one group may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    group_rate: u32,
}

impl Pace {
    /// As many as its members send at the shortest interval.
    pub const FREE: Pace = Pace {
        group_rate: u32::MAX,
    };

    /// The pace at which all groups together stay within `heartbeats_per_second`, as far as the
    /// longest interval lets them. It falls as soon as it must, and rises when it is worth it.
    pub fn adapt(self, load: &Load, heartbeats_per_second: u32) -> Pace {
        let budget = u64::from(heartbeats_per_second) * 60;
        let fits = |rate: u32| load.rate(rate.into()) <= budget;
        if fits(u32::MAX) {
            return Pace::FREE;
        }
        let (mut fitting, mut too_high) = (1, u32::MAX);
        while too_high - fitting > 1 {
            let middle = fitting + (too_high - fitting) / 2;
            if fits(middle) {
                fitting = middle
            } else {
                too_high = middle
            }
        }
        let is_rise_small = fitting > self.group_rate && fitting - self.group_rate < fitting / 4;
        Pace {
            group_rate: if is_rise_small {
                self.group_rate
            } else {
                fitting
            },
        }
    }

    /// As a number that [`from_number`](Pace::from_number) takes.
    pub const fn number(self) -> u32 {
        self.group_rate
    }

    /// A pace that was a number.
    pub fn from_number(number: u32) -> Pace {
        Pace {
            group_rate: number.max(1),
        }
    }

    /// The interval at which so many members send what one group may send.
    fn needed_ms(self, members: usize) -> i64 {
        match self {
            Pace::FREE => 0,
            Pace { group_rate } => members as i64 * 60_000 / i64::from(group_rate),
        }
    }

    /// The interval for one of some members that wait for others: they have nothing to do but to ask
    /// again.
    pub(crate) fn waiting_interval_ms(self, waiting: usize, bounds: Bounds) -> i32 {
        bounds.at_least(self.needed_ms(waiting)) as i32
    }
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::FREE
    }
}

/// Where a group is among the intervals that there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GroupPace {
    step: u8,
}

impl GroupPace {
    /// The interval for a group of so many members. It grows at once, and shrinks when less than
    /// three quarters of the next shorter one would do.
    pub(crate) fn interval_ms(&mut self, members: usize, pace: Pace, bounds: Bounds) -> i32 {
        let needed_ms = pace.needed_ms(members).min(bounds.longest_ms.into());
        while bounds.step(self.step) < needed_ms {
            self.step += 1;
        }
        while self.step > 0 && needed_ms * 4 <= bounds.step(self.step - 1) * 3 {
            self.step -= 1;
        }
        bounds.step(self.step) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        shortest_ms: 250,
        longest_ms: 5_000,
    };

    fn load(groups: &[(usize, usize)]) -> Load {
        let mut load = Load::default();
        for &(count, members) in groups {
            for _ in 0..count {
                load.add_group(members, BOUNDS);
            }
        }
        load
    }

    fn interval_ms(load: &Load, members: usize) -> i32 {
        let pace = Pace::FREE.adapt(load, 1_000);
        GroupPace::default().interval_ms(members, pace, BOUNDS)
    }

    #[test]
    fn while_there_is_little_to_do_everybody_has_the_shortest_interval() {
        for groups in [&[(1, 3)][..], &[(1, 250)], &[(80, 3)]] {
            assert_eq!(interval_ms(&load(groups), groups[0].1), 250, "{groups:?}");
        }
    }

    #[test]
    fn a_large_group_has_a_longer_interval() {
        let intervals =
            [251, 1_000, 4_000, 10_000].map(|size| interval_ms(&load(&[(1, size)]), size));
        assert_eq!(intervals, [500, 1_000, 4_000, 5_000]);
    }

    #[test]
    fn many_small_groups_are_as_fast_beside_a_huge_one() {
        let groups = load(&[(1, 3_000), (30, 3)]);
        assert_eq!(interval_ms(&groups, 3), 250);
        assert_eq!(interval_ms(&groups, 3_000), 5_000);
    }

    #[test]
    fn all_groups_together_stay_within_the_budget() {
        for groups in [
            &[(1, 400), (300, 4)][..],
            &[(10, 100)],
            &[(3, 1_500), (20, 20)],
            &[(4_000, 1)],
        ] {
            let load = load(groups);
            let rate: f64 = groups
                .iter()
                .map(|&(count, size)| {
                    (count * size) as f64 * 1e3 / f64::from(interval_ms(&load, size))
                })
                .sum();
            assert!(rate <= 1_000.0, "{rate} of {groups:?}");
            assert!(rate > 450.0, "{rate} of {groups:?}");
        }
    }

    #[test]
    fn groups_with_intervals_of_their_own_cost_what_they_send() {
        // As slow as Kafka lets a group be: they leave the others what they need.
        let slow = Bounds::new(15_000, 15_000);
        let mut load = load(&[(10, 20)]);
        for _ in 0..100 {
            load.add_group(50, slow);
        }
        let pace = Pace::FREE.adapt(&load, 1_000);
        assert_eq!(GroupPace::default().interval_ms(20, pace, BOUNDS), 500);
        assert_eq!(GroupPace::default().interval_ms(50, pace, slow), 15_000);
        // One that is to be fast takes what it sends from what there is for the others.
        let fast = Bounds::new(100, 100);
        load.add_group(70, fast);
        let pace = Pace::FREE.adapt(&load, 1_000);
        assert_eq!(GroupPace::default().interval_ms(20, pace, BOUNDS), 5_000);
        assert_eq!(GroupPace::default().interval_ms(70, pace, fast), 100);
    }

    #[test]
    fn no_interval_is_longer_than_the_longest_whatever_the_load() {
        let load = load(&[(100, 1_000)]);
        assert_eq!(interval_ms(&load, 1_000), 5_000);
        let fixed = Bounds::new(6_000, 5_000);
        assert_eq!(
            GroupPace::default().interval_ms(1, Pace::FREE, fixed),
            5_000
        );
        assert_eq!(Pace::FREE.waiting_interval_ms(1, fixed), 5_000);
    }

    #[test]
    fn a_group_that_grows_and_shrinks_by_some_members_keeps_its_interval() {
        let mut group = GroupPace::default();
        let pace = Pace::from_number(60_000);
        assert_eq!(group.interval_ms(510, pace, BOUNDS), 1_000);
        for size in [490, 520, 480, 400, 600] {
            assert_eq!(group.interval_ms(size, pace, BOUNDS), 1_000, "{size}");
        }
        assert_eq!(group.interval_ms(370, pace, BOUNDS), 500);
    }

    #[test]
    fn the_pace_falls_at_once_and_does_not_rise_for_a_little() {
        let before = Pace::FREE.adapt(&load(&[(10, 100)]), 1_000);
        assert_eq!(before.number(), 6_000);
        let less = before.adapt(&load(&[(11, 100)]), 1_000);
        assert!(less.number() < 6_000);
        assert_eq!(less.adapt(&load(&[(10, 100)]), 1_000), less);
        assert_eq!(less.adapt(&load(&[(5, 100)]), 1_000).number(), 12_000);
        assert_eq!(less.adapt(&load(&[(2, 100)]), 1_000), Pace::FREE);
    }

    #[test]
    fn few_who_wait_ask_often_and_many_share_what_there_is() {
        let pace = Pace::from_number(6_000);
        assert_eq!(pace.waiting_interval_ms(1, BOUNDS), 250);
        assert_eq!(pace.waiting_interval_ms(100, BOUNDS), 1_000);
        assert_eq!(pace.waiting_interval_ms(100_000, BOUNDS), 5_000);
    }
}
