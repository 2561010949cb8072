//! What must hold when applications are slow and networks fail. The ids are those of the scenarios.

mod common;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use common::{LONG, produce, until};
use kohort::{
    Admin, ApiKey, CommittedOffset, Consumer, ConsumerConfig, ErrorCode, OffsetSpec, Producer,
    ProducerConfig, ProducerRecord, TopicPartition,
    consumer::{GroupProtocol, OffsetReset, Rebalance, RebalanceHandler, Records, Seek},
    rpc::messages::*,
    testing::{Fate, RequestSeen, TestBroker},
};
use tokio::time::{sleep, timeout};

const PROTOCOLS: [GroupProtocol; 2] = [GroupProtocol::Consumer, GroupProtocol::Classic];

async fn broker(partitions: i32) -> TestBroker {
    let settings = [("group.min.session.timeout.ms", "100")];
    let broker = TestBroker::start_with(settings).await.unwrap();
    broker.create_topic("t", partitions).await.unwrap();
    broker
}

fn config(broker: &TestBroker, group_protocol: GroupProtocol) -> ConsumerConfig {
    ConsumerConfig {
        group_protocol,
        offset_reset: OffsetReset::Earliest,
        session_timeout: Duration::from_millis(1500),
        heartbeat_interval: Duration::from_millis(300),
        ..ConsumerConfig::new(broker.servers()).group("g")
    }
}

async fn committed(admin: &Admin) -> i64 {
    let offsets = admin.list_group_offsets("g", None).await.unwrap();
    let offsets = offsets
        .into_iter()
        .filter_map(|(_, offset)| offset.unwrap());
    offsets.map(|committed| committed.offset).sum()
}

/// KAFKA-18641
#[tokio::test]
async fn what_the_application_has_not_finished_with_is_not_committed() {
    let broker = broker(1).await;
    produce(broker.servers(), "t", Some(0), 0..30).await;
    let admin = Admin::connect(broker.config()).await.unwrap();
    let config = ConsumerConfig {
        poll_records_max: 10,
        auto_commit_interval: Duration::from_millis(20),
        ..config(&broker, GroupProtocol::Consumer)
    };
    let mut consumer = Consumer::connect(config).await.unwrap();
    consumer.subscribe(["t"]).unwrap();
    assert_eq!(consumer.poll().await.unwrap().len(), 10);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(committed(&admin).await, 0);
    let in_hand = consumer.poll().await.unwrap();
    until(async || committed(&admin).await == 10).await;
    sleep(Duration::from_millis(100)).await;
    // Neither is it when the consumer closes.
    drop(in_hand);
    consumer.close().await.unwrap();
    assert_eq!(committed(&admin).await, 10);
}

struct Revoked(Arc<AtomicBool>);

