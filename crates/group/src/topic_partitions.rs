//! Sets of partitions by topic id: what a member is assigned, revokes, or is meant to have.

use std::{fmt, ops::Range, sync::Arc};

use kohort_wire::Uuid;

/// Consecutive partitions of one topic; never empty inside a [`TopicPartitions`].
// Packed to 24 bytes: an id aligned to 16 would make it 32, and a huge group holds a million runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C, packed(8))]
pub struct Run {
    topic_id: Uuid,
    start: i32,
    end: i32,
}

impl Run {
    /// The partitions `start..end` of a topic.
    pub const fn new(topic_id: Uuid, partitions: Range<i32>) -> Run {
        Run {
            topic_id,
            start: partitions.start,
            end: partitions.end,
        }
    }

    /// The topic.
    pub const fn topic_id(&self) -> Uuid {
        self.topic_id
    }

    /// Its partitions.
    pub const fn partitions(&self) -> Range<i32> {
        self.start..self.end
    }

    /// How many partitions.
    pub const fn len(&self) -> usize {
        if self.is_empty() {
            0
        } else {
            self.end.wrapping_sub(self.start) as u32 as usize
        }
    }

    /// Whether it has none.
    pub const fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.topic_id(), self.partitions())
    }
}

/// A set of partitions, by topic id.
///
/// One shared, immutable allocation of sorted runs of consecutive partitions. Cloning copies a
/// pointer. Comparing and the set operations walk the runs, of which there are few, since the
/// assignors hand out neighbours; an operation whose result is one of its operands shares that
/// operand's allocation, so that [`is_same`](Self::is_same) tells at once that nothing changed.
#[derive(Clone, Default)]
pub struct TopicPartitions {
    /// Sorted by topic and start; not empty, not overlapping, not touching.
    runs: Arc<[Run]>,
}

impl TopicPartitions {
    /// No partitions.
    pub fn new() -> TopicPartitions {
        TopicPartitions::default()
    }

    /// The set of runs given in any order, overlapping or not.
    pub fn from_runs(runs: impl IntoIterator<Item = Run>) -> TopicPartitions {
        let mut runs: Vec<Run> = runs.into_iter().filter(|run| !run.is_empty()).collect();
        runs.sort_unstable_by_key(|run| (run.topic_id(), run.start));
        let mut joined = Vec::with_capacity(runs.len());
        for run in runs {
            append(&mut joined, run);
        }
        TopicPartitions::from_joined(&joined)
    }

    /// The set of runs that are already sorted and joined, as [`append`] builds them.
    pub(crate) fn from_joined(runs: &[Run]) -> TopicPartitions {
        debug_assert!(runs.iter().all(|run| !run.is_empty()));
        debug_assert!(runs.windows(2).all(|pair| follows(pair[0], pair[1])));
        if runs.is_empty() {
            return TopicPartitions::default();
        }
        TopicPartitions { runs: runs.into() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// How many partitions. Costs a walk over the runs.
    pub fn len(&self) -> usize {
        self.runs.iter().map(Run::len).sum()
    }

    /// The runs, sorted by topic id and partition, joined where they touch.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Every partition, sorted by topic id and partition.
    pub fn iter(&self) -> impl Iterator<Item = (Uuid, i32)> + '_ {
        self.runs.iter().flat_map(|run| {
            let topic_id = run.topic_id();
            run.partitions().map(move |partition| (topic_id, partition))
        })
    }

    /// Every topic with the runs of its partitions, sorted by topic id.
    pub fn topics(&self) -> impl Iterator<Item = (Uuid, &[Run])> + '_ {
        self.runs
            .chunk_by(|a, b| a.topic_id() == b.topic_id())
            .map(|runs| (runs[0].topic_id(), runs))
    }

