//! A member of a group that processes each record at least once, and says what it is given.
//!
//! `cargo run --example consume -- localhost:9092 GROUP TOPIC...`

use std::time::Duration;

use kohort::{
    Consumer,
    consumer::{OffsetReset, Rebalance, RebalanceHandler},
};

struct Says;

impl RebalanceHandler for Says {
    async fn assigned(&self, rebalance: &Rebalance) {
        println!("assigned {:?}", rebalance.partitions());
    }

    async fn revoked(&self, rebalance: &Rebalance) {
        println!("revoked {:?}", rebalance.partitions());
    }

    async fn lost(&self, rebalance: &Rebalance) {
        println!("lost {:?}", rebalance.partitions());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> kohort::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(servers), Some(group)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: consume SERVERS GROUP TOPIC...");
        std::process::exit(2);
    };
    let mut consumer = Consumer::builder()
        .bootstrap_servers(servers)
        .group_id(group)
        .offset_reset(OffsetReset::Earliest)
        // Committed when the records have been processed, below.
        .auto_commit(false)
        .rebalance_handler(Says)
        .build()
        .await?;
    consumer.subscribe(arguments)?;
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        let records = tokio::select! {
            records = consumer.poll() => records?,
            _ = &mut interrupted => break,
        };
        for record in &records {
            let value = String::from_utf8_lossy(record.value.unwrap_or_default());
            println!(
                "{}-{} at {}: {value}",
                record.topic, record.partition, record.offset
            );
        }
        if let Err(error) = consumer.commit().await {
            // The records come again, here or at another member.
            eprintln!("not committed: {error}");
        }
    }
    consumer.close_within(Duration::from_secs(10)).await
}
