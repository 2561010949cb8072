//! Who was given which record, and whether that was right.
//!
//! Each delivery of a record to a member ends in one of four ways: its member
//! committed it; the commit failed while the broker was being restarted, or a
//! rebalance overtook it; the member was killed; or none of these. A record may
//! have been delivered more than once only if all its deliveries but one ended in
//! the second or third way. The rule looks at each member's own output, whose
//! order is certain, and at nothing that depends on how outputs of different
//! processes interleave.

use std::collections::BTreeMap;
use std::fmt;

/// How a delivery ended, so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Not committed yet
    Open,
    Committed,
    /// The member's commit failed because the broker was away, or a rebalance overtook it
    CommitFailed,
}

#[derive(Debug)]
struct Delivery {
    member: usize,
    ending: Ending,
    /// The member has lost the partition or was given the record again since: a later commit
    /// is about a later delivery.
    over: bool,
}

/// All deliveries of one scenario.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// By partition and offset
    deliveries: BTreeMap<(i32, i64), Vec<Delivery>>,
    /// The places at which each value was found
    places: BTreeMap<u64, Vec<(i32, i64)>>,
    /// Members that were killed
    killed: Vec<usize>,
    /// By member and partition: what it was given below is settled.
    settled: BTreeMap<(usize, i32), i64>,
}

/// What there is to say about a ledger that is in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Records that were delivered
    pub(super) records: usize,
    /// Further deliveries of them because a member was killed
    pub(super) again_after_kill: usize,
    /// Further deliveries of them because a commit failed
    pub(super) again_after_restart: usize,
    /// Records that a producer without idempotence wrote twice
    pub(super) written_twice: usize,
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} records, again {} after the kill and {} after failed commits",
            self.records, self.again_after_kill, self.again_after_restart
        )?;
        if self.written_twice > 0 {
            write!(out, ", {} written twice", self.written_twice)?;
        }
        Ok(())
    }
}

impl Ledger {
    pub(super) fn delivered(&mut self, member: usize, records: &[(i32, i64, u64)]) {
        for &(partition, offset, value) in records {
            if let Some(settled) = self.settled.get_mut(&(member, partition)) {
                *settled = offset.min(*settled);
            }
            let deliveries = self.deliveries.entry((partition, offset)).or_default();
            for former in deliveries
                .iter_mut()
                .filter(|former| former.member == member)
            {
                former.over = true;
            }
            deliveries.push(Delivery {
                member,
                ending: Ending::Open,
                over: false,
            });
            let places = self.places.entry(value).or_default();
            if !places.contains(&(partition, offset)) {
                places.push((partition, offset));
            }
        }
    }

    /// A member's commit was acknowledged: it settles what the member was given below `next`.
    pub(super) fn committed(&mut self, member: usize, partition: i32, next: i64) {
        self.settle(member, partition, next, Ending::Committed);
        self.settled.insert((member, partition), next);
    }

    /// A member's commit failed while the broker was away, or came when others had the partition.
    pub(super) fn commit_failed(&mut self, member: usize, partition: i32, next: i64) {
        self.settle(member, partition, next, Ending::CommitFailed);
    }

    /// A member no longer owns a partition.
    pub(super) fn gone(&mut self, member: usize, partition: i32) {
        let all = (partition, i64::MIN)..=(partition, i64::MAX);
        for (_, deliveries) in self.deliveries.range_mut(all) {
            for delivery in deliveries
                .iter_mut()
                .filter(|delivery| delivery.member == member)
            {
                delivery.over = true;
            }
        }
    }

    pub(super) fn killed(&mut self, member: usize) {
        self.killed.push(member);
    }

    fn settle(&mut self, member: usize, partition: i32, next: i64, ending: Ending) {
        let settled = self.settled.get(&(member, partition));
        let from = settled.copied().unwrap_or(i64::MIN).min(next);
        let below = (partition, from)..(partition, next);
        for (_, deliveries) in self.deliveries.range_mut(below) {
            for delivery in deliveries
                .iter_mut()
                .filter(|delivery| delivery.member == member)
            {
                if delivery.ending != Ending::Committed && !delivery.over {
                    delivery.ending = ending;
                }
            }
        }
    }

    /// How many different values were delivered.
    pub(super) fn distinct(&self) -> usize {
        self.places.len()
    }

    /// The first place whose value was sent before that of the place in front of it, where there
    /// was one producer that sent all values in order.
    pub(super) fn first_out_of_order(&self) -> Option<(i32, i64)> {
        let mut last: BTreeMap<i32, i64> = BTreeMap::new();
        for places in self.places.values() {
            for &(partition, offset) in places {
                if last.get(&partition).is_some_and(|last| *last > offset) {
                    return Some((partition, offset));
                }
                last.insert(partition, offset);
            }
        }
        None
    }

    /// The first value below `total` that nobody was given.
    pub(super) fn first_missing(&self, total: u64) -> Option<u64> {
        (0..total).find(|value| !self.places.contains_key(value))
    }

