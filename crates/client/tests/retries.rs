//! What is tried again, and what comes of it.

mod common;

use std::{
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use common::{LONG, with_topic};
use futures_util::FutureExt;
use kohort::{
    Admin, ApiKey, ByteString, ClientConfig, CommittedOffset, Consumer, ConsumerConfig, Error,
    ErrorCode, Producer, ProducerConfig, ProducerRecord, TopicPartition,
    admin::{MemberToRemove, NewTopic},
    producer::Acks,
    rpc::{Cluster, Destination, messages::*},
    testing::{Fate, TestBroker},
};
use tokio::time::{sleep, timeout};

/// The answer to the next request of this kind is lost.
fn lose_next_answer(broker: &TestBroker, api: ApiKey) {
    let lost = AtomicBool::new(false);
    broker.on_request(move |request| match request.api == Some(api) {
        true if !lost.swap(true, Ordering::Relaxed) => Fate::LoseAnswer,
        // Who was removed does not come back at once.
        _ if request.api == Some(ApiKey::ConsumerGroupHeartbeat) => Fate::Disconnect,
        _ => Fate::Pass,
    });
}

#[track_caller]
fn repeated<T: std::fmt::Debug>(result: Result<T, Error>, code: ErrorCode) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), Some(code));
    assert!(!error.is_retriable());
    assert!(matches!(error, Error::Repeated { .. }), "{error:?}");
    let text = error.to_string();
    let expected = "; an earlier attempt may have done it, of which no answer came: ";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test]
