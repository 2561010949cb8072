//! A record is finished when the same handle asks for the next one, or says so; only finished
//! records are committed.

mod common;

use std::{sync::Arc, time::Duration};

use common::{LONG, produce, until};
use futures_util::StreamExt;
use kohort::{
    Admin, CommittedOffset, Consumer, ConsumerConfig, Error, TopicPartition,
    consumer::{GroupProtocol, OffsetReset, Rebalance, RebalanceHandler, Records, Seek},
    testing::TestBroker,
};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

const PROTOCOLS: [GroupProtocol; 2] = [GroupProtocol::Consumer, GroupProtocol::Classic];

async fn broker() -> (TestBroker, Admin) {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    let admin = Admin::connect(broker.config()).await.unwrap();
    (broker, admin)
}

fn config(broker: &TestBroker, group_protocol: GroupProtocol) -> ConsumerConfig {
    ConsumerConfig {
        group_protocol,
        offset_reset: OffsetReset::Earliest,
        // Long enough to play no part.
        auto_commit_interval: Duration::from_secs(3600),
        heartbeat_interval: Duration::from_millis(100),
        ..ConsumerConfig::new(broker.servers()).group("g")
    }
}

fn t0() -> TopicPartition {
    TopicPartition::new("t", 0)
}

async fn committed(admin: &Admin) -> Option<i64> {
    let mut listed = admin.list_group_offsets("g", Some(&[t0()])).await.unwrap();
    let committed = listed.pop().unwrap().1.unwrap();
    committed.map(|committed| committed.offset)
}

async fn joined(config: ConsumerConfig) -> Consumer {
    let consumer = Consumer::connect(config).await.unwrap();
    consumer.subscribe(["t"]).unwrap();
    consumer
}

async fn poll(consumer: &mut Consumer) -> Records {
    timeout(LONG, consumer.poll()).await.unwrap().unwrap()
}

#[tokio::test]
async fn iterating_over_records_or_dropping_them_finishes_nothing() {
    for protocol in PROTOCOLS {
        let (broker, admin) = broker().await;
        produce(broker.servers(), "t", Some(0), 0..5).await;
        let mut consumer = joined(config(&broker, protocol)).await;
        let records = poll(&mut consumer).await;
        assert_eq!(
            records
                .iter()
                .map(|r| r.value.unwrap().len())
                .sum::<usize>(),
            5
        );
        assert_eq!(records.of(&t0()).count(), 5);
        drop(records);
        consumer.close().await.unwrap();
        assert!(committed(&admin).await.is_none_or(|offset| offset == 0));
    }
}

#[tokio::test]
async fn what_is_said_to_be_finished_is_committed_by_close() {
    for protocol in PROTOCOLS {
        let (broker, admin) = broker().await;
        produce(broker.servers(), "t", Some(0), 0..5).await;
        let mut consumer = joined(config(&broker, protocol)).await;
        assert_eq!(poll(&mut consumer).await.of(&t0()).count(), 5);
        consumer.finish();
        consumer.close().await.unwrap();
        assert_eq!(committed(&admin).await, Some(5));
    }
}

#[tokio::test]
async fn a_stream_finishes_a_record_when_the_next_one_is_asked_for() {
    let (broker, admin) = broker().await;
    produce(broker.servers(), "t", Some(0), 0..20).await;
    for (finish, expected) in [(false, 9), (true, 10)] {
        let config = ConsumerConfig {
            // A group of its own for each.
            ..config(&broker, GroupProtocol::Consumer)
        };
        let mut consumer = Consumer::connect(config).await.unwrap();
        consumer.assign([(t0(), Seek::Earliest)]).unwrap();
        let processed = consumer.stream().take(10).map(Result::unwrap);
        assert_eq!(processed.collect::<Vec<_>>().await.len(), 10);
        if finish {
            consumer.finish();
        }
        consumer.close().await.unwrap();
        assert_eq!(committed(&admin).await, Some(expected));
    }
}