    /// Judges everything; `total` values, beginning with 0, were produced.
    pub(super) fn judge(&self, total: u64, idempotent: bool) -> Result<Verdict, String> {
        if let Some(value) = self.first_missing(total) {
            let missing = total - self.places.range(..total).count() as u64;
            return Err(format!(
                "{missing} records were never delivered, the first is {value}"
            ));
        }
        if let Some((&value, _)) = self.places.range(total..).next() {
            return Err(format!(
                "the value {value} was delivered and never produced"
            ));
        }
        let mut verdict = Verdict {
            records: self.places.len(),
            again_after_kill: 0,
            again_after_restart: 0,
            written_twice: 0,
        };
        for (value, places) in self.places.iter().filter(|(_, places)| places.len() > 1) {
            if idempotent {
                return Err(format!("the value {value} stands in the log at {places:?}"));
            }
            verdict.written_twice += places.len() - 1;
        }
        for (&(partition, offset), deliveries) in &self.deliveries {
            let mut excess = deliveries.len() - 1;
            let mut excuse = |count: usize| {
                let used = count.min(excess);
                excess -= used;
                used
            };
            let by_killed = |delivery: &&Delivery| {
                delivery.ending == Ending::Open && self.killed.contains(&delivery.member)
            };
            let by_failed = |delivery: &&Delivery| delivery.ending == Ending::CommitFailed;
            verdict.again_after_kill += excuse(deliveries.iter().filter(by_killed).count());
            verdict.again_after_restart += excuse(deliveries.iter().filter(by_failed).count());
            if excess > 0 {
                return Err(format!(
                    "partition {partition} offset {offset} was delivered again without a \
                     reason: {deliveries:?}"
                ));
            }
        }
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::Ledger;

    fn ledger_of_one_record(members: &[usize]) -> Ledger {
        let mut ledger = Ledger::default();
        for &member in members {
            ledger.delivered(member, &[(0, 5, 0)]);
        }
        ledger
    }

    #[test]
    fn a_record_that_two_members_committed_is_a_fault() {
        let mut ledger = ledger_of_one_record(&[0, 1]);
        ledger.committed(0, 0, 6);
        ledger.committed(1, 0, 6);
        assert!(
            ledger
                .judge(1, true)
                .unwrap_err()
                .contains("without a reason")
        );
    }

    #[test]
    fn a_killed_member_excuses_only_what_it_had_not_committed() {
        let mut ledger = ledger_of_one_record(&[0, 1]);
        ledger.committed(1, 0, 6);
        ledger.killed(0);
        assert_eq!(ledger.judge(1, true).unwrap().again_after_kill, 1);

        let mut ledger = ledger_of_one_record(&[0, 1]);
        ledger.committed(0, 0, 6);
        ledger.committed(1, 0, 6);
        ledger.killed(0);
        assert!(ledger.judge(1, true).is_err());
    }

    #[test]
    fn a_commit_that_failed_under_a_restart_excuses_a_second_delivery() {
        let mut ledger = ledger_of_one_record(&[0, 1]);
        ledger.commit_failed(0, 0, 6);
        ledger.committed(1, 0, 6);
        assert_eq!(ledger.judge(1, true).unwrap().again_after_restart, 1);
    }

    #[test]
    fn a_commit_that_is_repeated_with_success_counts_as_committed() {
        let mut ledger = ledger_of_one_record(&[0]);
        ledger.commit_failed(0, 0, 6);
        ledger.committed(0, 0, 6);
        assert_eq!(ledger.judge(1, true).unwrap().again_after_restart, 0);
    }

    #[test]
    fn a_commit_says_nothing_about_deliveries_before_the_partition_was_lost() {
        let mut ledger = ledger_of_one_record(&[0]);
        ledger.commit_failed(0, 0, 6);
        ledger.gone(0, 0);
        ledger.delivered(0, &[(0, 5, 0)]);
        ledger.committed(0, 0, 6);
        assert_eq!(ledger.judge(1, true).unwrap().again_after_restart, 1);
    }

    #[test]
    fn a_record_that_nobody_was_given_is_named() {
        let ledger = ledger_of_one_record(&[0]);
        assert!(ledger.judge(3, true).unwrap_err().contains("first is 1"));
    }

    #[test]
    fn records_that_changed_places_are_found() {
        let mut ledger = Ledger::default();
        ledger.delivered(0, &[(0, 5, 0), (1, 3, 1), (0, 6, 2)]);
        assert_eq!(ledger.first_out_of_order(), None);
        ledger.delivered(0, &[(0, 4, 3)]);
        assert_eq!(ledger.first_out_of_order(), Some((0, 4)));
    }

    #[test]
    fn an_idempotent_producer_writes_each_value_once() {
        let mut ledger = Ledger::default();
        ledger.delivered(0, &[(0, 5, 0), (0, 6, 0)]);
        assert!(
            ledger
                .judge(1, true)
                .unwrap_err()
                .contains("stands in the log")
        );
        assert_eq!(ledger.judge(1, false).unwrap().written_twice, 1);
    }
}
