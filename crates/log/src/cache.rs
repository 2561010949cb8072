//! The newest batches of a log, in memory for consumers at the tail.

use std::collections::VecDeque;

use bytes::Bytes;

struct Cached {
    base_offset: i64,
    last_offset: i64,
    bytes: Bytes,
}

/// The newest batches, without gaps, bounded in bytes. The newest one is kept whatever its size
/// only if it fits.
pub(crate) struct TailCache {
    batches: VecDeque<Cached>,
    bytes: usize,
    limit: usize,
}

impl TailCache {
    pub(crate) fn new(limit: usize) -> TailCache {
        TailCache {
            batches: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.shrink();
    }

    pub(crate) fn push(&mut self, base_offset: i64, last_offset: i64, bytes: Bytes) {
        self.bytes += bytes.len();
        self.batches.push_back(Cached {
            base_offset,
            last_offset,
            bytes,
        });
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.bytes > self.limit
            && let Some(oldest) = self.batches.pop_front()
        {
            self.bytes -= oldest.bytes.len();
        }
    }

    /// Drops the batches that end before `offset`.
    pub(crate) fn drop_before(&mut self, offset: i64) {
        while let Some(oldest) = self
            .batches
            .pop_front_if(|batch| batch.last_offset < offset)
        {
            self.bytes -= oldest.bytes.len();
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = TailCache::new(self.limit);
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether the batches from `from` on are all here.
    pub(crate) fn reaches(&self, from: i64) -> bool {
        let oldest = self.batches.front();
        oldest.is_some_and(|oldest| oldest.base_offset <= from)
    }

    /// The batches from the one with `from` on to `until`, at most `max_bytes` of them, or one
    /// larger one if that is wanted. `None` if they are not all here.
    pub(crate) fn read(
        &self,
        from: i64,
        until: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Option<Vec<Bytes>> {
        if !self.reaches(from) {
            return None;
        }
        let first = self
            .batches
            .partition_point(|batch| batch.last_offset < from);
        let mut left = max_bytes;
        let mut slices = Vec::new();
        for batch in self.batches.range(first..) {
            let one_at_least = at_least_one && slices.is_empty();
            if batch.last_offset >= until || (batch.bytes.len() > left && !one_at_least) {
                break;
            }
            left = left.saturating_sub(batch.bytes.len());
            slices.push(batch.bytes.clone());
        }
        Some(slices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> TailCache {
        let mut cache = TailCache::new(100);
        for batch in 0..20 {
            cache.push(batch * 2, batch * 2 + 1, Bytes::from(vec![batch as u8; 10]));
        }
        cache
    }

    #[test]
    fn keeps_the_newest_batches_up_to_its_limit() {
        let mut cache = cache();
        assert_eq!(cache.batches.len(), 10);
        assert!(cache.read(19, 40, 1000, true).is_none());
        assert_eq!(cache.read(20, 40, 1000, true).unwrap().len(), 10);
        cache.push(40, 41, Bytes::from(vec![0; 101]));
        assert!(cache.is_empty());
    }

    #[test]
    fn reads_from_the_batch_with_the_offset_within_the_bounds() {
        let cache = cache();
        let first = |from, until, max, one| {
            let slices = cache.read(from, until, max, one).unwrap();
            (slices.first().map(|slice| slice[0]), slices.len())
        };
        assert_eq!(first(23, 40, 35, false), (Some(11), 3));
        assert_eq!(first(23, 26, 35, false), (Some(11), 2));
        assert_eq!(first(23, 27, 35, false), (Some(11), 2));
        assert_eq!(first(23, 40, 5, false), (None, 0));
        assert_eq!(first(23, 40, 5, true), (Some(11), 1));
        assert_eq!(first(40, 40, 5, true), (None, 0));
    }
}