#[tokio::test]
async fn poll_and_stream_of_one_handle_count_together() {
    let (broker, admin) = broker().await;
    produce(broker.servers(), "t", Some(0), 0..5).await;
    let mut consumer = Consumer::connect(config(&broker, GroupProtocol::Auto))
        .await
        .unwrap();
    consumer.assign([(t0(), Seek::Earliest)]).unwrap();
    assert_eq!(poll(&mut consumer).await.len(), 5);
    produce(broker.servers(), "t", Some(0), 5..7).await;
    let mut stream = consumer.stream();
    let record = timeout(LONG, stream.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(record.offset, 5);
    drop(stream);
    consumer.clone().close().await.unwrap();
    assert_eq!(committed(&admin).await, Some(5));
    let closed = consumer.poll().await.unwrap_err();
    assert!(matches!(closed, Error::Closed), "{closed}");
}

async fn recv(consumer: &mut Consumer) -> i64 {
    let received = timeout(LONG, consumer.recv()).await.unwrap();
    received.unwrap().offset
}

#[tokio::test]
async fn recv_finishes_the_record_before() {
    for protocol in PROTOCOLS {
        for (finish, expected) in [(false, 9), (true, 10)] {
            let (broker, admin) = broker().await;
            produce(broker.servers(), "t", Some(0), 0..20).await;
            let mut consumer = joined(config(&broker, protocol)).await;
            for offset in 0..10 {
                assert_eq!(recv(&mut consumer).await, offset);
            }
            if finish {
                consumer.finish();
            }
            consumer.close().await.unwrap();
            assert_eq!(committed(&admin).await, Some(expected));
        }
    }
}

#[tokio::test]
async fn recv_poll_and_stream_of_one_handle_go_on_where_the_other_ended() {
    let (broker, admin) = broker().await;
    produce(broker.servers(), "t", Some(0), 0..8).await;
    let config = ConsumerConfig {
        poll_records_max: 3,
        ..config(&broker, GroupProtocol::Consumer)
    };
    let mut consumer = joined(config).await;
    assert_eq!(recv(&mut consumer).await, 0);
    let polled = poll(&mut consumer).await;
    let offsets: Vec<_> = polled.iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [1, 2, 3]);
    assert_eq!(recv(&mut consumer).await, 4);
    let streamed = consumer.stream().next().await.unwrap().unwrap();
    assert_eq!(streamed.offset, 5);
    assert_eq!(recv(&mut consumer).await, 6);
    consumer.close().await.unwrap();
    assert_eq!(committed(&admin).await, Some(6));
}

#[tokio::test]
async fn a_dropped_recv_loses_nothing_and_finishes_the_record_before() {
    let (broker, admin) = broker().await;
    let mut consumer = joined(config(&broker, GroupProtocol::Consumer)).await;
    produce(broker.servers(), "t", Some(0), 0..1).await;
    assert_eq!(recv(&mut consumer).await, 0);
    for offset in 1..30 {
        tokio::select! {
            biased;
            received = consumer.recv() => panic!("{received:?}"),
            () = sleep(Duration::from_millis(1)) => {}
        }
        produce(broker.servers(), "t", Some(0), offset..offset + 1).await;
        assert_eq!(recv(&mut consumer).await, offset);
    }
    consumer.close().await.unwrap();
    assert_eq!(committed(&admin).await, Some(29));
}

#[tokio::test]
async fn handles_that_receive_one_record_at_a_time_commit_nothing_that_another_holds() {
    let (broker, admin) = broker().await;
    produce(broker.servers(), "t", Some(0), 0..10).await;
    let mut one = joined(config(&broker, GroupProtocol::Consumer)).await;
    let mut other = one.clone();
    assert_eq!(recv(&mut one).await, 0);
    for offset in 1..5 {
        assert_eq!(recv(&mut other).await, offset);
    }
    other.commit().await.unwrap();
    // Record 0 is not finished.
    assert!(committed(&admin).await.is_none_or(|offset| offset == 0));
    assert_eq!(recv(&mut one).await, 5);
    other.commit().await.unwrap();
    assert_eq!(committed(&admin).await, Some(5));
    // A stream that is dropped keeps nothing either.
    let streamed = other.stream().next().await.unwrap().unwrap();
    assert_eq!(streamed.offset, 6);
    one.finish();
    one.commit().await.unwrap();
    assert_eq!(committed(&admin).await, Some(6));
    drop(other);
    assert_eq!(recv(&mut one).await, 7);
}

