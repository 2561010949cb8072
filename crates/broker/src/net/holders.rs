//! Connections that hold memory which others wait for.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// All connections that hold memory of a budget and owe something for it: the rest of a request,
/// or the reading of a response.
///
/// When memory is short, whoever holds the most has to go: a few peers that take much and give
/// nothing back cannot keep the others waiting.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holders {
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    next_id: u64,
    by_id: FxHashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    bytes: usize,
    progress_at: Instant,
    dismissal: CancellationToken,
}

/// What one connection holds.
#[derive(Debug)]
pub(crate) struct Holder {
    id: u64,
    held: Arc<Mutex<Held>>,
}

impl Holders {
    /// Joins those who hold memory. `dismissal` tells the connection to go.
    pub(crate) fn join(&self, dismissal: CancellationToken) -> Holder {
        let mut held = self.held.lock();
        held.next_id += 1;
        let id = held.next_id;
        let entry = Entry {
            bytes: 0,
            progress_at: Instant::now(),
            dismissal,
        };
        held.by_id.insert(id, entry);
        drop(held);
        Holder {
            id,
            held: Arc::clone(&self.held),
        }
    }

    /// Dismisses the one that holds the most, of those that have made no progress for so long.
    pub(crate) fn dismiss_largest(&self, idle: Duration) {
        let held = self.held.lock();
        let candidates = held.by_id.values().filter(|entry| {
            entry.bytes > 0
                && !entry.dismissal.is_cancelled()
                && entry.progress_at.elapsed() >= idle
        });
        if let Some(largest) = candidates.max_by_key(|entry| entry.bytes) {
            largest.dismissal.cancel();
        }
    }
}

impl Holder {
    /// Notes how much is held now.
    pub(crate) fn note(&self, bytes: usize) {
        if let Some(entry) = self.held.lock().by_id.get_mut(&self.id) {
            entry.bytes = bytes;
            entry.progress_at = Instant::now();
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.held.lock().by_id.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_has_to_go_and_who_has_left_is_forgotten() {
        let holders = Holders::default();
        let tokens = [(); 3].map(|()| CancellationToken::new());
        let [small, large, gone] = tokens.each_ref().map(|token| holders.join(token.clone()));
        small.note(10);
        large.note(100);
        gone.note(1000);
        drop(gone);
        holders.dismiss_largest(Duration::ZERO);
        assert!(tokens[1].is_cancelled());
        assert!(!tokens[0].is_cancelled());
        // A connection that makes progress stays.
        holders.dismiss_largest(Duration::from_secs(60));
        assert!(!tokens[0].is_cancelled());
    }
}
