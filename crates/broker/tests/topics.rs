//! Topics come and go as in Kafka.

mod common;

use common::*;
use kohort_wire::{ErrorCode, Uuid, messages::*};

async fn create(client: &mut Client, request: CreateTopicsRequest) -> CreatableTopicResult {
    client.ask(7, request).await.topics.remove(0)
}

fn metadata(name: &str, may_create: bool) -> MetadataRequest {
    MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            name: Some(name.into()),
            ..MetadataRequestTopic::default()
        }]),
        allow_auto_topic_creation: may_create,
        ..MetadataRequest::default()
    }
}

#[tokio::test]
async fn a_topic_is_created_described_and_deleted() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let created = create(&mut client, create_topic("t", 3, &[("retention.ms", "5")])).await;
    assert_eq!(created.error_code, ErrorCode::NONE);
    assert_eq!((created.num_partitions, created.replication_factor), (3, 1));
    let configs = created.configs.unwrap();
    let retention = configs
        .iter()
        .find(|config| &*config.name == "retention.ms")
        .unwrap();
    assert_eq!(retention.value.as_deref(), Some("5"));
    assert_eq!(retention.config_source, 1);

    let described = client.ask(12, metadata("t", false)).await;
    assert_eq!(described.topics[0].topic_id, created.topic_id);
    assert_eq!(described.topics[0].partitions.len(), 3);
    assert_eq!(
        described.brokers[0].port,
        i32::from(broker.address().port())
    );
    assert_eq!(described.cluster_id.as_deref(), Some(broker.cluster_id()));

    let delete = DeleteTopicsRequest {
        topics: vec![DeleteTopicState {
            name: None,
            topic_id: created.topic_id,
        }],
        timeout_ms: 1000,
        ..DeleteTopicsRequest::default()
    };
    let deleted = client.ask(6, delete).await;
    assert_eq!(deleted.responses[0].error_code, ErrorCode::NONE);
    assert_eq!(deleted.responses[0].name.as_deref(), Some("t"));
    let gone = client.ask(12, metadata("t", false)).await;
    assert_eq!(
        gone.topics[0].error_code,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
}

#[tokio::test]
async fn what_cannot_be_created_is_refused_with_kafkas_errors() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("a.b", 1).await;
    let mut of_two = create_topic("x", 1, &[]);
    of_two.topics[0].replication_factor = 2;
    let cases = [
        (create_topic("a.b", 1, &[]), ErrorCode::TOPIC_ALREADY_EXISTS),
        (
            create_topic("a_b", 1, &[]),
            ErrorCode::INVALID_TOPIC_EXCEPTION,
        ),
        (
            create_topic("a b", 1, &[]),
            ErrorCode::INVALID_TOPIC_EXCEPTION,
        ),
        (create_topic("x", 0, &[]), ErrorCode::INVALID_PARTITIONS),
        (create_topic("x", 300_000, &[]), ErrorCode::POLICY_VIOLATION),
        (
            create_topic("x", 1, &[("no.such", "1")]),
            ErrorCode::INVALID_CONFIG,
        ),
        (
            create_topic("x", 1, &[("retention.ms", "-2")]),
            ErrorCode::INVALID_CONFIG,
        ),
        (of_two, ErrorCode::INVALID_REPLICATION_FACTOR),
    ];
    for (request, code) in cases {
        let name = request.topics[0].name.clone();
        let created = create(&mut client, request).await;
        assert_eq!(created.error_code, code, "{name}: {created:?}");
        assert!(created.error_message.is_some());
    }
    let mut twice = create_topic("y", 1, &[]);
    twice.topics.push(twice.topics[0].clone());
    let created = client.ask(7, twice).await;
    assert_eq!(created.topics.len(), 1);
    assert_eq!(created.topics[0].error_code, ErrorCode::INVALID_REQUEST);
    assert_eq!(broker.topics(), ["a.b"]);
}

#[tokio::test]
async fn validating_creates_nothing() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let mut request = create_topic("t", 4, &[]);
    request.validate_only = true;
    let created = create(&mut client, request).await;
    assert_eq!(
        (created.error_code, created.num_partitions),
        (ErrorCode::NONE, 4)
    );
    assert_eq!(broker.topics(), [""; 0]);
}

#[tokio::test]
async fn a_topic_that_is_asked_for_is_created_if_it_may_be() {
    let broker = builder().set("num.partitions", "2").start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let refused = client.ask(12, metadata("t", false)).await;
    assert_eq!(
        refused.topics[0].error_code,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
    let created = client.ask(12, metadata("t", true)).await;
    assert_eq!(created.topics[0].error_code, ErrorCode::NONE);
    assert_eq!(created.topics[0].partitions.len(), 2);
    let invalid = client.ask(12, metadata("t t", true)).await;
    assert_eq!(
        invalid.topics[0].error_code,
        ErrorCode::INVALID_TOPIC_EXCEPTION
    );

    let strict = builder()
        .set("auto.create.topics.enable", "false")
        .start()
        .await
        .unwrap();
    let mut client = Client::connect(&strict).await;
    let refused = client.ask(12, metadata("t", true)).await;
    assert_eq!(
        refused.topics[0].error_code,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
}

#[tokio::test]
async fn a_topic_gets_more_partitions_and_never_fewer() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 2).await;
    client.produce("t", 1, &["kept"]).await;
    let grow = |count| CreatePartitionsRequest {
        topics: vec![CreatePartitionsTopic {
            name: "t".into(),
            count,
            assignments: None,
        }],
        timeout_ms: 1000,
        validate_only: false,
    };
    for (count, code) in [
        (1, ErrorCode::INVALID_PARTITIONS),
        (2, ErrorCode::INVALID_PARTITIONS),
        (5, ErrorCode::NONE),
    ] {
        let grown = client.ask(3, grow(count)).await;
        assert_eq!(grown.results[0].error_code, code, "{count}");
    }
    assert_eq!(
        client.produce("t", 4, &["new"]).await.error_code,
        ErrorCode::NONE
    );
    assert_eq!(values(&client.fetch("t", 1, 0).await), ["kept"]);
}