    /// The partitions of one topic, sorted.
    pub fn partitions(&self, topic_id: Uuid) -> impl Iterator<Item = i32> + '_ {
        let start = self.runs.partition_point(|run| run.topic_id() < topic_id);
        self.runs[start..]
            .iter()
            .take_while(move |run| run.topic_id() == topic_id)
            .flat_map(Run::partitions)
    }

    /// Whether the partition is among them.
    pub fn contains(&self, topic_id: Uuid, partition: i32) -> bool {
        let after = self
            .runs
            .partition_point(|run| (run.topic_id(), run.start) <= (topic_id, partition));
        after > 0 && {
            let run = self.runs[after - 1];
            run.topic_id() == topic_id && partition < run.end
        }
    }

    /// Whether any partition of the topic is among them.
    pub fn contains_topic(&self, topic_id: Uuid) -> bool {
        self.runs
            .binary_search_by_key(&topic_id, Run::topic_id)
            .is_ok()
    }

    /// Whether the two are one allocation (or both are empty). Equal sets need not be the same.
    pub fn is_same(&self, other: &TopicPartitions) -> bool {
        Arc::ptr_eq(&self.runs, &other.runs) || (self.is_empty() && other.is_empty())
    }

    /// What is in both.
    pub fn intersection(&self, other: &TopicPartitions) -> TopicPartitions {
        if self.is_same(other) {
            return self.clone();
        }
        let mut result = Vec::new();
        overlaps(self, other, |run| result.push(run));
        self.sharing(other, &result)
    }

    /// What is in this set and not in the other.
    pub fn difference(&self, other: &TopicPartitions) -> TopicPartitions {
        if self.is_same(other) {
            return TopicPartitions::new();
        }
        let mut result = Vec::new();
        let mut taken = other.runs.iter().peekable();
        for run in self.runs.iter() {
            let mut start = run.start;
            while let Some(next) = taken.peek() {
                if (next.topic_id(), next.end) <= (run.topic_id(), start) {
                    taken.next();
                } else if next.topic_id() > run.topic_id() || next.start >= run.end {
                    break;
                } else {
                    if next.start > start {
                        result.push(Run::new(run.topic_id(), start..next.start));
                    }
                    start = next.end;
                    if start >= run.end {
                        break;
                    }
                }
            }
            if start < run.end {
                result.push(Run::new(run.topic_id(), start..run.end));
            }
        }
        self.sharing(other, &result)
    }

    /// What is in either.
    pub fn union(&self, other: &TopicPartitions) -> TopicPartitions {
        if other.is_empty() || self.is_same(other) {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        let mut result = Vec::with_capacity(self.runs.len() + other.runs.len());
        merge(&self.runs, &other.runs, &mut result);
        self.sharing(other, &result)
    }

    /// Whether nothing is in both.
    pub fn is_disjoint(&self, other: &TopicPartitions) -> bool {
        let mut disjoint = true;
        overlaps(self, other, |_| disjoint = false);
        disjoint
    }

    /// Whether all of this set is in the other.
    pub fn is_subset(&self, other: &TopicPartitions) -> bool {
        if self.is_same(other) {
            return true;
        }
        let mut common = 0;
        overlaps(self, other, |run| common += run.len());
        common == self.len()
    }

    /// The partitions of the topics that pass.
    pub fn retain_topics(&self, mut passes: impl FnMut(Uuid) -> bool) -> TopicPartitions {
        let mut result = Vec::new();
        for (topic_id, runs) in self.topics() {
            if passes(topic_id) {
                result.extend_from_slice(runs);
            }
        }
        self.sharing(self, &result)
    }

    /// The set of `runs`, in the allocation of an operand that is equal.
    fn sharing(&self, other: &TopicPartitions, runs: &[Run]) -> TopicPartitions {
        if *self.runs == *runs {
            self.clone()
        } else if *other.runs == *runs {
            other.clone()
        } else {
            TopicPartitions::from_joined(runs)
        }
    }
}

impl PartialEq for TopicPartitions {
    fn eq(&self, other: &TopicPartitions) -> bool {
        self.is_same(other) || self.runs == other.runs
    }
}

impl Eq for TopicPartitions {}

impl fmt::Debug for TopicPartitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.runs.iter()).finish()
    }
}

impl FromIterator<(Uuid, i32)> for TopicPartitions {
    fn from_iter<I: IntoIterator<Item = (Uuid, i32)>>(partitions: I) -> TopicPartitions {
        // A run of the greatest partition number would end past the type: no topic has it.
        TopicPartitions::from_runs(partitions.into_iter().filter_map(|(topic_id, partition)| {
            let end = partition.checked_add(1)?;
            Some(Run::new(topic_id, partition..end))
        }))
    }
}

/// Whether `next` is behind `run` and does not touch it.
fn follows(run: Run, next: Run) -> bool {
    (run.topic_id(), run.end) < (next.topic_id(), next.start)
}

/// Appends a run that starts no earlier than the last one does, joining the two if they touch.
pub(crate) fn append(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if !follows(*last, run) => last.end = last.end.max(run.end),
        _ => runs.push(run),
    }
}

/// Appends the union of two sorted lists of runs.
pub(crate) fn merge(a: &[Run], b: &[Run], result: &mut Vec<Run>) {
    let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        let first = if (x.topic_id(), x.start) <= (y.topic_id(), y.start) {
            &mut a
        } else {
            &mut b
        };
        append(result, first.next().expect("peeked"));
    }
    a.chain(b).for_each(|run| append(result, run));
}

/// Calls with each run that both have in common, in order.
fn overlaps(a: &TopicPartitions, b: &TopicPartitions, mut found: impl FnMut(Run)) {
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.runs.get(i), b.runs.get(j)) {
        if x.topic_id() == y.topic_id() {
            let common = Run::new(x.topic_id(), x.start.max(y.start)..x.end.min(y.end));
            if !common.is_empty() {
                found(common);
            }
        }
        if (x.topic_id(), x.end) <= (y.topic_id(), y.end) {
            i += 1;
        } else {
            j += 1;
        }
    }
}
