//! What readers of a log see, and the one place where its segments change.
//!
//! The list of segments is private to this module: every change goes through a method that also
//! drops from the cache what the change made stale. A new way to change the segments cannot forget
//! the cache.

use std::{ops::Range, sync::Arc};

use crate::{cache::TailCache, epochs::Epochs, segment::Segment};

/// What readers see.
pub(super) struct View {
    /// The oldest first; the last one grows. Never empty.
    segments: Vec<Arc<Segment>>,
    pub(super) cache: TailCache,
    pub(super) epochs: Epochs,
    start_offset: i64,
    pub(super) end_offset: i64,
    /// How many bytes have been appended since the log was opened.
    pub(super) appended_bytes: u64,
}

impl View {
    /// The view of a log with these segments, at least one.
    pub(super) fn new(
        segments: Vec<Arc<Segment>>,
        cache_bytes: usize,
        epochs: Epochs,
        start_offset: i64,
        end_offset: i64,
    ) -> View {
        debug_assert!(!segments.is_empty());
        View {
            segments,
            cache: TailCache::new(cache_bytes),
            epochs,
            start_offset,
            end_offset,
            appended_bytes: 0,
        }
    }

    /// The segments, the oldest first.
    pub(super) fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// The segment that grows.
    pub(super) fn active(&self) -> &Arc<Segment> {
        self.segments.last().expect("a log has a segment")
    }

    pub(super) fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// The position of the segment that `offset` is in, or would be.
    pub(super) fn segment_at(&self, offset: i64) -> usize {
        self.segments
            .partition_point(|segment| segment.base_offset <= offset)
            .saturating_sub(1)
    }

    /// Adds the segment that grows from now on.
    pub(super) fn roll(&mut self, segment: Arc<Segment>) {
        self.segments.push(segment);
    }

    /// Puts `segment` in the place of those in `replaced`, which are closed. Cached batches of the
    /// replaced segments are dropped.
    pub(super) fn replace(&mut self, replaced: Range<usize>, segment: Arc<Segment>) {
        debug_assert!(replaced.end < self.segments.len());
        let end = self
            .segments
            .get(replaced.end)
            .map_or(self.end_offset, |next| next.base_offset);
        self.segments.splice(replaced, [segment]);
        self.cache.drop_before(end);
    }

    /// Removes the oldest segments, which the start of the log has left behind.
    pub(super) fn remove_oldest(&mut self, count: usize) {
        self.segments.drain(..count);
        if let Some(first) = self.segments.first() {
            self.cache.drop_before(first.base_offset);
        }
    }

    /// Moves the start of the log. Returns whether the epochs changed.
    pub(super) fn move_start(&mut self, start: i64) -> bool {
        self.start_offset = start;
        self.cache.drop_before(start);
        self.epochs.truncate_start(start)
    }
}
