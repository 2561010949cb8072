//! What a client costs that has nothing to do, and what is left of one that is dropped.

use std::time::{Duration, Instant};

use kohort::ErrorCode;

use crate::report::Report;
use crate::subscribing::{PROTOCOLS, member, values};
use crate::world::{AT_ONCE, Checked, World, unique, until};
use crate::{ensure, ensure_eq};

pub(crate) fn check<'a>(world: &'a World, report: &mut Report<'a>) {
    for protocol in PROTOCOLS {
        let name = format!("at rest ({protocol}): an idle consumer");
        report.check(name, idle(world, protocol));
        let name = format!("at rest ({protocol}): a consumer is dropped");
        report.check(name, dropped(world, protocol));
    }
}

/// How long this thread has been on a processor; every client here runs on it.
fn on_processor() -> Checked<Duration> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = statistics.split_whitespace().next().unwrap_or_default();
    Ok(Duration::from_nanos(first.parse()?))
}

async fn idle(world: &World, protocol: &str) -> Checked {
    const CONSUMERS: usize = 4;
    const TIME: Duration = Duration::from_secs(5);
    if on_processor().is_err() {
        return Ok(());
    }
    let topic = world.topic("idle", 4).await?;
    world.fill(&topic, 0..100).await?;
    let mut consumers = Vec::new();
    for _ in 0..CONSUMERS {
        let mut consumer = member(world, &unique("idle"), protocol, &[]).await?;
        consumer.subscribe([topic.as_str()])?;
        values(&mut consumer, 100).await?;
        consumers.push(consumer);
    }
    let polling = consumers.iter_mut().map(|consumer| consumer.poll());
    let polling = futures_util::future::select_all(polling.map(Box::pin));
    let (began, before) = (Instant::now(), on_processor()?);
    let records = tokio::time::timeout(TIME, polling).await;
    ensure!(records.is_err(), "there was something to read");
    let used = on_processor()?.saturating_sub(before);
    let share = used.as_secs_f64() / began.elapsed().as_secs_f64() / CONSUMERS as f64;
    tracing::info!(protocol, "{:.3} % of a core for each", share * 100.0);
    let little = share < 0.01;
    ensure!(little, "{:.2} % of a core", share * 100.0);
    Ok(())
}

async fn dropped(world: &World, protocol: &str) -> Checked {
    let topic = world.topic("dropped", 1).await?;
    world.fill(&topic, 0..10).await?;
    let group = unique("dropped");
    let mut consumer = member(world, &group, protocol, &[]).await?;
    consumer.subscribe([topic.as_str()])?;
    values(&mut consumer, 10).await?;
    let began = Instant::now();
    drop(consumer);
    let took = began.elapsed();
    ensure!(took < AT_ONCE, "dropping took {took:?}");
    // The coordinator is told nevertheless: nobody has to wait for a session to end.
    until("it has left the group", async || {
        match world.admin.describe_group(&group).await {
            Ok(described) => Ok(described.members.is_empty()),
            Err(error) => {
                let gone = Some(ErrorCode::GROUP_ID_NOT_FOUND);
                ensure_eq!(error.code(), gone, "describing the group");
                Ok(true)
            }
        }
    })
    .await?;
    let took = began.elapsed();
    ensure!(took < Duration::from_secs(8), "leaving took {took:?}");
    Ok(())
}