#[tokio::test]
async fn a_topic_created_again_is_another_one() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let first = client.create_topic("t", 1).await;
    client.produce("t", 0, &["old"]).await;
    let delete = DeleteTopicsRequest {
        topic_names: vec!["t".into()],
        timeout_ms: 1000,
        ..DeleteTopicsRequest::default()
    };
    client.ask(5, delete).await;
    let second = client.create_topic("t", 1).await;
    assert_ne!(first, second);
    assert_eq!(client.fetch("t", 0, 0).await.high_watermark, 0);
    let mut stale = fetch("", 0, 0, 0);
    stale.topics[0].topic_id = first;
    let response = client.ask(13, stale).await;
    let code = response.responses[0].partitions[0].error_code;
    assert_eq!(code, ErrorCode::UNKNOWN_TOPIC_ID);
}

#[tokio::test]
async fn topics_are_described_a_page_at_a_time() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("a", 3).await;
    client.create_topic("b", 3).await;
    let mut seen = Vec::new();
    let mut cursor = None;
    for _ in 0..10 {
        let request = DescribeTopicPartitionsRequest {
            topics: Vec::new(),
            response_partition_limit: 2,
            cursor,
        };
        let response = client.ask(0, request).await;
        for topic in &response.topics {
            let name = topic.name.clone().unwrap();
            seen.extend(
                topic
                    .partitions
                    .iter()
                    .map(|it| format!("{name}-{}", it.partition_index)),
            );
        }
        cursor = response.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["a-0", "a-1", "a-2", "b-0", "b-1", "b-2"]);
}

#[tokio::test]
async fn deleting_says_what_is_wrong_with_each() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let topics = [
        (None, Uuid(5)),
        (Some("no"), Uuid::ZERO),
        (None, Uuid::ZERO),
        (Some("x"), Uuid(1)),
    ];
    let topics = topics.map(|(name, topic_id)| DeleteTopicState {
        name: name.map(Into::into),
        topic_id,
    });
    let request = DeleteTopicsRequest {
        topics: topics.to_vec(),
        timeout_ms: 1000,
        ..DeleteTopicsRequest::default()
    };
    let response = client.ask(6, request).await;
    let codes: Vec<_> = response.responses.iter().map(|it| it.error_code).collect();
    assert_eq!(
        codes,
        [
            ErrorCode::UNKNOWN_TOPIC_ID,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode::INVALID_REQUEST,
            ErrorCode::INVALID_REQUEST
        ]
    );
}

#[tokio::test]
async fn the_groups_topic_belongs_to_the_broker() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.find_coordinator("g").await;
    let name = "__consumer_offsets";
    assert_eq!(broker.topics(), [name]);
    let described = client.ask(12, metadata(name, false)).await;
    assert!(described.topics[0].is_internal);
    assert_eq!(described.topics[0].partitions.len(), 50);
    let produced = client.produce(name, 0, &["x"]).await;
    assert_eq!(produced.error_code, ErrorCode::INVALID_TOPIC_EXCEPTION);
    let delete = DeleteTopicsRequest {
        topic_names: vec![name.into()],
        timeout_ms: 1000,
        ..DeleteTopicsRequest::default()
    };
    let refused = client.ask(5, delete).await;
    assert_eq!(refused.responses[0].error_code, ErrorCode::INVALID_REQUEST);
    let grow = CreatePartitionsRequest {
        topics: vec![CreatePartitionsTopic {
            name: name.into(),
            count: 60,
            assignments: None,
        }],
        ..CreatePartitionsRequest::default()
    };
    let refused = client.ask(3, grow).await;
    assert_eq!(refused.results[0].error_code, ErrorCode::INVALID_REQUEST);
}

/// Containers find the broker under one name, the host under another.
#[tokio::test]
async fn a_client_is_told_the_address_of_the_listener_through_which_it_came() {
    let broker = builder()
        .listen("127.0.0.1:0")
        .advertise("kafka:9092")
        .listen("127.0.0.1:0")
        .advertise("[::1]:29092")
        .start()
        .await
        .unwrap();
    assert_eq!(broker.addresses().len(), 2);
    for (address, expected) in broker
        .addresses()
        .iter()
        .zip([("kafka", 9092), ("::1", 29092)])
    {
        let mut client = Client::connect_to(*address).await;
        let metadata = client.ask(9, MetadataRequest::default()).await;
        let told = &metadata.brokers[0];
        assert_eq!((&*told.host, told.port), expected);
        let cluster = DescribeClusterRequest {
            endpoint_type: 1,
            ..DescribeClusterRequest::default()
        };
        let cluster = client.ask(1, cluster).await;
        let told = &cluster.brokers[0];
        assert_eq!((&*told.host, told.port), expected);
        let find = FindCoordinatorRequest {
            coordinator_keys: vec!["g".into()],
            ..FindCoordinatorRequest::default()
        };
        let found = client.ask(4, find).await;
        let told = &found.coordinators[0];
        assert_eq!((&*told.host, told.port), expected);
    }
}
