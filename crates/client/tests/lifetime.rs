//! A client that has worked once lives as long as its program.

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use common::{LONG, until};
use kohort::{
    Admin, ApiKey, ClientConfig, CommittedOffset, Consumer, ConsumerConfig, Error, ErrorCode,
    Producer, ProducerConfig, ProducerRecord, TopicPartition,
    consumer::{GroupProtocol, OffsetReset, Seek},
    rpc::{Destination, Sasl, messages::*},
    testing::{Fate, RequestSeen, TestBroker},
};
use tokio::time::{Instant, sleep, timeout};

/// What goes wrong when a connection is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    None,
    /// A load balancer answers instead of the broker.
    Garbage,
    /// The broker knows none of our versions.
    Versions,
    Password,
}

fn open(request: &RequestSeen<'_>, refusal: Refusal) -> Fate {
    let answer = match (request.api, refusal) {
        (Some(ApiKey::ApiVersions), Refusal::Garbage) => {
            let garbage = Bytes::from_static(b"HTTP/1.1 503 Service Unavailable");
            return Fate::Answer(garbage);
        }
        (Some(ApiKey::ApiVersions), Refusal::Versions) => request.answer(&ApiVersionsResponse {
            error_code: ErrorCode::INVALID_REQUEST,
            ..Default::default()
        }),
        (Some(ApiKey::SaslHandshake), _) => request.answer(&SaslHandshakeResponse {
            mechanisms: vec!["PLAIN".into()],
            ..Default::default()
        }),
        (Some(ApiKey::SaslAuthenticate), Refusal::Password) => {
            request.answer(&SaslAuthenticateResponse {
                error_code: ErrorCode::SASL_AUTHENTICATION_FAILED,
                ..Default::default()
            })
        }
        (Some(ApiKey::SaslAuthenticate), _) => request.answer(&SaslAuthenticateResponse::default()),
        _ => return Fate::Pass,
    };
    answer.unwrap()
}

fn refuse(broker: &TestBroker, refusal: Refusal) {
    broker.on_request(move |request| open(request, refusal));
}

fn with_password(broker: &TestBroker) -> ClientConfig {
    let mut config = broker.config();
    config.security.sasl = Some(Sasl::Plain {
        username: "u".to_owned(),
        password: "p".to_owned(),
    });
    config
}

async fn send(producer: &Producer, value: &str) {
    let record = ProducerRecord::new("t").value(value);
    let delivery = producer.send(record).await.unwrap();
    timeout(LONG, delivery).await.unwrap().unwrap();
}

/// The errors of polls until there is a record.
async fn poll(consumer: &mut Consumer) -> Vec<Error> {
    let mut errors = Vec::new();
    let polling = async {
        loop {
            match consumer.poll().await {
                Ok(records) if records.is_empty() => {}
                Ok(_) => return,
                Err(error) => errors.push(error),
            }
        }
    };
    timeout(LONG, polling).await.expect("a record");
    errors
}

