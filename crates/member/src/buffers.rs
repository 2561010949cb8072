//! A pool of buffers for record batches. Buffers of their size would otherwise be requested from
//! the system each time, page by page.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// A pool of buffers for record batches.
#[derive(Debug)]
pub struct BufferPool {
    free: Mutex<Vec<Vec<u8>>>,
    count_max: usize,
    /// The buffer of a single large record is not kept.
    capacity_max: usize,
}

impl BufferPool {
    /// A pool that keeps at most `count_max` free buffers for batches of about `batch_bytes`.
    pub fn new(count_max: usize, batch_bytes: usize) -> Arc<BufferPool> {
        Arc::new(BufferPool {
            free: Mutex::default(),
            count_max,
            // Vectors grow by doubling.
            capacity_max: (2 * batch_bytes).max(4096),
        })
    }

    /// An empty buffer.
    pub fn acquire(&self) -> Vec<u8> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.pop().unwrap_or_default()
    }

    fn release(&self, mut buffer: Vec<u8>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < self.count_max && buffer.capacity() <= self.capacity_max {
            buffer.clear();
            free.push(buffer);
        }
    }

    /// The contents of a buffer, which returns to the pool when the last reference is dropped.
    pub fn share(self: &Arc<BufferPool>, buffer: Vec<u8>) -> Bytes {
        Bytes::from_owner(Shared {
            buffer,
            pool: self.clone(),
        })
    }
}

struct Shared {
    buffer: Vec<u8>,
    pool: Arc<BufferPool>,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.pool.release(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_returns_to_the_pool_with_the_last_reference_to_it() {
        let pool = BufferPool::new(9, 1000);
        let shared = pool.share(vec![7; 1000]);
        let part = shared.slice(10..20);
        drop(shared);
        assert_eq!(pool.acquire().capacity(), 0);
        drop(part);
        assert_eq!(pool.acquire().capacity(), 1000);
    }

    #[test]
    fn the_buffer_of_a_large_record_is_not_kept() {
        let pool = BufferPool::new(9, 1000);
        drop(pool.share(vec![7; 100_000]));
        assert_eq!(pool.acquire().capacity(), 0);
    }
}