#[tokio::test]
async fn recv_goes_where_the_application_seeks_and_rests_while_it_pauses() {
    let (broker, _admin) = broker().await;
    produce(broker.servers(), "t", Some(0), 0..10).await;
    let mut consumer = Consumer::connect(config(&broker, GroupProtocol::Consumer))
        .await
        .unwrap();
    consumer.assign([(t0(), Seek::Earliest)]).unwrap();
    assert_eq!(recv(&mut consumer).await, 0);
    consumer.seek(&t0(), Seek::Offset(7)).unwrap();
    assert_eq!(recv(&mut consumer).await, 7);
    consumer.pause(&[t0()]).unwrap();
    let paused = timeout(Duration::from_millis(100), consumer.recv()).await;
    assert!(paused.is_err());
    consumer.resume(&[t0()]).unwrap();
    assert_eq!(recv(&mut consumer).await, 8);
}

#[tokio::test]
async fn no_handle_finishes_what_another_one_holds() {
    let (broker, admin) = broker().await;
    produce(broker.servers(), "t", Some(0), 0..20).await;
    let config = ConsumerConfig {
        poll_records_max: 5,
        ..config(&broker, GroupProtocol::Consumer)
    };
    let mut first = joined(config).await;
    let mut second = first.clone();
    assert_eq!(poll(&mut first).await.len(), 5);
    assert_eq!(poll(&mut second).await.len(), 5);
    // The second one finishes 5 to 9, while 0 to 4 are in the hands of the first.
    assert_eq!(poll(&mut second).await.len(), 5);
    second.commit().await.unwrap();
    assert_eq!(committed(&admin).await.unwrap_or(0), 0);
    first.commit().await.unwrap();
    assert_eq!(committed(&admin).await, Some(15));
    // A handle that is dropped leaves its records unfinished.
    assert_eq!(poll(&mut first).await.len(), 5);
    drop(first);
    second.finish();
    second.close().await.unwrap();
    assert_eq!(committed(&admin).await, Some(15));
}

/// Loses its partition to another member, which reads everything, while it holds five records.
async fn evicted(broker: &TestBroker, protocol: GroupProtocol, auto_commit: bool) -> Consumer {
    let slow = ConsumerConfig {
        auto_commit,
        poll_interval_max: Duration::from_secs(1),
        ..config(broker, protocol)
    };
    let patient = ConsumerConfig {
        auto_commit: true,
        ..config(broker, protocol)
    };
    let mut consumer = joined(slow).await;
    assert_eq!(poll(&mut consumer).await.len(), 5);
    let mut other = joined(patient).await;
    assert_eq!(poll(&mut other).await.len(), 5);
    other.finish();
    other.close().await.unwrap();
    assert!(consumer.assignment().is_empty());
    consumer
}

