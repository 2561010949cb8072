//! Prints the records of a topic since a point in time, without a group, and ends.
//!
//! `cargo run --example from_timestamp -- localhost:9092 TOPIC MINUTES`

use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use kohort::{
    Admin, ClientConfig, Consumer, IsolationLevel, OffsetSpec, TopicPartition, consumer::Seek,
};

#[tokio::main]
async fn main() -> kohort::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(servers), Some(topic), Some(Ok(minutes))) = (
        arguments.next(),
        arguments.next(),
        arguments.next().map(|minutes| minutes.parse::<u64>()),
    ) else {
        eprintln!("usage: from_timestamp SERVERS TOPIC MINUTES");
        std::process::exit(2);
    };
    let since = SystemTime::now() - Duration::from_secs(60 * minutes);
    let since_ms = since
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis() as i64;
    let count = run(&servers, &topic, since_ms).await?;
    eprintln!("{count} records");
    Ok(())
}

/// Reads from the first record at or after `since_ms` to where the partitions end now. Returns how
/// many records that were.
pub(crate) async fn run(servers: &str, topic: &str, since_ms: i64) -> kohort::Result<usize> {
    let admin = Admin::connect(ClientConfig::new(servers)).await?;
    let described = admin.describe_topics(&[topic.into()]).await?;
    let mut partitions = Vec::new();
    for (_, topic) in described {
        let topic = topic?;
        let indexes = topic.partitions.iter().map(|it| it.partition);
        partitions.extend(indexes.map(|index| TopicPartition::new(topic.name.clone(), index)));
    }
    let at = |spec| {
        let partitions = partitions.iter().cloned();
        partitions
            .map(move |partition| (partition, spec))
            .collect::<Vec<_>>()
    };
    let isolation = IsolationLevel::ReadUncommitted;
    let starts = admin
        .list_offsets(&at(OffsetSpec::Timestamp(since_ms)), isolation)
        .await;
    let ends = admin.list_offsets(&at(OffsetSpec::Latest), isolation).await;
    let ends: HashMap<_, _> = ends.into_iter().collect();
    // Partitions without a record since then are left out.
    let mut left = HashMap::new();
    let mut assignment = Vec::new();
    for (partition, start) in starts {
        let Some(start) = start?.offset else { continue };
        if let Some(Ok(end)) = ends.get(&partition)
            && let Some(end) = end.offset
            && start < end
        {
            left.insert(partition.clone(), end);
            assignment.push((partition, Seek::Offset(start)));
        }
    }
    let mut consumer = Consumer::builder()
        .bootstrap_servers(servers)
        .build()
        .await?;
    consumer.assign(assignment)?;
    let mut count = 0;
    while !left.is_empty() {
        for record in &consumer.poll().await? {
            let partition = TopicPartition::new(record.topic.clone(), record.partition);
            let Some(&end) = left.get(&partition) else {
                continue;
            };
            if record.offset < end {
                count += 1;
                println!("{} {partition} at {}", record.timestamp, record.offset);
            }
            if record.offset + 1 >= end {
                left.remove(&partition);
            }
        }
    }
    Ok(count)
}
