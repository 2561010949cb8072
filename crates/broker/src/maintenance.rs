//! What is to be done to logs now and then.

use std::sync::Arc;

use kohort_log::LogError;
use tokio::time::{Duration, Instant, MissedTickBehavior};
use tracing::{info, warn};

use crate::{node::Node, topics::Partition};

/// How often one looks whether something is due.
const TICK: Duration = Duration::from_secs(5);

/// How often files that are not used are closed: they stay open for at most twice as long.
const IDLE_INTERVAL: Duration = Duration::from_secs(30);

/// How long after the start the first look is taken.
const FIRST_DELAY: Duration = Duration::from_secs(30);

/// Deletes old segments, compacts, and opens partitions that have failed once more; until the
/// broker stops.
pub(crate) async fn run(node: Arc<Node>) {
    let retention = node.fixed.retention_check_interval;
    let compaction = node.fixed.cleaner_backoff;
    let start = Instant::now();
    let mut retention_at = start + FIRST_DELAY.min(retention);
    let mut idle_at = start + IDLE_INTERVAL;
    let mut compaction_at = start + FIRST_DELAY.min(compaction);
    let mut ticks = tokio::time::interval(
        TICK.min(retention)
            .min(compaction.max(Duration::from_millis(10))),
    );
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = node.stopping.cancelled() => return,
        }
        let now = Instant::now();
        let (retain, compact) = (now >= retention_at, now >= compaction_at);
        if retain {
            retention_at = now + retention;
        }
        if compact {
            compaction_at = now + compaction;
        }
        let close_idle = now >= idle_at;
        if close_idle {
            idle_at = now + IDLE_INTERVAL;
        }
        let node = Arc::clone(&node);
        let work = tokio::task::spawn_blocking(move || {
            look_through(&node, retain, compact);
            if close_idle {
                node.catalog.logs.close_idle_files();
            }
        });
        if let Err(panic) = work.await {
            std::panic::resume_unwind(panic.into_panic());
        }
    }
}

fn look_through(node: &Node, retain: bool, compact: bool) {
    let snapshot = node.snapshot();
    let partitions = snapshot.topics.values().flat_map(|topic| &topic.partitions);
    for partition in partitions {
        if node.stopping.is_cancelled() {
            return;
        }
        partition.try_again();
        partition.look();
        if retain || compact {
            maintain(node, partition, retain);
        }
    }
}

fn maintain(node: &Node, partition: &Partition, retain: bool) {
    let Some(log) = partition.opened() else {
        return;
    };
    if !retain && !log.config().cleanup_policy.compacts() {
        return;
    }
    match log.maintain(node.clock.date_ms()) {
        Ok(done) if done.segments_deleted + done.segments_compacted > 0 => info!(
            "{partition}: {} segments deleted ({} bytes), {} compacted ({} bytes freed)",
            done.segments_deleted,
            done.bytes_deleted,
            done.segments_compacted,
            done.bytes_compacted
        ),
        Ok(_) => {}
        Err(error) => {
            partition.failed(&error);
            if !matches!(error, LogError::Corrupt { .. }) {
                warn!("{partition}: {error}");
            }
        }
    }
}
