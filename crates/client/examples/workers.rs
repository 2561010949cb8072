//! Processes partitions in parallel, and the records of each partition in order.
//!
//! Each partition has a task of its own. What a task has finished is committed at once, so after a
//! failure at most the records in progress are processed again.
//!
//! `cargo run --example workers -- localhost:9092 GROUP TOPIC`

use std::{collections::HashMap, time::Duration};

use kohort::{
    CommittedOffset, Consumer, TopicPartition,
    consumer::{OffsetReset, OwnedRecord},
};
use tokio::{sync::mpsc, time::sleep};

/// How many records may wait for one worker.
const QUEUED_MAX: usize = 100;

type Finished = (TopicPartition, CommittedOffset);

#[tokio::main]
async fn main() -> kohort::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(servers), Some(group), Some(topic)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        eprintln!("usage: workers SERVERS GROUP TOPIC");
        std::process::exit(2);
    };
    run(&servers, &group, &topic, usize::MAX).await
}

/// Processes at least `count` records.
pub(crate) async fn run(
    servers: &str,
    group: &str,
    topic: &str,
    count: usize,
) -> kohort::Result<()> {
    let mut consumer = Consumer::builder()
        .bootstrap_servers(servers)
        .group_id(group)
        .offset_reset(OffsetReset::Earliest)
        // Workers finish records in another order than the consumer returns them.
        .auto_commit(false)
        .build()
        .await?;
    consumer.subscribe([topic])?;
    let committer = consumer.clone();
    let (finished, mut to_commit) = mpsc::channel(QUEUED_MAX);
    let mut workers: HashMap<TopicPartition, mpsc::Sender<OwnedRecord>> = HashMap::new();
    let mut processed = 0;
    while processed < count {
        tokio::select! {
            record = consumer.recv() => {
                let record = record?;
                let worker = workers.entry(record.topic_partition()).or_insert_with(|| {
                    let (sender, queue) = mpsc::channel(QUEUED_MAX);
                    tokio::spawn(work(queue, finished.clone()));
                    sender
                });
                // Waits for a worker that is behind, and with it stops fetching.
                let _ = worker.send(record).await;
            }
            Some((partition, next)) = to_commit.recv() => {
                processed += 1;
                if let Err(error) = committer.commit_offsets(&[(partition, next)]).await {
                    // The partition belongs to another member now, which starts at the last commit.
                    eprintln!("not committed: {error}");
                }
            }
        }
    }
    consumer.close_within(Duration::from_secs(10)).await
}

async fn work(mut queue: mpsc::Receiver<OwnedRecord>, finished: mpsc::Sender<Finished>) {
    while let Some(record) = queue.recv().await {
        // The work itself.
        sleep(Duration::from_millis(1)).await;
        println!("{} at {}", record.topic_partition(), record.offset);
        let next = CommittedOffset::new(record.offset + 1);
        if finished
            .send((record.topic_partition(), next))
            .await
            .is_err()
        {
            break;
        }
    }
}
