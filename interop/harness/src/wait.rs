//! Waiting for a condition, always with a deadline.

use std::time::{Duration, Instant};

use crate::failure::Failure;

/// Asks again and again until `condition` gives something, or `limit` is over.
/// `what` completes the sentence "… did not happen".
pub(crate) fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut condition: impl FnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = condition()? {
            return Ok(value);
        }
        if Instant::now() >= deadline {
            return Err(Failure::new(format!(
                "{what}: not within {} s",
                limit.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
