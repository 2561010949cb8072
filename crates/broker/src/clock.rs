//! What time it is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The wall clock as it was at the start, and what has passed since by the monotonic clock: no
/// session ends because somebody set the wall clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started_at: Instant,
    started_at_ms: i64,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Clock {
            started_at: Instant::now(),
            started_at_ms: since_epoch.as_millis() as i64,
        }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        self.started_at_ms + self.started_at.elapsed().as_millis() as i64
    }

    /// The moment at which [`now_ms`](Clock::now_ms) will be `at_ms`; at most a day away.
    pub(crate) fn instant(&self, at_ms: i64) -> Instant {
        let left = (at_ms - self.now_ms()).clamp(0, 86_400_000);
        Instant::now() + Duration::from_millis(left as u64)
    }
}
