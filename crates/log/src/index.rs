//! The two sparse indexes of a segment: from offsets to positions, from times to offsets.

/// From an offset (relative to the segment's) to the position of the batch that ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OffsetEntry {
    pub(crate) offset: u32,
    pub(crate) position: u32,
}

/// No record up to this (relative) offset is later than `timestamp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    pub(crate) timestamp: i64,
    pub(crate) offset: u32,
}

/// Both indexes of a segment. Offsets, positions and timestamps only grow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) offsets: Vec<OffsetEntry>,
    pub(crate) times: Vec<TimeEntry>,
}

pub(crate) const OFFSET_ENTRY_LENGTH: usize = 8;
pub(crate) const TIME_ENTRY_LENGTH: usize = 12;

impl Index {
    /// The last entry that is not beyond that offset: where to start looking for its batch.
    pub(crate) fn before(&self, offset: u32) -> Option<OffsetEntry> {
        let after = self.offsets.partition_point(|entry| entry.offset <= offset);
        Some(self.offsets[after.checked_sub(1)?])
    }

    /// From which offset on to look for the first record not earlier than `timestamp`.
    pub(crate) fn offset_for(&self, timestamp: i64) -> u32 {
        let after = self
            .times
            .partition_point(|entry| entry.timestamp <= timestamp);
        match after.checked_sub(1) {
            Some(at) => self.times[at].offset,
            None => 0,
        }
    }

    pub(crate) fn push_offset(&mut self, offset: u32, position: u32) {
        if self.offsets.last().is_none_or(|last| last.offset < offset) {
            self.offsets.push(OffsetEntry { offset, position });
        }
    }

    pub(crate) fn push_time(&mut self, timestamp: i64, offset: u32) {
        let newer = |last: &TimeEntry| last.timestamp < timestamp && last.offset <= offset;
        if timestamp >= 0 && self.times.last().is_none_or(newer) {
            self.times.push(TimeEntry { timestamp, offset });
        }
    }

    /// The bytes of both files.
    pub(crate) fn encode(&self) -> (Vec<u8>, Vec<u8>) {
        let mut offsets = Vec::with_capacity(self.offsets.len() * OFFSET_ENTRY_LENGTH);
        for entry in &self.offsets {
            offsets.extend_from_slice(&entry.offset.to_be_bytes());
            offsets.extend_from_slice(&entry.position.to_be_bytes());
        }
        let mut times = Vec::with_capacity(self.times.len() * TIME_ENTRY_LENGTH);
        for entry in &self.times {
            times.extend_from_slice(&entry.timestamp.to_be_bytes());
            times.extend_from_slice(&entry.offset.to_be_bytes());
        }
        (offsets, times)
    }

    /// The indexes of a segment of `size` bytes, or `None` if the files cannot be that.
    pub(crate) fn decode(offsets: &[u8], times: &[u8], size: u64) -> Option<Index> {
        let (offsets, rest) = offsets.as_chunks::<OFFSET_ENTRY_LENGTH>();
        let (times, rest_of_times) = times.as_chunks::<TIME_ENTRY_LENGTH>();
        if !rest.is_empty() || !rest_of_times.is_empty() {
            return None;
        }
        let index = Index {
            offsets: offsets
                .iter()
                .map(|&[a, b, c, d, e, f, g, h]| OffsetEntry {
                    offset: u32::from_be_bytes([a, b, c, d]),
                    position: u32::from_be_bytes([e, f, g, h]),
                })
                .collect(),
            times: times.iter().copied().map(time_entry).collect(),
        };
        let grows = index
            .offsets
            .is_sorted_by(|a, b| a.offset < b.offset && a.position < b.position)
            && index
                .times
                .is_sorted_by(|a, b| a.timestamp < b.timestamp && a.offset <= b.offset);
        let fits = index
            .offsets
            .last()
            .is_none_or(|last| u64::from(last.position) < size);
        (grows && fits).then_some(index)
    }
}

pub(crate) fn time_entry(bytes: [u8; TIME_ENTRY_LENGTH]) -> TimeEntry {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
    TimeEntry {
        timestamp: i64::from_be_bytes([a, b, c, d, e, f, g, h]),
        offset: u32::from_be_bytes([i, j, k, l]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_the_last_entry_that_is_not_beyond(
            steps in proptest::collection::vec((1u32..50, 1u32..5000, 0i64..20), 0..50),
            offset in 0u32..3000,
            timestamp in 0i64..1200,
        ) {
            let mut index = Index::default();
            let (mut at, mut position, mut time) = (0, 0, 0);
            for (offsets, bytes, later) in steps {
                at += offsets;
                position += bytes;
                time += later;
                index.push_offset(at, position);
                index.push_time(time, at);
            }
            let entry = index.offsets.iter().rfind(|entry| entry.offset <= offset);
            prop_assert_eq!(index.before(offset), entry.copied());
            let entry = index.times.iter().rfind(|entry| entry.timestamp <= timestamp);
            prop_assert_eq!(index.offset_for(timestamp), entry.map_or(0, |entry| entry.offset));
            let (offsets, times) = index.encode();
            prop_assert_eq!(Index::decode(&offsets, &times, u64::MAX), Some(index));
        }

        #[test]
        fn noise_is_refused_or_sorted(offsets: Vec<u8>, times: Vec<u8>) {
            if let Some(index) = Index::decode(&offsets, &times, 1 << 20) {
                prop_assert!(index.offsets.iter().all(|entry| entry.position < 1 << 20));
            }
        }
    }
}
