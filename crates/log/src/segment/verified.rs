//! Which parts of a segment are known to be whole.

/// The parts of a file whose checksums were checked since it was opened, or that were written since.
///
/// Consumers read in order, so there are few parts. When there are too many, the smallest is
/// forgotten and will be checked again.
#[derive(Debug, Default)]
pub(super) struct Verified {
    /// Sorted, apart from each other, not empty: start and end.
    parts: Vec<(u64, u64)>,
}

/// How many parts are remembered.
const PARTS_MAX: usize = 32;

impl Verified {
    pub(super) fn contains(&self, start: u64, end: u64) -> bool {
        let at = self.parts.partition_point(|part| part.1 < end);
        self.parts.get(at).is_some_and(|part| part.0 <= start)
    }

    pub(super) fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let first = self.parts.partition_point(|part| part.1 < start);
        let last = self.parts.partition_point(|part| part.0 <= end);
        let touched = self.parts[first..last].iter();
        let (start, end) = touched.fold((start, end), |(start, end), part| {
            (start.min(part.0), end.max(part.1))
        });
        self.parts.splice(first..last, [(start, end)]);
        if self.parts.len() > PARTS_MAX
            && let Some(smallest) = (0..self.parts.len()).min_by_key(|&at| {
                let (start, end) = self.parts[at];
                end - start
            })
        {
            self.parts.remove(smallest);
        }
    }

    pub(super) fn clear(&mut self) {
        self.parts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn knows_what_was_added_and_nothing_else(
            added in proptest::collection::vec((0u64..200, 1u64..20), 0..30),
            asked in (0u64..200, 1u64..20),
        ) {
            let mut verified = Verified::default();
            let mut known = [false; 256];
            for (start, length) in added {
                verified.add(start, start + length);
                known[start as usize..(start + length) as usize].fill(true);
            }
            let (start, length) = asked;
            let all = known[start as usize..(start + length) as usize].iter().all(|&it| it);
            prop_assert_eq!(verified.contains(start, start + length), all);
        }
    }

    #[test]
    fn remembers_a_bounded_number_of_parts_and_the_large_ones() {
        let mut verified = Verified::default();
        verified.add(0, 1000);
        for at in 1..100 {
            verified.add(at * 2000, at * 2000 + 10);
        }
        assert!(verified.parts.len() <= PARTS_MAX);
        assert!(verified.contains(0, 1000));
    }
}
