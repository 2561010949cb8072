//! Failures of the disk, for tests.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Which operations fail: `first..=last`, counted from when that was decided.
#[derive(Debug)]
pub(crate) struct Faults {
    count: AtomicUsize,
    first: AtomicUsize,
    last: AtomicUsize,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            count: AtomicUsize::new(0),
            first: AtomicUsize::new(usize::MAX),
            last: AtomicUsize::new(0),
        }
    }
}

/// Ends the failures when it is dropped.
pub(crate) struct Fault<'a>(&'a Faults);

impl Drop for Fault<'_> {
    fn drop(&mut self) {
        self.0.first.store(usize::MAX, Ordering::SeqCst);
    }
}

impl Faults {
    /// Fails one operation, after `succeeding` more.
    pub(crate) fn fail_once(&self, succeeding: usize) -> Fault<'_> {
        self.fail(succeeding, succeeding)
    }

    /// Fails every operation after `succeeding` more.
    pub(crate) fn fail_from(&self, succeeding: usize) -> Fault<'_> {
        self.fail(succeeding, usize::MAX)
    }

    fn fail(&self, first: usize, last: usize) -> Fault<'_> {
        self.count.store(0, Ordering::SeqCst);
        self.last.store(last, Ordering::SeqCst);
        self.first.store(first, Ordering::SeqCst);
        Fault(self)
    }

    /// How many operations there were since the failures were decided.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub(super) fn step(&self) -> io::Result<()> {
        let step = self.count.fetch_add(1, Ordering::SeqCst);
        let failing = self.first.load(Ordering::SeqCst)..=self.last.load(Ordering::SeqCst);
        if failing.contains(&step) {
            Err(io::Error::other("injected"))
        } else {
            Ok(())
        }
    }
}
