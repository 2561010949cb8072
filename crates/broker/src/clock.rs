//! What time it is: dates by the wall clock, intervals by the monotonic clock.
//!
//! The wall clock may be set at any time, and goes on while the machine sleeps. What is written
//! down, shown or compared with the date of a record is a date. A session, a timeout or a pause is
//! an interval: it must not end because the wall clock was set.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;

/// Tells the date in milliseconds since 1970.
#[derive(Clone)]
pub(crate) struct WallClock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl WallClock {
    pub(crate) fn new(date_ms: impl Fn() -> i64 + Send + Sync + 'static) -> WallClock {
        WallClock(Arc::new(date_ms))
    }

    /// The machine's clock.
    pub(crate) fn system() -> WallClock {
        WallClock::new(|| {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
            since_epoch.unwrap_or_default().as_millis() as i64
        })
    }

    fn date_ms(&self) -> i64 {
        (self.0)()
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.date_ms())
    }
}

/// Both clocks.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    wall: WallClock,
    started_at: Instant,
    started_at_ms: i64,
    /// The last answer of [`date_offset_ms`](Clock::date_offset_ms).
    date_offset_ms: Arc<AtomicI64>,
}

/// Up to so much the clocks differ by rounding, and because the wall clock is kept right.
const DATE_OFFSET_SLACK_MS: u64 = 50;

impl Clock {
    /// The machine's clocks.
    #[cfg(test)]
    pub(crate) fn system() -> Clock {
        Clock::start(WallClock::system())
    }

    pub(crate) fn start(wall: WallClock) -> Clock {
        Clock {
            started_at: Instant::now(),
            started_at_ms: wall.date_ms(),
            wall,
            date_offset_ms: Arc::default(),
        }
    }

    /// The date: milliseconds since 1970 as the wall clock has them now.
    pub(crate) fn date_ms(&self) -> i64 {
        self.wall.date_ms()
    }

    /// Steady time, for intervals: the date of the start and what has passed since. It never jumps.
    pub(crate) fn steady_ms(&self) -> i64 {
        self.started_at_ms + self.started_at.elapsed().as_millis() as i64
    }

    /// How far the date is ahead of the steady time. It changes when that is more than rounding, so
    /// that two dates made of the same steady time are the same.
    pub(crate) fn date_offset_ms(&self) -> i64 {
        let known = self.date_offset_ms.load(Ordering::Relaxed);
        let offset = self.date_ms() - self.steady_ms();
        if offset.abs_diff(known) <= DATE_OFFSET_SLACK_MS {
            return known;
        }
        self.date_offset_ms.store(offset, Ordering::Relaxed);
        offset
    }

    /// The moment at which [`steady_ms`](Clock::steady_ms) will be `at_ms`; at most a day away.
    pub(crate) fn instant(&self, at_ms: i64) -> Instant {
        let left = (at_ms - self.steady_ms()).clamp(0, 86_400_000);
        Instant::now() + Duration::from_millis(left as u64)
    }
}
