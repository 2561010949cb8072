//! How often one complains about peers.

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

/// Complaints in a second.
const PER_SECOND_MAX: u32 = 10;

/// Keeps a peer that misbehaves many times a second from filling the log.
#[derive(Debug)]
pub(crate) struct Complaints {
    second: Mutex<(Instant, u32)>,
}

impl Complaints {
    pub(crate) fn new() -> Complaints {
        Complaints {
            second: Mutex::new((Instant::now(), 0)),
        }
    }

    /// Whether there may be one more.
    pub(crate) fn admit(&self) -> bool {
        let mut second = self.second.lock();
        let now = Instant::now();
        if now - second.0 >= Duration::from_secs(1) {
            *second = (now, 0);
        }
        second.1 += 1;
        second.1 <= PER_SECOND_MAX
    }
}
