//! What a consumer promises when partitions are paused, offsets are reset, and commits come late.

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use common::{LONG, produce, until};
use futures_util::FutureExt;
use kohort::{
    Admin, ApiKey, CommittedOffset, Consumer, ConsumerConfig, ErrorCode, Producer, ProducerConfig,
    ProducerRecord, TopicPartition, Uuid,
    admin::GroupState,
    consumer::{GroupProtocol, OffsetReset, Rebalance, RebalanceHandler, Seek},
    rpc::messages::*,
    testing::{Fate, RequestSeen, TestBroker},
};
use tokio::time::{sleep, timeout};

async fn broker(partitions: i32) -> (TestBroker, Admin) {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", partitions).await.unwrap();
    let admin = Admin::connect(broker.config()).await.unwrap();
    (broker, admin)
}

fn config(broker: &TestBroker) -> ConsumerConfig {
    ConsumerConfig {
        offset_reset: OffsetReset::Earliest,
        auto_commit_interval: Duration::from_millis(20),
        ..ConsumerConfig::new(broker.servers()).group("g")
    }
}

fn t(partition: i32) -> TopicPartition {
    TopicPartition::new("t", partition)
}

async fn committed(admin: &Admin, partition: i32) -> Option<i64> {
    let asked = [t(partition)];
    let mut listed = admin.list_group_offsets("g", Some(&asked)).await.unwrap();
    let committed = listed.pop().unwrap().1.unwrap();
    committed.map(|committed| committed.offset)
}

