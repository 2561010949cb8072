//! All chance of a run, from one seed.

/// All chance of a run.
#[derive(Debug, Clone)]
pub(crate) struct Random(fastrand::Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(fastrand::Rng::with_seed(seed))
    }

    /// Whether something happens that does so in that many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.0.u32(0..100) < percent
    }

    /// A number from `low` up to, and including, `high`.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.i64(low..=high)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.usize(0..end)
    }

    /// One of several.
    pub(crate) fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// One of several, if there are any.
    pub(crate) fn any<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| *self.one_of(all))
    }

    /// Bytes that nobody guesses.
    pub(crate) fn seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.0.fill(&mut seed);
        seed
    }
}