impl RebalanceHandler for Revoked {
    async fn revoked(&self, _: &Rebalance) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// KAFKA-20106, 20332
#[tokio::test]
async fn partitions_go_to_others_only_when_the_application_is_done_with_its_records() {
    for protocol in PROTOCOLS {
        let broker = broker(2).await;
        for partition in [0, 1] {
            produce(broker.servers(), "t", Some(partition), 0..100).await;
        }
        let config = ConsumerConfig {
            poll_records_max: 10,
            ..config(&broker, protocol)
        };
        let revoked = Arc::new(AtomicBool::new(false));
        let mut first = Consumer::connect(config.clone()).await.unwrap();
        first
            .set_rebalance_handler(Revoked(revoked.clone()))
            .unwrap();
        first.subscribe(["t"]).unwrap();
        until(async || {
            let _ = first.poll_for(Duration::from_millis(20)).await.unwrap();
            first.assignment().len() == 2
        })
        .await;
        // From the start again: nothing counts as finished with.
        let both = first.assignment();
        both.iter()
            .for_each(|partition| first.seek(partition, 0).unwrap());
        let mut seen = BTreeSet::new();
        let mut see = |records: &Records| {
            for record in records {
                let once = seen.insert((record.partition, record.offset));
                assert!(once, "{}-{} came twice", record.partition, record.offset);
            }
            seen.len()
        };
        let in_hand = first.poll().await.unwrap();
        let mut second = Consumer::connect(config).await.unwrap();
        second.subscribe(["t"]).unwrap();
        // For longer than it takes until the first one is told to let go.
        let early = second.poll_for(Duration::from_secs(7)).await.unwrap();
        see(&early);
        let own = first.assignment();
        assert!(
            in_hand
                .partitions()
                .iter()
                .all(|partition| own.contains(partition))
        );
        see(&in_hand);
        until(async || {
            for consumer in [&mut first, &mut second] {
                let records = consumer.poll_for(Duration::from_millis(20)).await.unwrap();
                see(&records);
            }
            see(&Records::default()) == 200
        })
        .await;
        assert!(revoked.load(Ordering::Relaxed), "{protocol:?}");
        assert_eq!(second.assignment().len(), 1);
    }
}

/// rust-rdkafka #638, #665, #848
#[tokio::test]
async fn after_the_broker_was_away_for_longer_than_the_session_consumption_goes_on() {
    for protocol in PROTOCOLS {
        let broker = broker(1).await;
        let mut consumer = Consumer::connect(config(&broker, protocol)).await.unwrap();
        consumer.subscribe(["t"]).unwrap();
        produce(broker.servers(), "t", Some(0), 0..5).await;
        let mut count = 0;
        until(async || {
            count += consumer
                .poll_for(Duration::from_millis(20))
                .await
                .unwrap()
                .len();
            count == 5
        })
        .await;
        broker.on_request(|_| Fate::Disconnect);
        broker.disconnect_all();
        let _ = consumer.poll_for(Duration::from_secs(3)).await;
        broker.pass_all();
        produce(broker.servers(), "t", Some(0), 5..10).await;
        let mut last = 0;
        until(async || {
            let records = consumer.poll_for(Duration::from_millis(20)).await.unwrap();
            last = records
                .iter()
                .map(|record| record.offset)
                .max()
                .unwrap_or(last);
            last == 9
        })
        .await;
    }
}

/// The answer to a request for what partition 0 has committed: the whole of it is refused.
fn refused_fetch(request: &RequestSeen<'_>, error_code: ErrorCode) -> Fate {
    let group = OffsetFetchResponseGroup {
        group_id: "g".into(),
        error_code,
        ..Default::default()
    };
    let response = OffsetFetchResponse {
        groups: vec![group],
        ..Default::default()
    };
    request.answer(&response).unwrap()
}

/// The answer to a commit: it is refused.
fn refused_commit(request: &RequestSeen<'_>, error_code: ErrorCode) -> Fate {
    let partition = OffsetCommitResponsePartition {
        partition_index: 0,
        error_code,
    };
    let topic = OffsetCommitResponseTopic {
        name: "t".into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let response = OffsetCommitResponse {
        topics: vec![topic],
        ..Default::default()
    };
    request.answer(&response).unwrap()
}

/// Ten records, of which the group has committed five.
async fn half_committed(broker: &TestBroker) {
    produce(broker.servers(), "t", Some(0), 0..10).await;
    let admin = Admin::connect(broker.config()).await.unwrap();
    let half = (TopicPartition::new("t", 0), CommittedOffset::new(5));
    let altered = admin.alter_group_offsets("g", &[half]).await.unwrap();
    altered.into_iter().for_each(|(_, result)| result.unwrap());
}

/// platformatic/kafka #267
#[tokio::test]
async fn a_stale_epoch_does_not_hide_what_was_committed() {
    let broker = broker(1).await;
    half_committed(&broker).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    broker.on_request(move |request| match request.api {
        Some(ApiKey::OffsetFetch) if count.fetch_add(1, Ordering::Relaxed) < 3 => {
            refused_fetch(request, ErrorCode::STALE_MEMBER_EPOCH)
        }
        _ => Fate::Pass,
    });
    let config = config(&broker, GroupProtocol::Consumer);
    let mut consumer = Consumer::connect(config).await.unwrap();
    consumer.subscribe(["t"]).unwrap();
    let records = timeout(LONG, consumer.poll()).await.unwrap().unwrap();
    assert_eq!(records.iter().next().unwrap().offset, 5);
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}

/// vector #22006
#[tokio::test]
async fn a_consumer_that_was_paused_through_a_rebalance_goes_on_afterwards() {
    for protocol in PROTOCOLS {
        let broker = broker(2).await;
        let mut first = Consumer::connect(config(&broker, protocol)).await.unwrap();
        first.subscribe(["t"]).unwrap();
        let idle = async |consumer: &mut Consumer| {
            consumer
                .poll_for(Duration::from_millis(20))
                .await
                .unwrap()
                .len()
        };
        until(async || idle(&mut first).await == 0 && first.assignment().len() == 2).await;
        first.pause(&first.assignment()).unwrap();
        let mut second = Consumer::connect(config(&broker, protocol)).await.unwrap();
        second.subscribe(["t"]).unwrap();
        until(async || {
            idle(&mut first).await;
            idle(&mut second).await;
            second.assignment().len() == 1
        })
        .await;
        let (closed, ()) = tokio::join!(second.close(), async {
            until(async || {
                idle(&mut first).await;
                first.assignment().len() == 2
            })
            .await;
        });
        closed.unwrap();
        first.resume(&first.assignment()).unwrap();
        for partition in [0, 1] {
            produce(broker.servers(), "t", Some(partition), 0..5).await;
        }
        let mut count = 0;
        until(async || {
            count += idle(&mut first).await;
            count == 10
        })
        .await;
    }
}

/// librdkafka #4059, librdkafka #2933
#[tokio::test]
async fn commits_that_fail_do_not_stop_fetching() {
    let broker = broker(1).await;
    broker.on_request(|request| match request.api {
        Some(ApiKey::OffsetCommit) => Fate::Disconnect,
        _ => Fate::Pass,
    });
    let config = ConsumerConfig {
        auto_commit_interval: Duration::from_millis(20),
        poll_records_max: 1,
        ..config(&broker, GroupProtocol::Consumer)
    };
    produce(broker.servers(), "t", Some(0), 0..50).await;
    let mut consumer = Consumer::connect(config).await.unwrap();
    consumer.subscribe(["t"]).unwrap();
    for offset in 0..50 {
        let records = timeout(LONG, consumer.poll()).await.unwrap().unwrap();
        assert_eq!(records.iter().next().unwrap().offset, offset);
        sleep(Duration::from_millis(5)).await;
    }
}

/// librdkafka #2791
#[tokio::test]
async fn a_coordinator_that_is_none_any_more_is_looked_up_again() {
    for by_hand in [true, false] {
        let broker = broker(1).await;
        half_committed(&broker).await;
        let look_ups = Arc::new(AtomicUsize::new(0));
        let refuse = Arc::new(AtomicBool::new(true));
        let (counted, refused) = (look_ups.clone(), refuse.clone());
        broker.on_request(move |request| match request.api {
            Some(ApiKey::FindCoordinator) => {
                counted.fetch_add(1, Ordering::Relaxed);
                Fate::Pass
            }
            Some(ApiKey::OffsetFetch) if refused.swap(false, Ordering::Relaxed) => {
                refused_fetch(request, ErrorCode::NOT_COORDINATOR)
            }
            Some(ApiKey::OffsetCommit) if refused.swap(false, Ordering::Relaxed) => {
                refused_commit(request, ErrorCode::NOT_COORDINATOR)
            }
            _ => Fate::Pass,
        });
        let config = config(&broker, GroupProtocol::Consumer);
        let mut consumer = Consumer::connect(config).await.unwrap();
        if by_hand {
            let partition = TopicPartition::new("t", 0);
            consumer.assign([(partition, Seek::Committed)]).unwrap();
        } else {
            consumer.subscribe(["t"]).unwrap();
        }
        let records = timeout(LONG, consumer.poll()).await.unwrap().unwrap();
        assert_eq!(records.iter().next().unwrap().offset, 5);
        let before = look_ups.load(Ordering::Relaxed);
        assert!(before >= 2, "{before}");
        refuse.store(true, Ordering::Relaxed);
        consumer.commit().await.unwrap();
        assert!(!refuse.load(Ordering::Relaxed));
        assert!(look_ups.load(Ordering::Relaxed) > before);
        let admin = Admin::connect(broker.config()).await.unwrap();
        assert_eq!(committed(&admin).await, 10);
    }
}

/// Counts how often partitions come and go.
struct Changes(Arc<AtomicUsize>);

impl RebalanceHandler for Changes {
    async fn assigned(&self, _: &Rebalance) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    async fn revoked(&self, _: &Rebalance) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    async fn lost(&self, _: &Rebalance) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// platformatic PR 370
#[tokio::test]
async fn commits_that_a_rebalance_refuses_do_not_start_another_one() {
    for protocol in PROTOCOLS {
        let broker = broker(2).await;
        for partition in [0, 1] {
            produce(broker.servers(), "t", Some(partition), 0..2000).await;
        }
        let config = ConsumerConfig {
            poll_records_max: 1,
            auto_commit_interval: Duration::from_millis(10),
            ..config(&broker, protocol)
        };
        let changes = Arc::new(AtomicUsize::new(0));
        let member = async || {
            let consumer = Consumer::connect(config.clone()).await.unwrap();
            let handler = Changes(changes.clone());
            consumer.set_rebalance_handler(handler).unwrap();
            consumer.subscribe(["t"]).unwrap();
            consumer
        };
        let some = async |consumer: &mut Consumer| {
            let records = consumer.poll_for(Duration::from_millis(5)).await.unwrap();
            records.len()
        };
        let mut first = member().await;
        until(async || {
            some(&mut first).await;
            first.assignment().len() == 2
        })
        .await;
        let (joins, commits) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (joined, refused) = (joins.clone(), commits.clone());
        let code = match protocol {
            GroupProtocol::Classic => ErrorCode::REBALANCE_IN_PROGRESS,
            _ => ErrorCode::STALE_MEMBER_EPOCH,
        };
        broker.on_request(move |request| match request.api {
            Some(ApiKey::JoinGroup) => {
                joined.fetch_add(1, Ordering::Relaxed);
                Fate::Pass
            }
            Some(ApiKey::OffsetCommit) => {
                refused.fetch_add(1, Ordering::Relaxed);
                refused_commit(request, code)
            }
            _ => Fate::Pass,
        });
        let mut second = member().await;
        until(async || {
            some(&mut first).await;
            some(&mut second).await;
            first.assignment().len() == 1 && second.assignment().len() == 1
        })
        .await;
        // Records come when the handlers have returned.
        for consumer in [&mut first, &mut second] {
            until(async || some(consumer).await == 1).await;
        }
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let settled = (count(&joins), count(&changes));
        let before = count(&commits);
        until(async || {
            some(&mut first).await;
            some(&mut second).await;
            count(&commits) >= before + 6
        })
        .await;
        // Two heartbeats later nobody has been told to join again either.
        for _ in 0..60 {
            some(&mut first).await;
            some(&mut second).await;
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!((count(&joins), count(&changes)), settled, "{protocol:?}");
    }
}

/// kafkajs #1527
#[tokio::test]
async fn heartbeats_go_on_while_the_application_works_for_longer_than_the_session() {
    let broker = broker(1).await;
    let revoked = Arc::new(AtomicBool::new(false));
    let mut consumer = Consumer::connect(config(&broker, GroupProtocol::Classic))
        .await
        .unwrap();
    consumer
        .set_rebalance_handler(Revoked(revoked.clone()))
        .unwrap();
    consumer.subscribe(["t"]).unwrap();
    until(async || {
        let _ = consumer.poll_for(Duration::from_millis(20)).await.unwrap();
        consumer.assignment().len() == 1
    })
    .await;
    sleep(Duration::from_secs(3)).await;
    assert_eq!(consumer.assignment().len(), 1);
    produce(broker.servers(), "t", Some(0), 0..1).await;
    let records = timeout(LONG, consumer.poll()).await.unwrap().unwrap();
    assert_eq!(records.len(), 1);
    consumer.commit().await.unwrap();
    assert!(!revoked.load(Ordering::Relaxed));
}

#[tokio::test]
async fn an_idempotent_producer_writes_each_record_once_and_in_order_whatever_is_lost() {
    let broker = broker(1).await;
    let count = Arc::new(AtomicUsize::new(0));
    broker.on_request(move |request| match request.api {
        Some(ApiKey::Produce) => match count.fetch_add(1, Ordering::Relaxed) % 7 {
            2 => Fate::LoseAnswer,
            5 => Fate::Disconnect,
            _ => Fate::Pass,
        },
        _ => Fate::Pass,
    });
    let config = ProducerConfig {
        batch_bytes: 500,
        linger: Duration::ZERO,
        ..ProducerConfig::new(broker.servers())
    };
    let producer = Producer::connect(config).await.unwrap();
    let mut deliveries = Vec::new();
    for number in 0..1500 {
        let value = number.to_string();
        let record = ProducerRecord::new("t").partition(0).value(&value);
        deliveries.push(producer.send(record).await.unwrap());
    }
    timeout(LONG, producer.flush()).await.unwrap();
    for delivery in deliveries {
        delivery.await.unwrap();
    }
    broker.pass_all();
    let partition = TopicPartition::new("t", 0);
    let mut consumer = Consumer::connect(ConsumerConfig::new(broker.servers()))
        .await
        .unwrap();
    consumer
        .assign([(partition.clone(), Seek::Earliest)])
        .unwrap();
    let mut values: Vec<i64> = Vec::new();
    while values.len() < 1500 {
        let records = timeout(LONG, consumer.poll()).await.unwrap().unwrap();
        let value = |value: &[u8]| std::str::from_utf8(value).unwrap().parse::<i64>().unwrap();
        values.extend(records.iter().map(|record| value(record.value.unwrap())));
    }
    assert_eq!(values, (0..1500).collect::<Vec<i64>>());
    let end = consumer
        .list_offsets(&[(partition, OffsetSpec::Latest)])
        .await;
    assert_eq!(*end[0].1.as_ref().unwrap(), Some(1500));
}

#[test]
fn programs_without_a_runtime_do_the_same() {
    let broker = kohort::blocking::wait(broker(1));
    let producer =
        kohort::blocking::Producer::connect(ProducerConfig::new(broker.servers())).unwrap();
    let delivery = producer.send(ProducerRecord::new("t").value("v")).unwrap();
    assert_eq!(delivery.wait().unwrap().offset, Some(0));
    producer.close();
    let config = config(&broker, GroupProtocol::Auto);
    let mut consumer = kohort::blocking::Consumer::connect(config).unwrap();
    consumer.subscribe(["t"]).unwrap();
    let record = consumer.records().next().unwrap().unwrap();
    assert_eq!(record.value.as_deref(), Some(&b"v"[..]));
    consumer.commit().unwrap();
    consumer.close().unwrap();
    let admin = kohort::blocking::Admin::connect(broker.config()).unwrap();
    assert_eq!(
        kohort::blocking::wait(committed(
            &kohort::blocking::wait(Admin::connect(broker.config())).unwrap()
        )),
        1
    );
    assert_eq!(admin.list_topics(false).unwrap().len(), 1);
}