/// The answer to a commit of partition 0.
fn commit_answered(request: &RequestSeen<'_>, error_code: ErrorCode) -> Fate {
    let response = OffsetCommitResponse {
        topics: vec![OffsetCommitResponseTopic {
            name: "t".into(),
            partitions: vec![OffsetCommitResponsePartition {
                partition_index: 0,
                error_code,
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    request.answer(&response).unwrap()
}

#[tokio::test]
async fn what_was_fetched_of_paused_partitions_does_not_keep_the_others_waiting() {
    let (broker, _admin) = broker(5).await;
    let producer = Producer::connect(ProducerConfig::new(broker.servers()))
        .await
        .unwrap();
    let value = [7; 1000];
    for partition in 0..5 {
        for _ in 0..100 {
            let record = ProducerRecord::new("t").partition(partition).value(&value);
            drop(producer.send(record).await.unwrap());
        }
    }
    producer.close().await;
    let config = ConsumerConfig {
        prefetch_bytes_max: 100_000,
        partition_fetch_bytes_max: 20_000,
        poll_records_max: 10,
        ..ConsumerConfig::new(broker.servers())
    };
    let mut consumer = Consumer::connect(config).await.unwrap();
    let fetches = Arc::new(AtomicUsize::new(0));
    let counted = fetches.clone();
    broker.on_request(move |request| {
        if request.api == Some(ApiKey::Fetch) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        Fate::Pass
    });
    let all = (0..5).map(t);
    let all = all.map(|partition| (partition, Seek::Earliest));
    consumer.assign(all).unwrap();
    let mut counts = [0; 5];
    let control = consumer.clone();
    let mut poll = async || {
        for record in &timeout(LONG, consumer.poll()).await.unwrap().unwrap() {
            counts[record.partition as usize] += 1;
        }
        counts
    };
    poll().await;
    // Until there is room for nothing more.
    until(async || {
        let before = fetches.load(Ordering::Relaxed);
        sleep(Duration::from_millis(100)).await;
        before == fetches.load(Ordering::Relaxed)
    })
    .await;
    control.pause(&[0, 1, 2, 3].map(t)).unwrap();
    while poll().await[4] < 100 {}
    // Nothing is lost by that.
    control.resume(&[0, 1, 2, 3].map(t)).unwrap();
    while poll().await.iter().sum::<usize>() < 500 {}
    assert_eq!(counts, [100; 5]);
}

/// That `partition` 0 has nothing at the offset that was asked for.
fn out_of_range(request: &RequestSeen<'_>, topic_id: Uuid) -> Fate {
    let response = FetchResponse {
        responses: vec![FetchableTopicResponse {
            topic: "t".into(),
            topic_id,
            partitions: vec![FetchPartitionData {
                partition_index: 0,
                error_code: ErrorCode::OFFSET_OUT_OF_RANGE,
                ..Default::default()
            }],
        }],
        ..Default::default()
    };
    request.answer(&response).unwrap()
}

#[tokio::test]
async fn an_offset_that_is_reset_does_not_count_as_reached_before_the_application_is_there() {
    let (broker, admin) = broker(1).await;
    produce(broker.servers(), "t", Some(0), 0..10).await;
    let config = ConsumerConfig {
        poll_records_max: 5,
        offset_reset: OffsetReset::Latest,
        ..config(&broker)
    };
    let mut consumer = Consumer::connect(config).await.unwrap();
    let topic_id = admin.cluster().topic(&"t".into()).await.unwrap().id;
    let (fetches, lost) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (fetched, lose) = (fetches.clone(), lost.clone());
    broker.on_request(move |request| match request.api {
        Some(ApiKey::Fetch) if fetched.fetch_add(1, Ordering::Relaxed) > 0 => {
            lose.fetch_add(1, Ordering::Relaxed);
            out_of_range(request, topic_id)
        }
        _ => Fate::Pass,
    });
    consumer.assign([(t(0), Seek::Earliest)]).unwrap();
    let control = consumer.clone();
    let mut offsets = async || {
        let records = timeout(LONG, consumer.poll()).await.unwrap().unwrap();
        records
            .iter()
            .map(|record| record.offset)
            .collect::<Vec<_>>()
    };
    assert_eq!(offsets().await, [0, 1, 2, 3, 4]);
    // What comes after all that was fetched is out of range by now.
    until(async || lost.load(Ordering::Relaxed) > 1).await;
    until(async || committed(&admin, 0).await.is_some()).await;
    assert_eq!(committed(&admin, 0).await, Some(0));
    assert_eq!(offsets().await, [5, 6, 7, 8, 9]);
    until(async || committed(&admin, 0).await == Some(5)).await;
    produce(broker.servers(), "t", Some(0), 10..12).await;
    // It is reset when the application has been given all that comes before.
    until(async || control.position(&t(0)).unwrap() == Some(12)).await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(committed(&admin, 0).await, Some(5));
    broker.pass_all();
    let nothing = consumer.poll_for(Duration::from_millis(50)).await.unwrap();
    assert!(nothing.is_empty());
    until(async || committed(&admin, 0).await == Some(12)).await;
}

#[tokio::test]
async fn a_commit_that_is_tried_again_does_not_undo_a_later_one() {
    let (broker, admin) = broker(1).await;
    let refused = AtomicBool::new(false);
    broker.on_request(move |request| match request.api {
        Some(ApiKey::OffsetCommit) if !refused.swap(true, Ordering::Relaxed) => {
            commit_answered(request, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)
        }
        _ => Fate::Pass,
    });
    let config = ConsumerConfig {
        auto_commit: false,
        ..config(&broker)
    };
    produce(broker.servers(), "t", Some(0), 0..10).await;
    let consumer = Consumer::connect(config).await.unwrap();
    consumer.assign([(t(0), Seek::Offset(3))]).unwrap();
    let first = consumer.commit_later();
    let at = |offset| [(t(0), CommittedOffset::new(offset))];
    until(async || committed(&admin, 0).await.is_none()).await;
    consumer.commit_offsets(&at(7)).await.unwrap();
    first.await.unwrap();
    assert_eq!(committed(&admin, 0).await, Some(7));
    // Whoever says so later may go back.
    consumer.commit_offsets(&at(2)).await.unwrap();
    assert_eq!(committed(&admin, 0).await, Some(2));
    let error = consumer.commit_offsets(&at(-1)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot commit -1 for t-0: offsets start at 0"
    );
}

#[tokio::test]
async fn a_commit_that_is_tried_again_leaves_out_what_others_have_by_then() {
    let (broker, admin) = broker(2).await;
    let pass = Arc::new(AtomicBool::new(false));
    let passing = pass.clone();
    broker.on_request(move |request| match request.api {
        Some(ApiKey::OffsetCommit) if !passing.load(Ordering::Relaxed) => Fate::Disconnect,
        _ => Fate::Pass,
    });
    let config = ConsumerConfig {
        group_protocol: GroupProtocol::Consumer,
        auto_commit: false,
        ..config(&broker)
    };
    let mut first = Consumer::connect(config.clone()).await.unwrap();
    first.subscribe(["t"]).unwrap();
    let idle = async |consumer: &mut Consumer| {
        let polled = consumer.poll_for(Duration::from_millis(20)).await;
        assert!(polled.unwrap().is_empty());
    };
    until(async || {
        idle(&mut first).await;
        first.assignment().len() == 2
    })
    .await;
    let both = [0, 1].map(|partition| (t(partition), CommittedOffset::new(0)));
    let committer = first.clone();
    let commit = committer.commit_offsets(&both);
    let rest = async {
        let mut second = Consumer::connect(config).await.unwrap();
        second.subscribe(["t"]).unwrap();
        until(async || {
            tokio::join!(idle(&mut first), idle(&mut second));
            second.assignment().len() == 1
        })
        .await;
        pass.store(true, Ordering::Relaxed);
        second.assignment()
    };
    let (commit, others) = tokio::join!(commit, rest);
    let error = commit.unwrap_err().to_string();
    assert!(error.contains("taken away before"), "{error}");
    for partition in [0, 1] {
        let expected = (!others.contains(&t(partition))).then_some(0);
        assert_eq!(committed(&admin, partition).await, expected);
    }
}

#[tokio::test]
async fn a_commit_that_is_under_way_does_not_undo_a_seek() {
    let (broker, admin) = broker(1).await;
    broker.on_request(|request| match request.api {
        Some(ApiKey::OffsetCommit) => Fate::Delay(Duration::from_millis(100)),
        _ => Fate::Pass,
    });
    produce(broker.servers(), "t", Some(0), 0..10).await;
    let config = ConsumerConfig {
        auto_commit_interval: LONG,
        ..config(&broker)
    };
    let consumer = Consumer::connect(config).await.unwrap();
    consumer.assign([(t(0), Seek::Offset(9))]).unwrap();
    let commit = consumer.commit_later();
    tokio::task::yield_now().await;
    consumer.seek(&t(0), 4).unwrap();
    commit.await.unwrap();
    consumer.close().await.unwrap();
    assert_eq!(committed(&admin, 0).await, Some(4));
}

#[tokio::test]
async fn there_are_no_negative_offsets_and_before_1970_is_the_first_record() {
    let (broker, _admin) = broker(1).await;
    produce(broker.servers(), "t", Some(0), 0..3).await;
    let mut consumer = Consumer::connect(config(&broker)).await.unwrap();
    let refused = consumer.assign([(t(0), Seek::Offset(-1))]).unwrap_err();
    assert_eq!(refused.to_string(), "t-0 has no negative offsets");
    // −1 would mean the end.
    consumer.assign([(t(0), Seek::Timestamp(-1))]).unwrap();
    let records = timeout(LONG, consumer.poll()).await.unwrap().unwrap();
    assert_eq!(records.iter().next().unwrap().offset, 0);
    let refused = consumer.seek(&t(0), -7).unwrap_err();
    assert_eq!(refused.to_string(), "t-0 has no negative offsets");
}

#[tokio::test]
async fn a_consumer_that_is_dropped_while_it_joins_leaves_the_group_too() {
    let (broker, admin) = broker(1).await;
    let heartbeats = Arc::new(AtomicUsize::new(0));
    let counted = heartbeats.clone();
    broker.on_request(move |request| match request.api {
        Some(ApiKey::ConsumerGroupHeartbeat) => match counted.fetch_add(1, Ordering::Relaxed) {
            0 => Fate::Delay(Duration::from_millis(200)),
            _ => Fate::Pass,
        },
        _ => Fate::Pass,
    });
    let config = ConsumerConfig {
        group_protocol: GroupProtocol::Consumer,
        ..config(&broker)
    };
    let consumer = Consumer::connect(config).await.unwrap();
    consumer.subscribe(["t"]).unwrap();
    until(async || heartbeats.load(Ordering::Relaxed) == 1).await;
    drop(consumer);
    until(async || heartbeats.load(Ordering::Relaxed) == 2).await;
    until(async || admin.describe_group("g").await.unwrap().state == GroupState::Empty).await;
}

#[tokio::test]
async fn a_member_that_gives_up_keeps_nothing_from_the_one_that_comes_after_it() {
    let (broker, _admin) = broker(1).await;
    produce(broker.servers(), "t", Some(0), 0..3).await;
    let config = ConsumerConfig {
        group_protocol: GroupProtocol::Consumer,
        auto_commit: false,
        ..config(&broker)
    };
    let mut consumer = Consumer::connect(config).await.unwrap();
    consumer.subscribe(["t"]).unwrap();
    let control = consumer.clone();
    let mut read = async || timeout(LONG, consumer.poll()).await.unwrap();
    assert_eq!(read().await.unwrap().len(), 3);
    control.subscribe_regex("(").unwrap();
    let error = read().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::INVALID_REGULAR_EXPRESSION));
    consumer.subscribe(["t"]).unwrap();
    // Its session has not ended by then.
    let again = timeout(Duration::from_secs(20), consumer.poll()).await;
    assert_eq!(again.unwrap().unwrap().len(), 3);
}

#[tokio::test]
async fn a_topic_that_is_gone_does_not_hold_up_the_commits_of_others() {
    let (broker, admin) = broker(1).await;
    let consumer = Consumer::connect(config(&broker)).await.unwrap();
    let gone = TopicPartition::new("gone", 0);
    let offsets = [(gone.clone(), 1.into()), (t(0), 2.into())];
    let committing = consumer.commit_offsets(&offsets);
    // Much sooner than when time is up.
    let error = timeout(Duration::from_secs(20), committing).await.unwrap();
    let error = error.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    assert!(error.to_string().contains("gone-0"), "{error}");
    assert_eq!(committed(&admin, 0).await, Some(2));
}

#[tokio::test]
async fn what_was_asked_for_before_a_seek_is_not_given_after_it() {
    let (broker, _admin) = broker(1).await;
    produce(broker.servers(), "t", Some(0), 0..10).await;
    let fetches = Arc::new(AtomicUsize::new(0));
    let counted = fetches.clone();
    broker.on_request(move |request| match request.api {
        Some(ApiKey::Fetch) => {
            counted.fetch_add(1, Ordering::Relaxed);
            Fate::Delay(Duration::from_millis(30))
        }
        _ => Fate::Pass,
    });
    let mut consumer = Consumer::connect(config(&broker)).await.unwrap();
    consumer.assign([(t(0), Seek::Offset(0))]).unwrap();
    for (to, round) in [7, 2, 9, 0, 5].into_iter().zip(1..) {
        // One is under way, of which nothing has come.
        until(async || fetches.load(Ordering::Relaxed) >= round).await;
        consumer.seek(&t(0), to).unwrap();
        if round % 2 == 0 {
            let records = timeout(LONG, consumer.poll()).await.unwrap().unwrap();
            let offsets: Vec<_> = records.iter().map(|record| record.offset).collect();
            assert_eq!(offsets, (to..10).collect::<Vec<_>>());
        }
    }
    let records = timeout(LONG, consumer.poll()).await.unwrap().unwrap();
    assert_eq!(records.iter().next().unwrap().offset, 5);
}

/// Takes its time to let go, and has something against the first assignment.
struct Difficult(AtomicBool);

impl RebalanceHandler for Difficult {
    async fn assigned(&self, _: &Rebalance) {
        assert!(self.0.swap(true, Ordering::Relaxed), "not yet");
    }

    async fn revoked(&self, _: &Rebalance) {
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn whoever_subscribes_while_the_group_is_still_being_left_joins_again() {
    for group_protocol in [GroupProtocol::Consumer, GroupProtocol::Classic] {
        let (broker, _admin) = broker(1).await;
        let config = ConsumerConfig {
            group_protocol,
            ..config(&broker)
        };
        let consumer = Consumer::connect(config).await.unwrap();
        let handler = Difficult(AtomicBool::new(true));
        consumer.set_rebalance_handler(handler).unwrap();
        consumer.subscribe(["t"]).unwrap();
        let mut poller = consumer.clone();
        let mut idle = async || {
            let polled = poller.poll_for(Duration::from_millis(20)).await;
            polled.map(|records| records.len())
        };
        until(async || {
            idle().await.unwrap();
            consumer.assignment().len() == 1
        })
        .await;
        // Its future is dropped: the group is left nevertheless.
        assert!(consumer.unsubscribe().now_or_never().is_none());
        consumer.subscribe(["t"]).unwrap();
        produce(broker.servers(), "t", Some(0), 0..3).await;
        until(async || idle().await.unwrap() == 3).await;

        assert!(consumer.unsubscribe().now_or_never().is_none());
        until(async || idle().await.is_err()).await;
        consumer.assign([(t(0), Seek::Earliest)]).unwrap();
        until(async || idle().await.unwrap() == 3).await;
    }
}

#[tokio::test]
async fn a_panic_of_the_rebalance_handler_is_an_error_and_the_consumer_goes_on() {
    let (broker, _admin) = broker(1).await;
    produce(broker.servers(), "t", Some(0), 0..3).await;
    let mut consumer = Consumer::connect(config(&broker)).await.unwrap();
    let handler = Difficult(AtomicBool::new(false));
    consumer.set_rebalance_handler(handler).unwrap();
    consumer.subscribe(["t"]).unwrap();
    let error = timeout(LONG, consumer.poll()).await.unwrap().unwrap_err();
    let expected = "the rebalance handler did not get to its end: a panic: not yet";
    assert_eq!(error.to_string(), expected);
    assert_eq!(
        timeout(LONG, consumer.poll()).await.unwrap().unwrap().len(),
        3
    );
}

/// Never lets go.
struct Holds(Arc<AtomicBool>);

impl RebalanceHandler for Holds {
    async fn revoked(&self, _: &Rebalance) {
        self.0.store(true, Ordering::Relaxed);
        std::future::pending().await
    }
}

#[tokio::test]
async fn an_application_that_never_lets_go_is_not_waited_for_and_commits_nothing_afterwards() {
    for group_protocol in [GroupProtocol::Consumer, GroupProtocol::Classic] {
        let (broker, admin) = broker(1).await;
        let config = ConsumerConfig {
            group_protocol,
            auto_commit: false,
            poll_interval_max: Duration::from_secs(1),
            ..config(&broker)
        };
        let idle = async |consumer: &mut Consumer| {
            let polled = consumer.poll_for(Duration::from_millis(20)).await;
            assert!(polled.unwrap().is_empty());
        };
        let mut first = Consumer::connect(config.clone()).await.unwrap();
        let holds = Arc::new(AtomicBool::new(false));
        first.set_rebalance_handler(Holds(holds.clone())).unwrap();
        first.subscribe(["t"]).unwrap();
        until(async || {
            idle(&mut first).await;
            first.assignment().len() == 1
        })
        .await;
        let mut others = [config.clone(), config].map(|config| Consumer::new(config).unwrap());
        for other in &others {
            other.subscribe(["t"]).unwrap();
        }
        // Whoever is left when the first one has gone.
        let leaving = first.unsubscribe();
        let (left, ()) = tokio::join!(leaving, async {
            until(async || {
                let [one, other] = &mut others;
                tokio::join!(idle(one), idle(other));
                others.iter().any(|other| other.assignment().len() == 1)
            })
            .await;
        });
        left.unwrap();
        assert!(holds.load(Ordering::Relaxed));
        let late = first.commit_offsets(&[(t(0), 7.into())]).await;
        assert!(late.is_err());
        assert_eq!(committed(&admin, 0).await, None);
    }
}
