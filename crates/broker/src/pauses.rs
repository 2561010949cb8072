//! Pauses of the whole process: it was stopped (SIGSTOP), its virtual machine was, or it got no
//! processor.
//!
//! After a pause every deadline that came meanwhile has passed, and what clients sent in time lies
//! unread in the sockets. So there is one rule for all deadlines that cost a peer something (a
//! member's session or rebalance, a connection that is idle or half way through a request): **after
//! a pause, none of them counts until what has arrived has been read.** Code that
//! watches such a deadline asks [`Pauses::grace`] first.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};
use tracing::warn;

use crate::node::Node;

/// How often the clock is looked at.
const TICK: Duration = Duration::from_millis(500);

/// From how long on, between two looks, it was a pause.
const PAUSE_MIN: Duration = Duration::from_millis(1500);

/// How long deadlines wait after a pause: as long as the pause, but no longer than this.
const GRACE_MAX: Duration = Duration::from_secs(5);

/// What is known of pauses.
#[derive(Debug)]
pub(crate) struct Pauses(Mutex<State>);

#[derive(Debug)]
struct State {
    looked_at: Instant,
    /// Until when deadlines wait.
    grace_until: Instant,
}

impl Pauses {
    pub(crate) fn new() -> Pauses {
        let now = Instant::now();
        Pauses(Mutex::new(State {
            looked_at: now,
            grace_until: now,
        }))
    }

    /// Until when deadlines have to wait, if there has been a pause just now. The first to ask after
    /// it may be the one that notices it.
    pub(crate) fn grace(&self) -> Option<Instant> {
        let mut state = self.0.lock();
        let now = Instant::now();
        let pause = now - state.looked_at;
        state.looked_at = now;
        if pause >= PAUSE_MIN {
            state.grace_until = now + pause.min(GRACE_MAX);
            warn!(
                "the process stood still for {pause:.1?}; deadlines of clients wait until what has \
                 arrived meanwhile is read"
            );
        }
        (state.grace_until > now).then_some(state.grace_until)
    }
}

/// Looks at the clock until the broker stops.
pub(crate) async fn watch(node: Arc<Node>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            () = node.stopping.cancelled() => return,
        }
        node.pauses.grace();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_a_pause_deadlines_wait_for_a_while_and_otherwise_they_do_not() {
        let pauses = Pauses::new();
        for _ in 0..100 {
            tokio::time::advance(TICK).await;
            assert_eq!(pauses.grace(), None);
        }
        tokio::time::advance(Duration::from_secs(12)).await;
        let until = pauses.grace().expect("it was a pause");
        assert_eq!(until - Instant::now(), GRACE_MAX);
        for _ in 0..9 {
            tokio::time::advance(TICK).await;
            assert_eq!(pauses.grace(), Some(until));
        }
        tokio::time::advance(TICK).await;
        assert_eq!(pauses.grace(), None);
    }
}
