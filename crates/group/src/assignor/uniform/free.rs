//! Which partitions are still to be had: a bit each.

use std::ops::Range;

use crate::assignor::subscriptions::Topic;

/// The partitions of some topics, each free or taken.
pub(super) struct Free {
    /// Where the bits of each topic start, and one past the last.
    starts: Vec<usize>,
    /// 1 is taken.
    words: Vec<u64>,
    /// Before here [`next`](Free::next) has found everything.
    cursor: usize,
    /// The topic of the cursor.
    cursor_topic: usize,
}

impl Free {
    /// All partitions of all topics, free.
    pub(super) fn new(topics: &[Topic]) -> Free {
        let mut starts = Vec::with_capacity(topics.len() + 1);
        let mut bits = 0;
        for topic in topics {
            starts.push(bits);
            bits += topic.partition_count as usize;
        }
        starts.push(bits);
        Free {
            starts,
            words: vec![0; bits.div_ceil(64)],
            cursor: 0,
            cursor_topic: 0,
        }
    }

    /// How many partitions there are, free or not.
    pub(super) fn len(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Takes those of `partitions` that exist and are free, at most `limit` of them, and calls
    /// with each run taken. Returns how many.
    pub(super) fn take(
        &mut self,
        topic: usize,
        partitions: Range<i32>,
        limit: usize,
        mut taken: impl FnMut(Range<i32>),
    ) -> usize {
        let first = self.starts[topic];
        let count = (self.starts[topic + 1] - first) as i32;
        let mut next = partitions.start.max(0);
        let end = partitions.end.min(count);
        let mut left = limit;
        while next < end && left > 0 {
            let bits = first + next as usize..first + end as usize;
            let start = self.find(bits.clone(), false);
            let end = self.find(start..bits.end.min(start + left), true);
            if start < end {
                self.set(start..end);
                taken((start - first) as i32..(end - first) as i32);
                left -= end - start;
            }
            next = (end - first) as i32;
        }
        limit - left
    }

    /// Takes the first run of free partitions of one topic, at most `limit`, behind all runs that
    /// this returned before.
    pub(super) fn next(&mut self, limit: usize) -> Option<(usize, Range<i32>)> {
        let start = self.find(self.cursor..self.len(), false);
        if start == self.len() {
            self.cursor = start;
            return None;
        }
        while self.starts[self.cursor_topic + 1] <= start {
            self.cursor_topic += 1;
        }
        let (first, last) = (
            self.starts[self.cursor_topic],
            self.starts[self.cursor_topic + 1],
        );
        let end = self.find(start..last.min(start.saturating_add(limit)), true);
        self.cursor = end;
        Some((
            self.cursor_topic,
            (start - first) as i32..(end - first) as i32,
        ))
    }

    /// The first bit that is as asked, or the end.
    fn find(&self, bits: Range<usize>, taken: bool) -> usize {
        let mut at = bits.start;
        while at < bits.end {
            let word = self.words[at / 64];
            let word = if taken { word } else { !word };
            let ahead = word >> (at % 64);
            if ahead != 0 {
                return bits.end.min(at + ahead.trailing_zeros() as usize);
            }
            at += 64 - at % 64;
        }
        bits.end
    }

    fn set(&mut self, bits: Range<usize>) {
        let mut at = bits.start;
        while at < bits.end {
            let end = bits.end.min(at + 64 - at % 64);
            let ones = u64::MAX >> (64 - (end - at));
            self.words[at / 64] |= ones << (at % 64);
            at = end;
        }
    }
}
