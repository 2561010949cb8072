//! Memory of batches that are done with, for those to come: what is allocated over and over in
//! such sizes comes from the system each time, page by page.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// Memory of batches that are done with.
#[derive(Debug)]
pub(crate) struct Memory {
    kept: Mutex<Vec<Vec<u8>>>,
    count_max: usize,
    /// That of a single large record is not kept.
    capacity_max: usize,
}

impl Memory {
    /// Keeps the memory of at most `count_max` batches of about `batch_bytes`.
    pub(crate) fn new(count_max: usize, batch_bytes: usize) -> Arc<Memory> {
        Arc::new(Memory {
            kept: Mutex::default(),
            count_max,
            // Vectors grow by doubling.
            capacity_max: (2 * batch_bytes).max(4096),
        })
    }

    pub(crate) fn take(&self) -> Vec<u8> {
        self.kept.lock().pop().unwrap_or_default()
    }

    fn keep(&self, mut memory: Vec<u8>) {
        let mut kept = self.kept.lock();
        if kept.len() < self.count_max && memory.capacity() <= self.capacity_max {
            memory.clear();
            kept.push(memory);
        }
    }

    /// The bytes of a batch. Their memory is returned when the last reference is dropped.
    pub(crate) fn lend(self: &Arc<Memory>, memory: Vec<u8>) -> Bytes {
        Bytes::from_owner(Lent {
            memory,
            owner: self.clone(),
        })
    }
}

struct Lent {
    memory: Vec<u8>,
    owner: Arc<Memory>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.owner.keep(std::mem::take(&mut self.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_when_the_last_who_has_it_lets_go() {
        let memory = Memory::new(9, 1000);
        let lent = memory.lend(vec![7; 1000]);
        let part = lent.slice(10..20);
        drop(lent);
        assert_eq!(memory.take().capacity(), 0);
        drop(part);
        assert_eq!(memory.take().capacity(), 1000);
    }

    #[test]
    fn what_a_large_record_needed_is_not_kept() {
        let memory = Memory::new(9, 1000);
        drop(memory.lend(vec![7; 100_000]));
        assert_eq!(memory.take().capacity(), 0);
    }
}
