//! When to try again, and when to give up.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::{Error, Result};

/// How long to wait between attempts: doubling from `first` to `most`, each varied by a fifth, so
/// that clients that failed together do not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// At most.
    pub most: Duration,
}

impl Backoff {
    /// How long to wait after `failures` failures in a row.
    pub fn after(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        let full = self.first.saturating_mul(1 << doublings).min(self.most);
        full.mul_f64(0.8 + 0.4 * random_fraction())
    }
}

/// A number from 0 (included) to 1 (not included).
pub(crate) fn random_fraction() -> f64 {
    random_u32() as f64 / (1u64 << 32) as f64
}

/// An unpredictable number, or an arbitrary one if the system has no randomness.
pub(crate) fn random_u32() -> u32 {
    getrandom::u32().unwrap_or(0x5bd1_e995)
}

/// As good as never: what an application means that waits for `Duration::MAX`, which no clock can hold.
const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);

/// Attempts at one thing, until a deadline.
#[derive(Debug)]
pub struct Retry {
    what: String,
    timeout: Duration,
    deadline: Instant,
    backoff: Backoff,
    failures: u32,
    /// What went wrong last.
    last: Option<Error>,
}

impl Retry {
    /// Attempts to do `what` ("list the groups"), which errors name, within `timeout`.
    pub fn new(what: impl Into<String>, timeout: Duration, backoff: Backoff) -> Retry {
        Retry {
            what: what.into(),
            timeout,
            deadline: Instant::now() + timeout.min(NEVER),
            backoff,
            failures: 0,
            last: None,
        }
    }

    /// When it is too late.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How long is left.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// How many attempts have failed.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Runs one attempt, no longer than the deadline allows.
    pub async fn attempt<T>(&self, attempt: impl Future<Output = Result<T>>) -> Result<T> {
        match tokio::time::timeout_at(self.deadline, attempt).await {
            Ok(result) => result,
            // Why the attempts before did not succeed says more than that there was no time left.
            Err(_) => Err(self.timed_out(self.last.clone())),
        }
    }

    /// After a failed attempt: waits until it is time for the next one. An error that trying again
    /// cannot help, or that comes too late, is returned.
    pub async fn failed(&mut self, error: Error) -> Result<()> {
        if !error.is_retriable() {
            return Err(error);
        }
        self.failures += 1;
        let next = Instant::now() + self.backoff.after(self.failures);
        if next >= self.deadline {
            return Err(self.timed_out(Some(error)));
        }
        tracing::debug!(what = self.what, failures = self.failures, %error, "trying again");
        self.last = Some(error);
        sleep_until(next).await;
        Ok(())
    }

    fn timed_out(&self, last: Option<Error>) -> Error {
        match last {
            Some(timeout @ Error::Timeout { .. }) => timeout,
            last => Error::Timeout {
                what: self.what.clone(),
                after: self.timeout,
                last: last.map(Box::new),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff {
        first: Duration::from_millis(100),
        most: Duration::from_millis(1000),
    };

    #[test]
    fn the_backoff_doubles_up_to_its_limit_and_varies() {
        for (failures, full) in [
            (0, 100),
            (1, 100),
            (2, 200),
            (4, 800),
            (5, 1000),
            (90, 1000),
        ] {
            let wait = BACKOFF.after(failures).as_millis();
            assert!(
                (full * 8 / 10..=full * 12 / 10).contains(&wait),
                "{failures} failures: {wait} ms"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retrying_ends_at_the_deadline_and_tells_the_last_error() {
        let mut retry = Retry::new("ask", Duration::from_secs(5), BACKOFF);
        let disconnected = Error::Disconnected {
            broker: 1,
            address: "here".into(),
            reason: "gone".into(),
        };
        let error = loop {
            if let Err(error) = retry.failed(disconnected.clone()).await {
                break error;
            }
        };
        assert!(error.to_string().ends_with("ended: gone"), "{error}");
        assert!(retry.failures() > 4);
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_the_deadline_ends_tells_why_those_before_it_failed() {
        let mut retry = Retry::new("ask", Duration::from_secs(5), BACKOFF);
        let disconnected = Error::Disconnected {
            broker: 1,
            address: "here".into(),
            reason: "gone".into(),
        };
        retry.failed(disconnected).await.unwrap();
        let error = retry.attempt::<()>(std::future::pending()).await;
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("ended: gone"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_helped_is_not_retried() {
        let mut retry = Retry::new("ask", Duration::from_secs(5), BACKOFF);
        assert!(matches!(
            retry.failed(Error::Closed).await,
            Err(Error::Closed)
        ));
    }

    #[test]
    fn who_waits_for_ever_may_say_so() {
        let retry = Retry::new("it", Duration::MAX, BACKOFF);
        assert!(retry.remaining() > Duration::from_secs(86_400));
    }
}