fn not_committed(result: kohort::Result<()>) {
    match result {
        Err(Error::NotCommitted { partitions, .. }) => assert_eq!(partitions, [t0()]),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_way_to_commit_after_an_eviction_is_an_error() {
    for protocol in PROTOCOLS {
        for way in 0..5 {
            let (broker, admin) = broker().await;
            produce(broker.servers(), "t", Some(0), 0..5).await;
            let auto_commit = way == 4;
            let mut consumer = evicted(&broker, protocol, auto_commit).await;
            let offsets = [(t0(), CommittedOffset::new(3))];
            match way {
                0 => not_committed(consumer.commit().await),
                1 => not_committed(consumer.commit_later().await),
                2 => not_committed(consumer.commit_offsets(&offsets).await),
                3 => {
                    // It is a member again, and has the partition again.
                    until(async || {
                        let polled = consumer.poll_for(Duration::from_millis(20)).await;
                        assert!(polled.unwrap().is_empty());
                        consumer.assignment() == [t0()]
                    })
                    .await;
                    not_committed(consumer.commit().await);
                    consumer.commit().await.unwrap();
                }
                _ => {
                    consumer.finish();
                    not_committed(consumer.close().await);
                }
            }
            assert_eq!(committed(&admin).await, Some(5));
        }
    }
}

#[tokio::test]
async fn after_an_eviction_close_says_nothing_about_what_was_not_finished() {
    let (broker, _admin) = broker().await;
    produce(broker.servers(), "t", Some(0), 0..5).await;
    let consumer = evicted(&broker, GroupProtocol::Consumer, true).await;
    consumer.close().await.unwrap();
}

/// A rebalance callback, and what came of a commit in it.
type Outcome = (&'static str, kohort::Result<()>);

/// Commits whenever partitions go.
#[derive(Clone, Default)]
struct Commits(Arc<Mutex<Vec<Outcome>>>);

impl RebalanceHandler for Commits {
    async fn revoked(&self, rebalance: &Rebalance) {
        let result = rebalance.commit().await;
        self.0.lock().push(("revoked", result));
    }

    async fn lost(&self, rebalance: &Rebalance) {
        let result = rebalance.commit().await;
        self.0.lock().push(("lost", result));
        let offsets = [(t0(), CommittedOffset::new(3))];
        let result = rebalance.commit_offsets(&offsets).await;
        self.0.lock().push(("lost", result));
    }
}

#[tokio::test]
async fn a_rebalance_handler_cannot_commit_what_is_lost() {
    for protocol in PROTOCOLS {
        let (broker, admin) = broker().await;
        produce(broker.servers(), "t", Some(0), 0..5).await;
        let config = ConsumerConfig {
            auto_commit: false,
            poll_interval_max: Duration::from_secs(1),
            ..config(&broker, protocol)
        };
        let mut consumer = Consumer::connect(config).await.unwrap();
        let commits = Commits::default();
        consumer.set_rebalance_handler(commits.clone()).unwrap();
        consumer.subscribe(["t"]).unwrap();
        assert_eq!(poll(&mut consumer).await.len(), 5);
        until(async || commits.0.lock().len() == 2).await;
        for (what, result) in commits.0.lock().drain(..) {
            assert_eq!(what, "lost");
            not_committed(result);
        }
        assert_eq!(committed(&admin).await.unwrap_or(0), 0);
        // Back again, it commits what is finished when it leaves.
        assert_eq!(poll(&mut consumer).await.len(), 5);
        consumer.finish();
        consumer.close().await.unwrap();
        let outcomes = std::mem::take(&mut *commits.0.lock());
        assert!(
            matches!(outcomes[..], [("revoked", Ok(()))]),
            "{outcomes:?}"
        );
        assert_eq!(committed(&admin).await, Some(5));
    }
}

#[tokio::test]
async fn what_is_finished_by_hand_is_committed_when_another_partition_is_assigned() {
    let (broker, admin) = broker().await;
    produce(broker.servers(), "t", Some(0), 0..5).await;
    broker.create_topic("u", 1).await.unwrap();
    let config = ConsumerConfig {
        auto_commit_interval: Duration::from_millis(50),
        ..config(&broker, GroupProtocol::Auto)
    };
    let mut consumer = Consumer::connect(config).await.unwrap();
    consumer.assign([(t0(), Seek::Earliest)]).unwrap();
    assert_eq!(poll(&mut consumer).await.len(), 5);
    consumer.finish();
    let other = TopicPartition::new("u", 0);
    consumer.assign([(other, Seek::Earliest)]).unwrap();
    until(async || committed(&admin).await == Some(5)).await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(committed(&admin).await, Some(5));
}
