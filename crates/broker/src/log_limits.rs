//! How many lines of the log peers can cause.
//!
//! The first lines of a kind are logged; when there are too many, the rest is counted, and the count
//! is logged later. What is left out can be seen with `KOHORT_LOG=debug`.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};
use tracing::warn;

use crate::node::Node;

/// How often one says how many lines were left out.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The limits of all lines that peers can cause.
#[derive(Debug)]
pub(crate) struct LogLimits {
    /// Connections that are refused, or closed for what the peer does.
    pub(crate) connections: LogRateLimiter,
    /// What happens to groups.
    pub(crate) groups: LogRateLimiter,
    /// Partitions that cannot be read, each time that a client tries to.
    pub(crate) reads: LogRateLimiter,
    /// Settings that clients change.
    pub(crate) settings: LogRateLimiter,
}

/// Lets some lines into the log at once and a few per second afterwards, and counts the others.
#[derive(Debug)]
pub(crate) struct LogRateLimiter {
    /// What the lines are about.
    subject: &'static str,
    burst: f64,
    per_second: f64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How many lines may come now.
    lines: f64,
    refilled_at: Instant,
    left_out: u64,
}

impl LogLimits {
    pub(crate) fn new() -> LogLimits {
        LogLimits {
            connections: LogRateLimiter::new("connections", 50.0, 1.0),
            // Many groups may come at once, after a start for one.
            groups: LogRateLimiter::new("groups", 1_000.0, 2.0),
            reads: LogRateLimiter::new("partitions that cannot be read", 50.0, 0.2),
            settings: LogRateLimiter::new("changed settings", 100.0, 1.0),
        }
    }

    fn report(&self) {
        for limiter in [&self.connections, &self.groups, &self.reads, &self.settings] {
            let left_out = limiter.take_left_out();
            if left_out > 0 {
                warn!(
                    "{left_out} more lines about {} were left out (KOHORT_LOG=debug shows them)",
                    limiter.subject
                );
            }
        }
    }
}

impl LogRateLimiter {
    fn new(subject: &'static str, burst: f64, per_second: f64) -> LogRateLimiter {
        LogRateLimiter {
            subject,
            burst,
            per_second,
            state: Mutex::new(State {
                lines: burst,
                refilled_at: Instant::now(),
                left_out: 0,
            }),
        }
    }

    /// Whether one more line may be logged. If not, it is counted.
    pub(crate) fn admit(&self) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        let refill = (now - state.refilled_at).as_secs_f64() * self.per_second;
        state.lines = (state.lines + refill).min(self.burst);
        state.refilled_at = now;
        if state.lines < 1.0 {
            state.left_out += 1;
            return false;
        }
        state.lines -= 1.0;
        true
    }

    fn take_left_out(&self) -> u64 {
        std::mem::take(&mut self.state.lock().left_out)
    }
}

/// Says now and then how many lines were left out; until the broker stops.
pub(crate) async fn report(node: Arc<Node>) {
    loop {
        let stopping = tokio::select! {
            () = tokio::time::sleep(REPORT_INTERVAL) => false,
            () = node.stopping.cancelled() => true,
        };
        node.log_limits.report();
        if stopping {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_logged_at_first_and_then_counted() {
        let limiter = LogRateLimiter::new("tests", 10.0, 2.0);
        let admitted = |lines: usize| (0..lines).filter(|_| limiter.admit()).count();
        assert_eq!(admitted(1_000), 10);
        assert_eq!(limiter.take_left_out(), 990);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(admitted(1_000), 6);
        assert_eq!(limiter.take_left_out(), 994);
        assert_eq!(limiter.take_left_out(), 0);
        tokio::time::advance(Duration::from_secs(3_600)).await;
        assert_eq!(admitted(1_000), 10);
    }
}