async fn what_an_earlier_attempt_may_have_done_is_told_from_what_was_so_before() {
    let broker = TestBroker::start().await.unwrap();
    let admin = Admin::connect(broker.config()).await.unwrap();

    let topic = NewTopic::new("t", 1);
    let exists = ErrorCode::TOPIC_ALREADY_EXISTS;
    lose_next_answer(&broker, ApiKey::CreateTopics);
    repeated(admin.create_topic(&topic).await, exists);
    let before = admin.create_topic(&topic).await.unwrap_err();
    assert!(matches!(&before, Error::Kafka { .. }), "{before:?}");
    // Nothing is created by asking whether it would work.
    lose_next_answer(&broker, ApiKey::CreateTopics);
    let mut checked = admin.create_topics(&[topic], true).await.unwrap();
    let before = checked.pop().unwrap().1.unwrap_err();
    assert!(matches!(&before, Error::Kafka { .. }), "{before:?}");

    lose_next_answer(&broker, ApiKey::CreatePartitions);
    let grown = admin.create_partitions("t", 2).await;
    repeated(grown, ErrorCode::INVALID_PARTITIONS);

    let producer = Producer::connect(ProducerConfig::new(broker.servers()))
        .await
        .unwrap();
    let record = ProducerRecord::new("t").partition(0);
    producer.send(record).await.unwrap().await.unwrap();
    // What is deleted is not there: there is nothing to complain about.
    lose_next_answer(&broker, ApiKey::DeleteRecords);
    let before = [(TopicPartition::new("t", 0), 1)];
    let mut deleted = admin.delete_records(&before).await;
    assert_eq!(deleted.pop().unwrap().1.unwrap(), 1);

    let offset = [(TopicPartition::new("t", 0), CommittedOffset::new(1))];
    admin.alter_group_offsets("g", &offset).await.unwrap();
    lose_next_answer(&broker, ApiKey::OffsetDelete);
    let partition = [TopicPartition::new("t", 0)];
    match admin.delete_group_offsets("g", &partition).await {
        Ok(each) => each.into_iter().for_each(|(_, result)| result.unwrap()),
        gone => repeated(gone, ErrorCode::GROUP_ID_NOT_FOUND),
    }

    admin.alter_group_offsets("g", &offset).await.unwrap();
    lose_next_answer(&broker, ApiKey::DeleteGroups);
    repeated(admin.delete_group("g").await, ErrorCode::GROUP_ID_NOT_FOUND);

    broker.pass_all();
    let mut consumer = ConsumerConfig::new(broker.servers()).group("g");
    consumer.client.allow_auto_create_topics = Some(false);
    let mut consumer = Consumer::connect(consumer).await.unwrap();
    consumer.subscribe(["t"]).unwrap();
    let polls = async {
        while consumer.assignment().is_empty() {
            let _ = consumer.poll_for(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, polls).await.unwrap();
    let member = admin.describe_group("g").await.unwrap().members.remove(0);
    let member = MemberToRemove::Id(member.member_id);
    lose_next_answer(&broker, ApiKey::LeaveGroup);
    let removed = admin.remove_member("g", member).await;
    repeated(removed, ErrorCode::UNKNOWN_MEMBER_ID);

    lose_next_answer(&broker, ApiKey::DeleteTopics);
    let gone = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    repeated(admin.delete_topic("t").await, gone);
    let before = admin.delete_topic("t").await.unwrap_err();
    assert!(matches!(&before, Error::Kafka { .. }), "{before:?}");
}

/// An address at which nobody is.
fn nowhere() -> i32 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    i32::from(listener.local_addr().unwrap().port())
}

/// The first answer to Metadata names a broker as the controller, and as the leader of what there
/// is, that is not there any more.
fn misled(broker: &TestBroker, times: usize) {
    let (host, port) = broker.servers().rsplit_once(':').unwrap();
    let at = |node_id, port| MetadataResponseBroker {
        node_id,
        host: ByteString::from(host),
        port,
        rack: None,
    };
    let brokers = vec![at(1, port.parse().unwrap()), at(99, nowhere())];
    let asked = AtomicUsize::new(0);
    broker.on_request(move |request| {
        let first = asked.load(Ordering::Relaxed) < times;
        if request.api != Some(ApiKey::Metadata) || !first {
            return Fate::Pass;
        }
        asked.fetch_add(1, Ordering::Relaxed);
        let partition = MetadataResponsePartition {
            partition_index: 0,
            leader_id: 99,
            ..Default::default()
        };
        let topic = MetadataResponseTopic {
            name: Some("t".into()),
            partitions: vec![partition],
            ..Default::default()
        };
        let response = MetadataResponse {
            brokers: brokers.clone(),
            controller_id: 99,
            topics: vec![topic],
            ..Default::default()
        };
        request.answer(&response).unwrap()
    });
}

#[tokio::test]
async fn a_controller_and_a_leader_that_are_gone_are_looked_up_again() {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    misled(&broker, 1);
    let config = ClientConfig {
        api_timeout: Duration::from_secs(10),
        ..broker.config()
    };
    let admin = Admin::connect(config).await.unwrap();
    assert_eq!(admin.cluster().metadata().controller(), Some(99));
    admin.create_topic(&NewTopic::new("u", 1)).await.unwrap();

    misled(&broker, 1);
    let config = admin.cluster().config().clone();
    let cluster = Cluster::connect(config).await.unwrap();
    let partition = TopicPartition::new("t", 0);
    assert_eq!(cluster.metadata().leader(&partition), Some(99));
    let to = Destination::Leader(partition);
    let asked = cluster.ask(&to, |_| ListGroupsRequest::default(), |_| Ok(()));
    asked.await.unwrap();
}

#[tokio::test]
async fn a_producer_learns_of_new_partitions_and_of_partitions_that_are_gone() {
    let broker = TestBroker::start().await.unwrap();
    let (admin, topic) = with_topic(broker.servers(), 1).await;
    let mut config = ProducerConfig::new(broker.servers());
    config.linger = Duration::ZERO;
    // Each record without a key goes to another partition.
    config.batch_bytes = 1;
    config.client.metadata_max_age = Duration::from_millis(50);
    let producer = Producer::connect(config).await.unwrap();
    let send = async || {
        sleep(Duration::from_millis(10)).await;
        let record = ProducerRecord::new(&topic).value("v");
        producer.send(record).await.unwrap().await.unwrap()
    };
    assert_eq!(send().await.partition, 0);
    admin.create_partitions(&topic, 3).await.unwrap();
    let all = async { while send().await.partition < 2 {} };
    timeout(LONG, all).await.unwrap();

    admin.delete_topic(&topic).await.unwrap();
    admin
        .create_topic(&NewTopic::new(topic.as_str(), 1))
        .await
        .unwrap();
    let beyond = async || {
        sleep(Duration::from_millis(10)).await;
        let record = ProducerRecord::new(&topic).partition(2);
        producer.send(record).await
    };
    // Until it is known here; what goes to a partition that is gone is written nowhere.
    let refused = async {
        loop {
            match beyond().await {
                Ok(delivery) => drop(delivery),
                Err(error) => break error.to_string(),
            }
        }
    };
    let refused = timeout(LONG, refused).await.unwrap();
    assert!(
        refused.ends_with("does not exist: 1 partitions do"),
        "{refused}"
    );
    assert_eq!(send().await.partition, 0);
}

#[tokio::test]
async fn a_delivery_is_told_in_time_although_an_attempt_is_still_under_way() {
    let broker = TestBroker::start().await.unwrap();
    let (_admin, topic) = with_topic(broker.servers(), 1).await;
    let two = Duration::from_secs(2);
    let mut config = ProducerConfig::new(broker.servers());
    config.linger = Duration::ZERO;
    config.delivery_timeout = two;
    config.client.request_timeout = two;
    let producer = Producer::connect(config).await.unwrap();
    let late = Arc::new(AtomicBool::new(false));
    let is_late = late.clone();
    broker.on_request(move |request| match request.api {
        Some(ApiKey::Produce) if is_late.load(Ordering::Relaxed) => Fate::Lose,
        Some(ApiKey::Produce) => Fate::Disconnect,
        _ => Fate::Pass,
    });
    let delivery = producer.send(ProducerRecord::new(&topic)).await.unwrap();
    // The last attempt begins when half of the time has passed: its answer could come until later.
    sleep(two / 2).await;
    late.store(true, Ordering::Relaxed);
    let error = timeout(LONG, delivery).await.unwrap().unwrap_err();
    assert!(matches!(&error, Error::Timeout { .. }), "{error}");
    assert!(producer.flush().now_or_never().is_none());
    timeout(LONG, producer.close()).await.unwrap();
}

#[tokio::test]
async fn an_error_that_time_is_up_says_what_went_wrong_before() {
    let address = format!("127.0.0.1:{}", nowhere());
    let mut config = ProducerConfig::new(&address);
    config.block_max = Duration::from_millis(300);
    let producer = Producer::new(config).unwrap();
    let error = producer.send(ProducerRecord::new("t")).await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("could not find topic t within "), "{text}");
    assert!(text.ends_with(": connection refused"), "{text}");

    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", 1).await.unwrap();
    broker.on_request(|request| match request.api {
        Some(ApiKey::Produce) => Fate::Disconnect,
        _ => Fate::Pass,
    });
    let mut config = ProducerConfig::new(broker.servers());
    config.linger = Duration::ZERO;
    config.delivery_timeout = Duration::from_millis(500);
    config.client.request_timeout = Duration::from_millis(400);
    let producer = Producer::connect(config).await.unwrap();
    let delivery = producer.send(ProducerRecord::new("t")).await.unwrap();
    let text = delivery.await.unwrap_err().to_string();
    let expected = "could not write to partition t-0 within 500ms: the connection to ";
    assert!(text.starts_with(expected), "{text}");
}

#[tokio::test]
async fn memory_is_bounded_also_where_no_answer_is_asked_for() {
    let broker = TestBroker::start().await.unwrap();
    let (_admin, topic) = with_topic(broker.servers(), 1).await;
    broker.on_request(|request| match request.api {
        // What comes behind is not read meanwhile.
        Some(ApiKey::Produce) => Fate::Delay(LONG),
        _ => Fate::Pass,
    });
    let config = ProducerConfig {
        acks: Acks::None,
        idempotence: false,
        linger: Duration::ZERO,
        buffer_bytes_max: 1 << 20,
        ..ProducerConfig::new(broker.servers())
    };
    let producer = Producer::connect(config).await.unwrap();
    let value = vec![7; 100 << 10];
    // Far more than the sockets hold.
    let all = async {
        for _ in 0..2000 {
            let record = ProducerRecord::new(&topic).value(&value);
            drop(producer.send(record).await.unwrap());
        }
    };
    assert!(timeout(Duration::from_secs(1), all).await.is_err());
    assert!(
        producer
            .try_send(&ProducerRecord::new(&topic).value(&value))
            .unwrap()
            .is_none()
    );
}