#[tokio::test]
async fn refused_connections_end_neither_a_producer_nor_a_member_that_has_worked() {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    for protocol in [GroupProtocol::Consumer, GroupProtocol::Classic] {
        refuse(&broker, Refusal::None);
        let producer = Producer::connect(ProducerConfig {
            client: with_password(&broker),
            ..ProducerConfig::new(broker.servers())
        });
        let producer = producer.await.unwrap();
        let consumer = Consumer::connect(ConsumerConfig {
            client: with_password(&broker),
            group_id: Some(format!("{protocol:?}").into()),
            group_protocol: protocol,
            offset_reset: OffsetReset::Latest,
            ..ConsumerConfig::new(broker.servers())
        });
        let mut consumer = consumer.await.unwrap();
        consumer.subscribe(["t"]).unwrap();
        let admin = Admin::connect(with_password(&broker)).await.unwrap();
        let name = TopicPartition::new("t", 0);
        let reads = async || {
            let _ = consumer.poll_for(Duration::from_millis(10)).await;
            consumer
                .position(&name)
                .is_ok_and(|position| position.is_some())
        };
        until(reads).await;
        send(&producer, "before").await;
        assert!(poll(&mut consumer).await.is_empty());

        for refusal in [Refusal::Garbage, Refusal::Versions, Refusal::Password] {
            refuse(&broker, refusal);
            broker.disconnect_all();
            let record = ProducerRecord::new("t").value("during");
            let delivery = producer.send(record).await.unwrap();
            let polled = consumer.poll_for(Duration::from_millis(1500)).await;
            match refusal {
                Refusal::Garbage => assert!(polled.unwrap().is_empty()),
                _ => assert!(polled.is_err(), "{refusal:?}"),
            }
            refuse(&broker, Refusal::None);
            timeout(LONG, delivery).await.unwrap().unwrap();
            poll(&mut consumer).await;
            assert!(consumer.failure().is_none(), "{refusal:?}");
            send(&producer, "after").await;
            poll(&mut consumer).await;
            admin.list_groups(&Default::default()).await.unwrap();
        }
        consumer.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_wrong_password_is_an_error_at_the_start_and_the_next_record_has_another_chance() {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    refuse(&broker, Refusal::Password);
    let refused = Admin::connect(with_password(&broker)).await.unwrap_err();
    assert!(matches!(refused, Error::Authentication { .. }), "{refused}");

    let producer = Producer::new(ProducerConfig {
        client: with_password(&broker),
        ..ProducerConfig::new(broker.servers())
    });
    let producer = producer.unwrap();
    let refused = producer.send(ProducerRecord::new("t")).await.unwrap_err();
    assert!(matches!(refused, Error::Authentication { .. }), "{refused}");
    refuse(&broker, Refusal::None);
    send(&producer, "v").await;
}

#[tokio::test]
async fn a_refused_producer_id_fails_the_records_in_hand_and_no_others() {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    broker.on_request(|request| match request.api {
        Some(ApiKey::InitProducerId) => request
            .answer(&InitProducerIdResponse {
                error_code: ErrorCode::CLUSTER_AUTHORIZATION_FAILED,
                ..Default::default()
            })
            .unwrap(),
        _ => Fate::Pass,
    });
    let producer = Producer::connect(ProducerConfig::new(broker.servers()));
    let producer = producer.await.unwrap();
    let delivery = producer.send(ProducerRecord::new("t")).await.unwrap();
    let refused = timeout(LONG, delivery).await.unwrap().unwrap_err();
    assert_eq!(
        refused.code(),
        Some(ErrorCode::CLUSTER_AUTHORIZATION_FAILED)
    );
    broker.pass_all();
    send(&producer, "v").await;
}

/// Runs clients whose runtime then ends.
fn other_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

fn ended<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::RuntimeEnded), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_waits_for_a_client_ends_when_the_runtime_of_the_client_does() {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    let runtime = other_runtime();
    let name = TopicPartition::new("t", 0);
    let (config, assigned) = (broker.config(), name.clone());
    let build = async move {
        let producer = Producer::connect(ProducerConfig {
            client: config.clone(),
            ..ProducerConfig::default()
        });
        let producer = producer.await.unwrap();
        send(&producer, "v").await;
        let consumer = Consumer::connect(ConsumerConfig {
            client: config.clone(),
            group_id: Some("g".into()),
            auto_commit: false,
            ..ConsumerConfig::default()
        });
        let mut consumer = consumer.await.unwrap();
        consumer
            .assign([(assigned.clone(), Seek::Earliest)])
            .unwrap();
        poll(&mut consumer).await;
        consumer.commit().await.unwrap();
        let member = Consumer::connect(ConsumerConfig {
            client: config.clone(),
            group_id: Some("h".into()),
            offset_reset: OffsetReset::Earliest,
            ..ConsumerConfig::default()
        });
        let mut member = member.await.unwrap();
        member.subscribe(["t"]).unwrap();
        poll(&mut member).await;
        let admin = Admin::connect(config).await.unwrap();
        (producer, consumer, member, admin)
    };
    let (producer, mut consumer, member, admin) = runtime.spawn(build).await.unwrap();

    // Nothing is answered any more.
    let held = Arc::new(AtomicUsize::new(0));
    let holding = held.clone();
    broker.on_request(move |request| match request.api {
        Some(ApiKey::Produce | ApiKey::OffsetCommit | ApiKey::ListGroups) => {
            holding.fetch_add(1, Ordering::Relaxed);
            Fate::Lose
        }
        _ => Fate::Pass,
    });
    let delivery = tokio::spawn(producer.send(ProducerRecord::new("t")).await.unwrap());
    let flushing = tokio::spawn({
        let producer = producer.clone();
        async move { producer.flush().await }
    });
    let polling = tokio::spawn({
        let mut consumer = consumer.clone();
        async move { consumer.poll().await }
    });
    let committing = tokio::spawn({
        let (consumer, name) = (consumer.clone(), name.clone());
        async move {
            let offset = CommittedOffset::new(0);
            consumer.commit_offsets(&[(name, offset)]).await
        }
    });
    let member_polling = tokio::spawn({
        let mut member = member.clone();
        async move { member.poll().await }
    });
    let asking = tokio::spawn({
        let cluster = admin.cluster().clone();
        async move {
            let request = ListGroupsRequest::default();
            cluster.call(&Destination::Any, &request).await
        }
    });
    until(async || held.load(Ordering::Relaxed) == 3).await;
    runtime.shutdown_background();

    let all = async {
        ended(delivery.await.unwrap());
        flushing.await.unwrap();
        ended(polling.await.unwrap());
        ended(committing.await.unwrap());
        ended(member_polling.await.unwrap());
        ended(asking.await.unwrap());
        // And so do those who come later.
        broker.pass_all();
        ended(producer.send(ProducerRecord::new("t")).await);
        producer.close().await;
        ended(consumer.poll().await);
        ended(
            consumer
                .commit_offsets(&[(name, CommittedOffset::new(0))])
                .await,
        );
        ended(member.subscribe(["t"]));
        ended(member.unsubscribe().await);
        ended(consumer.close().await);
        ended(member.close().await);
        // What has no tasks of its own works on the runtime of the caller.
        admin.list_groups(&Default::default()).await.unwrap();
    };
    timeout(LONG, all).await.expect("nothing may hang");
}

#[tokio::test]
async fn a_final_error_is_returned_at_once_and_then_at_intervals() {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    broker.on_request(|request| match request.api {
        Some(ApiKey::ConsumerGroupHeartbeat) => request
            .answer(&ConsumerGroupHeartbeatResponse {
                error_code: ErrorCode::GROUP_MAX_SIZE_REACHED,
                ..Default::default()
            })
            .unwrap(),
        _ => Fate::Pass,
    });
    let consumer = Consumer::connect(ConsumerConfig {
        group_id: Some("g".into()),
        group_protocol: GroupProtocol::Consumer,
        ..ConsumerConfig::new(broker.servers())
    });
    let mut consumer = consumer.await.unwrap();
    let count = async |consumer: &mut Consumer, wait| {
        let started = Instant::now();
        let mut errors = 0;
        while started.elapsed() < wait {
            errors += usize::from(consumer.poll_for(wait).await.is_err());
        }
        errors
    };
    let wait = Duration::from_millis(1500);
    // There is nothing to read, either.
    assert!((1..=3).contains(&count(&mut consumer, wait).await));
    consumer.subscribe(["t"]).unwrap();
    until(async || consumer.failure().is_some()).await;
    assert!((1..=3).contains(&count(&mut consumer, wait).await));
    let failure = consumer.failure().unwrap();
    assert_eq!(failure.code(), Some(ErrorCode::GROUP_MAX_SIZE_REACHED));

    broker.pass_all();
    consumer.subscribe(["t"]).unwrap();
    assert!(consumer.failure().is_none());
    let assigned = async || {
        let _ = consumer.poll_for(Duration::from_millis(10)).await;
        !consumer.assignment().is_empty()
    };
    until(assigned).await;
}

#[tokio::test]
async fn a_static_member_that_was_killed_and_restarted_gets_its_partitions_back() {
    let settings = [
        ("group.consumer.session.timeout.ms", "3000"),
        ("group.consumer.heartbeat.interval.ms", "500"),
    ];
    let broker = TestBroker::start_with(settings).await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    let config = ConsumerConfig {
        client: broker.config(),
        group_id: Some("g".into()),
        group_instance_id: Some("i".into()),
        group_protocol: GroupProtocol::Consumer,
        ..ConsumerConfig::default()
    };
    let assigned = async |consumer: &mut Consumer| {
        let polling = async {
            while consumer.assignment().is_empty() {
                consumer.poll_for(Duration::from_millis(10)).await.unwrap();
            }
        };
        timeout(LONG, polling).await.expect("an assignment");
    };
    let runtime = other_runtime();
    let killed = config.clone();
    let killed = runtime.spawn(async move {
        let mut consumer = Consumer::connect(killed).await.unwrap();
        consumer.subscribe(["t"]).unwrap();
        while consumer.assignment().is_empty() {
            consumer.poll_for(Duration::from_millis(10)).await.unwrap();
        }
        consumer
    });
    let killed = killed.await.unwrap();
    runtime.shutdown_background();

    let mut consumer = Consumer::connect(config).await.unwrap();
    consumer.subscribe(["t"]).unwrap();
    assigned(&mut consumer).await;
    assert!(consumer.failure().is_none());
    drop(killed);
}

#[tokio::test]
async fn a_record_to_a_topic_that_appears_later_is_written() {
    let settings = [("auto.create.topics.enable", "false")];
    let broker = TestBroker::start_with(settings).await.unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let asking = asked.clone();
    broker.on_request(move |request| {
        let metadata = request.api == Some(ApiKey::Metadata);
        asking.fetch_add(usize::from(metadata), Ordering::Relaxed);
        Fate::Pass
    });
    let producer = Producer::connect(ProducerConfig::new(broker.servers()));
    let producer = producer.await.unwrap();
    let before = asked.load(Ordering::Relaxed);
    let sending = tokio::spawn(async move { send(&producer, "v").await });
    sleep(Duration::from_secs(3)).await;
    // Ever more rarely, to once a second.
    let often = asked.load(Ordering::Relaxed) - before;
    assert!((3..=8).contains(&often), "{often}");
    broker.create_topic("t", 1).await.unwrap();
    timeout(LONG, sending).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_large_record_gets_memory_although_small_ones_keep_coming() {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    let producer = Producer::connect(ProducerConfig {
        buffer_bytes_max: 64 << 10,
        batch_bytes: 4 << 10,
        ..ProducerConfig::new(broker.servers())
    });
    let producer = producer.await.unwrap();
    let small: Vec<_> = (0..4)
        .map(|_| {
            let producer = producer.clone();
            tokio::spawn(async move {
                let value = vec![0; 1 << 10];
                loop {
                    let record = ProducerRecord::new("t").value(&value);
                    drop(producer.send(record).await.unwrap());
                }
            })
        })
        .collect();
    sleep(Duration::from_millis(200)).await;
    let value = vec![1; 60 << 10];
    for _ in 0..3 {
        let sending = producer.send(ProducerRecord::new("t").value(&value));
        let delivery = timeout(LONG, sending).await.expect("memory").unwrap();
        timeout(LONG, delivery).await.unwrap().unwrap();
    }
    small.into_iter().for_each(|task| task.abort());
}

#[tokio::test]
async fn a_missing_topic_is_asked_for_ever_more_rarely() {
    let settings = [("auto.create.topics.enable", "false")];
    let broker = TestBroker::start_with(settings).await.unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let asking = asked.clone();
    broker.on_request(move |request| {
        let metadata = request.api == Some(ApiKey::Metadata);
        asking.fetch_add(usize::from(metadata), Ordering::Relaxed);
        Fate::Pass
    });
    let consumer = Consumer::connect(ConsumerConfig::new(broker.servers()));
    let consumer = consumer.await.unwrap();
    let missing = TopicPartition::new("missing", 0);
    consumer.assign([(missing, Seek::Offset(0))]).unwrap();
    sleep(Duration::from_secs(2)).await;
    let before = asked.load(Ordering::Relaxed);
    sleep(Duration::from_secs(3)).await;
    let often = asked.load(Ordering::Relaxed) - before;
    assert!((1..=5).contains(&often), "{often}");
}

#[tokio::test]
async fn pauses_that_a_broker_asks_for_are_made() {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    let cluster = Admin::connect(broker.config())
        .await
        .unwrap()
        .cluster()
        .clone();
    broker.on_request(|request| match request.api {
        Some(ApiKey::ListGroups) => request
            .answer(&ListGroupsResponse {
                throttle_time_ms: 500,
                ..Default::default()
            })
            .unwrap(),
        _ => Fate::Pass,
    });
    let started = Instant::now();
    for _ in 0..3 {
        let request = ListGroupsRequest::default();
        cluster.call(&Destination::Any, &request).await.unwrap();
    }
    // Each response is delivered at once; the next request waits.
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_producer_makes_the_pauses_that_a_broker_asks_for() {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    let producer = Producer::connect(ProducerConfig {
        linger: Duration::ZERO,
        ..ProducerConfig::new(broker.servers())
    });
    let producer = producer.await.unwrap();
    send(&producer, "v").await;
    let produced = Arc::new(AtomicUsize::new(0));
    let producing = produced.clone();
    broker.on_request(move |request| match request.api {
        Some(ApiKey::Produce) => {
            producing.fetch_add(1, Ordering::Relaxed);
            request
                .answer(&ProduceResponse {
                    throttle_time_ms: 400,
                    ..Default::default()
                })
                .unwrap()
        }
        _ => Fate::Pass,
    });
    // The answer leaves the partition out, so that the record is sent again and again.
    let delivery = producer.send(ProducerRecord::new("t")).await.unwrap();
    sleep(Duration::from_millis(1000)).await;
    let often = produced.load(Ordering::Relaxed);
    assert!((1..=3).contains(&often), "{often}");
    broker.pass_all();
    timeout(LONG, delivery).await.unwrap().unwrap();
}
