//! What work costs.

use rustix::time::{ClockId, clock_gettime};

/// Since when the time is taken.
pub(crate) struct Began {
    wall: f64,
    cpu: f64,
}

/// What the work took.
pub(crate) struct Usage {
    pub(crate) seconds: f64,
    /// Of all threads of the process, in its own code and in the system.
    pub(crate) cpu_seconds: f64,
}

impl Began {
    pub(crate) fn now() -> Began {
        Began {
            wall: seconds(ClockId::Monotonic),
            cpu: seconds(ClockId::ProcessCPUTime),
        }
    }

    pub(crate) fn until_now(&self) -> Usage {
        Usage {
            seconds: seconds(ClockId::Monotonic) - self.wall,
            cpu_seconds: seconds(ClockId::ProcessCPUTime) - self.cpu,
        }
    }
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
