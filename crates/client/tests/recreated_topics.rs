//! Offsets of a deleted topic never count for the topic that replaces it.

mod common;

use std::{collections::BTreeMap, time::Duration};

use common::{LONG, produce};
use kohort::{
    Admin, CommittedOffset, Consumer, ConsumerConfig, Error, TopicPartition,
    consumer::{GroupProtocol, OffsetReset, Seek},
    testing::TestBroker,
};
use tokio::time::{Instant, timeout};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Commits {
    Automatic,
    /// By `commit`, after each poll.
    Explicit,
    None,
}

async fn recreate(broker: &TestBroker, admin: &Admin) {
    admin.delete_topic("t").await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    produce(broker.servers(), "t", Some(0), 0..30).await;
}

#[tokio::test]
async fn all_records_of_a_topic_that_replaces_another_are_read_once() {
    let protocols = [
        Some(GroupProtocol::Consumer),
        Some(GroupProtocol::Classic),
        None,
    ];
    for protocol in protocols {
        for commits in [Commits::Automatic, Commits::Explicit, Commits::None] {
            let broker = TestBroker::start().await.unwrap();
            let admin = Admin::connect(broker.config()).await.unwrap();
            broker.create_topic("t", 1).await.unwrap();
            produce(broker.servers(), "t", Some(0), 0..20).await;
            let config = ConsumerConfig {
                group_protocol: protocol.unwrap_or_default(),
                offset_reset: OffsetReset::Earliest,
                auto_commit: commits == Commits::Automatic,
                auto_commit_interval: Duration::from_millis(50),
                ..ConsumerConfig::new(broker.servers()).group("g")
            };
            let mut consumer = Consumer::connect(config).await.unwrap();
            match protocol {
                Some(_) => consumer.subscribe(["t"]).unwrap(),
                None => {
                    let start = (TopicPartition::new("t", 0), Seek::Earliest);
                    consumer.assign([start]).unwrap();
                }
            }
            let records = timeout(LONG, consumer.poll()).await.unwrap().unwrap();
            assert_eq!(records.len(), 20);
            recreate(&broker, &admin).await;
            if commits == Commits::Explicit {
                match consumer.commit().await {
                    Err(Error::NotCommitted { .. }) => {}
                    other => panic!("{protocol:?}: {other:?}"),
                }
            }
            let mut seen = BTreeMap::<i64, usize>::new();
            let end = Instant::now() + LONG;
            let mut quiet = 0;
            while (seen.len() < 30 || quiet < 10) && Instant::now() < end {
                let polled = consumer.poll_for(Duration::from_millis(100)).await;
                let records = polled.unwrap();
                quiet = if records.is_empty() { quiet + 1 } else { 0 };
                for record in &records {
                    *seen.entry(record.offset).or_default() += 1;
                }
                if commits == Commits::Explicit {
                    // Said again when the old partition is revoked.
                    match consumer.commit().await {
                        Ok(()) | Err(Error::NotCommitted { .. }) => {}
                        other => panic!("{protocol:?}: {other:?}"),
                    }
                }
            }
            let once = (0..30).map(|offset| (offset, 1)).collect();
            assert_eq!(seen, once, "{protocol:?} {commits:?}");
        }
    }
}

#[tokio::test]
async fn an_explicit_offset_of_the_old_topic_is_refused() {
    let broker = TestBroker::start().await.unwrap();
    let admin = Admin::connect(broker.config()).await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    produce(broker.servers(), "t", Some(0), 0..20).await;
    let config = ConsumerConfig {
        auto_commit: false,
        ..ConsumerConfig::new(broker.servers()).group("g")
    };
    let mut consumer = Consumer::connect(config).await.unwrap();
    let partition = TopicPartition::new("t", 0);
    consumer
        .assign([(partition.clone(), Seek::Earliest)])
        .unwrap();
    let records = timeout(LONG, consumer.poll()).await.unwrap().unwrap();
    assert_eq!(records.len(), 20);
    recreate(&broker, &admin).await;
    let offsets = [(partition.clone(), CommittedOffset::new(20))];
    for _ in 0..2 {
        let result = consumer.commit_offsets(&offsets).await;
        assert!(
            matches!(result, Err(Error::NotCommitted { .. })),
            "{result:?}"
        );
    }
    let listed = admin.list_group_offsets("g", None).await.unwrap();
    assert!(listed.is_empty(), "{listed:?}");
}
