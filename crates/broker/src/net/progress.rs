//! How long a peer may take over what it has begun: sending a request, or reading a response.

use tokio::time::{Duration, Instant};

/// How fast a peer has to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProgressLimit {
    /// How long nothing may move.
    pub(super) stall: Duration,
    /// How many bytes have to move in a second, on average over that time.
    pub(super) bytes_per_second: u32,
}

/// The moment at which a peer is cut off that has begun something.
///
/// Every byte that moves puts it off by the time that the byte may take, and it is never further
/// away than the time that nothing may move: a peer is cut off when it stops, and also when it goes
/// on byte by byte. However large a request is, it has the time that it needs.
#[derive(Debug)]
pub(super) struct ProgressDeadline {
    limit: ProgressLimit,
    at: Instant,
}

impl ProgressDeadline {
    pub(super) fn new(limit: ProgressLimit) -> ProgressDeadline {
        ProgressDeadline {
            limit,
            at: Instant::now() + limit.stall,
        }
    }

    /// Something begins, or the peer could not go on until now.
    pub(super) fn restart(&mut self) {
        self.at = Instant::now() + self.limit.stall;
    }

    /// Some bytes have moved.
    pub(super) fn moved(&mut self, bytes: usize) {
        let time = bytes as f64 / f64::from(self.limit.bytes_per_second.max(1));
        let latest = Instant::now() + self.limit.stall;
        // What takes longer than the whole time that nothing may move sets the deadline anew.
        self.at = if time < self.limit.stall.as_secs_f64() {
            latest.min(self.at + Duration::from_secs_f64(time))
        } else {
            latest
        };
    }

    pub(super) fn has_passed(&self) -> bool {
        self.at <= Instant::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: ProgressLimit = ProgressLimit {
        stall: Duration::from_secs(30),
        bytes_per_second: 4096,
    };

    /// How long a peer lasts that moves `bytes` every so often; `None` if it lasts for a day.
    async fn lasts(bytes: usize, every: Duration) -> Option<Duration> {
        let from = Instant::now();
        let mut deadline = ProgressDeadline::new(LIMIT);
        while from.elapsed() < Duration::from_secs(86_400) {
            tokio::time::advance(every).await;
            if deadline.has_passed() {
                return Some(from.elapsed());
            }
            deadline.moved(bytes);
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_trickles_is_cut_off_and_a_slow_link_is_not() {
        let second = Duration::from_secs(1);
        let trickle = lasts(1, 5 * second).await.expect("it is cut off");
        assert!(trickle <= 40 * second, "{trickle:?}");
        assert!(lasts(2_000, second).await.is_some());
        assert_eq!(lasts(5_000, second).await, None);
        // In bursts, as a link does that is lost now and then.
        assert_eq!(lasts(200_000, 25 * second).await, None);
        // Having been fast for long earns no time to be slow in.
        let mut deadline = ProgressDeadline::new(LIMIT);
        for _ in 0..1_000 {
            tokio::time::advance(second / 10).await;
            deadline.moved(10 << 20);
        }
        tokio::time::advance(31 * second).await;
        assert!(deadline.has_passed());
    }
}
