//! What is to be checked, and how it ended.

use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use tokio::time::timeout;

use crate::world::Checked;

/// For one check.
const LIMIT: Duration = Duration::from_secs(300);
/// Checks at a time: most of them wait for the broker most of the time.
const AT_A_TIME: usize = 8;

type Check<'a> = Pin<Box<dyn Future<Output = Checked> + 'a>>;

/// Checks that wait to be run.
#[derive(Default)]
pub(crate) struct Report<'a> {
    only: Option<String>,
    checks: Vec<(String, Check<'a>)>,
    passed: usize,
    failed: usize,
}

impl<'a> Report<'a> {
    pub(crate) fn new(only: Option<String>) -> Report<'a> {
        Report {
            only,
            ..Report::default()
        }
    }

    /// Adds a check.
    pub(crate) fn check(
        &mut self,
        name: impl Into<String>,
        check: impl Future<Output = Checked> + 'a,
    ) {
        let name = name.into();
        let left_out = |part: &String| !name.contains(part.as_str());
        if !self.only.as_ref().is_some_and(left_out) {
            self.checks.push((name, Box::pin(check)));
        }
    }

    /// Runs what was added so far, several checks at a time.
    pub(crate) async fn run_together(&mut self) {
        self.run(AT_A_TIME).await;
    }

    /// Runs what was added so far, one after the other.
    pub(crate) async fn run_alone(&mut self) {
        self.run(1).await;
    }

    async fn run(&mut self, at_a_time: usize) {
        let checks = std::mem::take(&mut self.checks).into_iter();
        let checks = checks.map(|(name, check)| ended(name, check));
        let mut ended = stream::iter(checks).buffer_unordered(at_a_time);
        while let Some(passed) = ended.next().await {
            if passed {
                self.passed += 1
            } else {
                self.failed += 1
            }
        }
    }

    pub(crate) fn all_passed(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

/// Runs a check and prints how it ended; whether it passed.
async fn ended(name: String, check: Check<'_>) -> bool {
    let began = Instant::now();
    tracing::info!("begins: {name}");
    let ended = timeout(LIMIT, check).await;
    let took = began.elapsed().as_secs_f64();
    let problem = match ended {
        Ok(Ok(())) => {
            println!("ok {name} ({took:.1} s)");
            return true;
        }
        Ok(Err(problem)) => problem.to_string(),
        Err(_) => "it did not end".to_owned(),
    };
    println!(
        "FAILED {name}: {} ({took:.1} s)",
        problem.replace('\n', " ")
    );
    false
}
