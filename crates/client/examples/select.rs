//! Waits for records and for other things at once, and stops gracefully.
//!
//! `cargo run --example select -- localhost:9092 GROUP TOPIC`, then Ctrl-C.

use std::{future::Future, pin::pin, time::Duration};

use kohort::{Consumer, consumer::OffsetReset};
use tokio::time::interval;

#[tokio::main]
async fn main() -> kohort::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(servers), Some(group), Some(topic)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        eprintln!("usage: select SERVERS GROUP TOPIC");
        std::process::exit(2);
    };
    let interrupted = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    run(&servers, &group, &topic, interrupted).await?;
    Ok(())
}

/// Counts records until `stop`, and returns how many there were.
pub(crate) async fn run(
    servers: &str,
    group: &str,
    topic: &str,
    stop: impl Future<Output = ()>,
) -> kohort::Result<usize> {
    let mut consumer = Consumer::builder()
        .bootstrap_servers(servers)
        .group_id(group)
        .offset_reset(OffsetReset::Earliest)
        .build()
        .await?;
    consumer.subscribe([topic])?;
    let mut stop = pin!(stop);
    let mut every_ten_seconds = interval(Duration::from_secs(10));
    let mut count = 0;
    loop {
        // Every branch can be dropped and begun again: no record is lost.
        tokio::select! {
            record = consumer.recv() => {
                let record = record?;
                count += 1;
                println!("{} at {}", record.topic_partition(), record.offset);
            }
            _ = every_ten_seconds.tick() => println!("{count} records so far"),
            () = &mut stop => break,
        }
    }
    // The last record is processed, but the consumer was not asked for another one.
    consumer.finish();
    consumer.close().await?;
    Ok(count)
}
