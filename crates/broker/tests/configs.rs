//! Settings are described and changed.

mod common;

use common::*;
use kohort_wire::{ErrorCode, messages::*};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const LOGGER: i8 = 8;
const GROUP: i8 = 32;

async fn describe(client: &mut Client, kind: i8, name: &str) -> DescribeConfigsResult {
    let request = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: kind,
            resource_name: name.into(),
            configuration_keys: None,
        }],
        include_synonyms: true,
        include_documentation: true,
    };
    client.ask(4, request).await.results.remove(0)
}

async fn value(client: &mut Client, kind: i8, name: &str, setting: &str) -> (String, i8) {
    let described = describe(client, kind, name).await;
    assert_eq!(described.error_code, ErrorCode::NONE);
    let config = described
        .configs
        .iter()
        .find(|it| &*it.name == setting)
        .unwrap();
    let value = config.value.clone().unwrap_or_default();
    (value.to_string(), config.config_source)
}

async fn alter(
    client: &mut Client,
    kind: i8,
    name: &str,
    setting: &str,
    operation: i8,
    value: &str,
) -> ErrorCode {
    let request = alteration(kind, name, setting, operation, value);
    client.ask(1, request).await.responses[0].error_code
}

fn alteration(
    kind: i8,
    name: &str,
    setting: &str,
    operation: i8,
    value: &str,
) -> IncrementalAlterConfigsRequest {
    IncrementalAlterConfigsRequest {
        resources: vec![IncrementalAlterConfigsResource {
            resource_type: kind,
            resource_name: name.into(),
            configs: vec![IncrementalAlterableConfig {
                name: setting.into(),
                config_operation: operation,
                value: Some(value.into()),
            }],
        }],
        validate_only: false,
    }
}

#[tokio::test]
async fn settings_that_several_change_at_once_are_all_changed() {
    let folder = tempfile::tempdir().unwrap();
    let broker = builder().data_dir(folder.path()).start().await.unwrap();
    let mut first = Client::connect(&broker).await;
    first.create_topic("t", 1).await;
    let mut second = Client::connect(&broker).await;
    let changes = [
        (TOPIC, "t", "retention.ms", "max.message.bytes"),
        (BROKER, "1", "log.retention.ms", "message.max.bytes"),
        (BROKER, "", "log.retention.bytes", "log.roll.ms"),
        (
            GROUP,
            "g",
            "consumer.session.timeout.ms",
            "consumer.assignment.interval.ms",
        ),
    ];
    for (kind, name, one, other) in changes {
        let number = if kind == GROUP { "50000" } else { "70000" };
        first.send(1, &alteration(kind, name, one, 0, number)).await;
        second
            .send(1, &alteration(kind, name, other, 0, "7000"))
            .await;
        for client in [&mut first, &mut second] {
            let changed = client.receive_as::<IncrementalAlterConfigsRequest>(1).await;
            assert_eq!(changed.responses[0].error_code, ErrorCode::NONE);
        }
        assert_eq!(value(&mut first, kind, name, one).await.0, number);
        assert_eq!(value(&mut first, kind, name, other).await.0, "7000");
    }
}

#[tokio::test]
async fn a_topics_settings_change_and_fall_back_on_the_brokers() {
    let broker = builder()
        .set("log.retention.hours", "1")
        .start()
        .await
        .unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let c = &mut client;
    assert_eq!(
        value(c, TOPIC, "t", "retention.ms").await,
        ("3600000".into(), 4)
    );
    assert_eq!(
        alter(c, TOPIC, "t", "retention.ms", 0, "77").await,
        ErrorCode::NONE
    );
    assert_eq!(value(c, TOPIC, "t", "retention.ms").await, ("77".into(), 1));
    assert_eq!(
        alter(c, TOPIC, "t", "retention.ms", 1, "").await,
        ErrorCode::NONE
    );
    assert_eq!(
        value(c, TOPIC, "t", "retention.ms").await,
        ("3600000".into(), 4)
    );
    assert_eq!(
        alter(c, TOPIC, "t", "cleanup.policy", 2, "compact").await,
        ErrorCode::NONE
    );
    assert_eq!(
        value(c, TOPIC, "t", "cleanup.policy").await.0,
        "delete,compact"
    );
    assert_eq!(
        alter(c, TOPIC, "t", "cleanup.policy", 3, "delete").await,
        ErrorCode::NONE
    );
    assert_eq!(value(c, TOPIC, "t", "cleanup.policy").await.0, "compact");

    let code = alter(c, TOPIC, "t", "segment.bytes", 0, "1").await;
    assert_eq!(code, ErrorCode::INVALID_CONFIG);
    let code = alter(c, TOPIC, "nowhere", "retention.ms", 0, "1").await;
    assert_eq!(code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[tokio::test]
async fn the_brokers_settings_change_at_three_levels() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let c = &mut client;
    assert_eq!(
        value(c, BROKER, "1", "message.max.bytes").await,
        ("1048588".into(), 5)
    );
    assert_eq!(
        alter(c, BROKER, "", "message.max.bytes", 0, "2000").await,
        ErrorCode::NONE
    );
    assert_eq!(
        value(c, BROKER, "1", "message.max.bytes").await,
        ("2000".into(), 3)
    );
    assert_eq!(
        alter(c, BROKER, "1", "message.max.bytes", 0, "100").await,
        ErrorCode::NONE
    );
    assert_eq!(
        value(c, BROKER, "1", "message.max.bytes").await,
        ("100".into(), 2)
    );
    assert_eq!(
        value(c, TOPIC, "t", "max.message.bytes").await,
        ("100".into(), 2)
    );
    let large = "x".repeat(200);
    let refused = client.produce("t", 0, &[&large]).await;
    assert_eq!(refused.error_code, ErrorCode::MESSAGE_TOO_LARGE);

    let c = &mut client;
    let code = alter(c, BROKER, "1", "num.partitions", 0, "3").await;
    assert_eq!(code, ErrorCode::INVALID_REQUEST);
    let code = alter(c, BROKER, "2", "message.max.bytes", 0, "3").await;
    assert_eq!(code, ErrorCode::INVALID_REQUEST);
    let code = alter(c, LOGGER, "1", "kafka.server.KafkaApis", 0, "DEBUG").await;
    assert_eq!(code, ErrorCode::INVALID_CONFIG);
}

#[tokio::test]
async fn a_groups_settings_stay_within_the_brokers_bounds() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let c = &mut client;
    let setting = "consumer.session.timeout.ms";
    assert_eq!(value(c, GROUP, "g", setting).await, ("45000".into(), 5));
    assert_eq!(
        alter(c, GROUP, "g", setting, 0, "50000").await,
        ErrorCode::NONE
    );
    assert_eq!(value(c, GROUP, "g", setting).await, ("50000".into(), 8));
    assert_eq!(
        alter(c, GROUP, "g", setting, 0, "10").await,
        ErrorCode::INVALID_CONFIG
    );
    let list = client.ask(1, ListConfigResourcesRequest::default()).await;
    let groups: Vec<_> = list
        .config_resources
        .iter()
        .filter(|it| it.resource_type == GROUP)
        .collect();
    assert_eq!(groups.len(), 1);
}

#[tokio::test]
async fn every_setting_is_explained() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    for (kind, name) in [(TOPIC, "t"), (BROKER, "1"), (GROUP, "g")] {
        for config in describe(&mut client, kind, name).await.configs {
            let text = config.documentation.unwrap_or_default();
            assert!(text.len() > 10, "{}", config.name);
            assert_ne!(config.config_type, 0);
        }
    }
}

#[tokio::test]
async fn settings_that_do_not_exist_or_cannot_be_keep_the_broker_from_starting() {
    for (name, value, part) in [
        ("no.such.setting", "1", "no.such.setting"),
        ("num.partitions", "0", "num.partitions cannot be \"0\""),
        ("listeners", "SSL://127.0.0.1:0", "only PLAINTEXT"),
        ("advertised.listeners", "nowhere", "advertised.listeners"),
    ] {
        let error = builder().set(name, value).start().await.unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// Kafka documents it as "keep forever".
#[tokio::test]
async fn an_empty_cleanup_policy_keeps_everything() {
    let broker = builder()
        .set("log.retention.check.interval.ms", "10")
        .start()
        .await
        .unwrap();
    let mut client = Client::connect(&broker).await;
    for (name, policy) in [("set", ""), ("subtracted", "delete"), ("deletes", "delete")] {
        let configs = [
            ("cleanup.policy", policy),
            ("retention.ms", "1"),
            ("internal.segment.bytes", "100"),
        ];
        client.create_topic_with(name, 1, &configs).await;
    }
    let c = &mut client;
    let code = alter(c, TOPIC, "subtracted", "cleanup.policy", 3, "delete").await;
    assert_eq!(code, ErrorCode::NONE);
    for name in ["set", "subtracted"] {
        let (policy, source) = value(c, TOPIC, name, "cleanup.policy").await;
        assert_eq!((policy.as_str(), source), ("", 1));
    }
    for name in ["set", "subtracted", "deletes"] {
        for text in ["a", "b", "c"] {
            c.produce(name, 0, &[text]).await;
        }
    }
    // Retention has been at work, and not at these.
    while c.fetch("deletes", 0, 0).await.error_code != ErrorCode::OFFSET_OUT_OF_RANGE {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    for name in ["set", "subtracted"] {
        assert_eq!(values(&c.fetch(name, 0, 0).await), ["a", "b", "c"]);
    }
}

#[tokio::test]
async fn lists_are_what_kafka_lets_them_be() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let c = &mut client;
    for value in ["delete,delete", "delete,", "forget", ",", "DELETE"] {
        let code = alter(c, TOPIC, "t", "cleanup.policy", 0, value).await;
        assert_eq!(code, ErrorCode::INVALID_CONFIG, "{value}");
    }
    for (name, value) in [
        ("group.consumer.assignors", ""),
        ("group.coordinator.rebalance.protocols", ""),
        ("log.retention.hours", "0"),
    ] {
        assert!(builder().set(name, value).start().await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn the_offsets_topic_cannot_be_made_to_lose_offsets() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let c = &mut client;
    let topic = "__consumer_offsets";
    // Not when it is created,
    for configs in [&[][..], &[("cleanup.policy", "compact,delete")]] {
        let created = c.ask(7, create_topic(topic, 1, configs)).await;
        assert_eq!(created.topics[0].error_code, ErrorCode::INVALID_CONFIG);
    }
    c.create_topic_with(topic, 1, &[("cleanup.policy", "compact")])
        .await;
    // by a change of its settings,
    for (operation, value) in [
        (0, "delete"),
        (0, ""),
        (1, ""),
        (2, "delete"),
        (3, "compact"),
    ] {
        let code = alter(c, TOPIC, topic, "cleanup.policy", operation, value).await;
        assert_eq!(code, ErrorCode::INVALID_CONFIG, "{operation} {value}");
    }
    let replace = AlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: topic.into(),
            configs: vec![AlterableConfig {
                name: "retention.ms".into(),
                value: Some("1000".into()),
            }],
        }],
        validate_only: false,
    };
    let replaced = c.ask(2, replace).await;
    assert_eq!(replaced.responses[0].error_code, ErrorCode::INVALID_CONFIG);
    assert_eq!(value(c, TOPIC, topic, "cleanup.policy").await.0, "compact");
    // by removing its records,
    let delete = DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: topic.into(),
            partitions: vec![DeleteRecordsPartition {
                partition_index: 0,
                offset: -1,
            }],
        }],
        ..DeleteRecordsRequest::default()
    };
    let deleted = c.ask(2, delete).await;
    let deleted = &deleted.topics[0].partitions[0];
    assert_eq!(deleted.error_code, ErrorCode::INVALID_TOPIC_EXCEPTION);
    // or all of it.
    let delete = DeleteTopicsRequest {
        topic_names: vec![topic.into()],
        ..DeleteTopicsRequest::default()
    };
    let deleted = c.ask(5, delete).await;
    assert_eq!(deleted.responses[0].error_code, ErrorCode::INVALID_REQUEST);
    // What loses nothing may be changed.
    let code = alter(c, TOPIC, topic, "compression.type", 0, "zstd").await;
    assert_eq!(code, ErrorCode::NONE);
}

#[tokio::test]
async fn settings_that_only_kafka_has_a_use_for_are_accepted_and_shown() {
    let broker = builder().set("num.io.threads", "4").start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let throttled = "follower.replication.throttled.replicas";
    let configs = [("local.retention.ms", "1000"), (throttled, "0:1,1:1")];
    client.create_topic_with("t", 1, &configs).await;
    let c = &mut client;
    for (kind, name, setting, wanted, source) in [
        (TOPIC, "t", "local.retention.ms", "1000", 1),
        (TOPIC, "t", throttled, "0:1,1:1", 1),
        (TOPIC, "t", "remote.storage.enable", "false", 5),
        (
            TOPIC,
            "t",
            "max.decompressed.message.bytes",
            "2147483647",
            5,
        ),
        (GROUP, "g", "share.session.timeout.ms", "45000", 5),
        (BROKER, "1", "num.io.threads", "4", 4),
    ] {
        let (value, found) = value(c, kind, name, setting).await;
        assert_eq!((value.as_str(), found), (wanted, source), "{setting}");
    }
    let dlq = "errors.deadletterqueue.topic.name";
    assert_eq!(alter(c, GROUP, "g", dlq, 0, "dlq.x").await, ErrorCode::NONE);
    assert_eq!(value(c, GROUP, "g", dlq).await.0, "dlq.x");
    let code = alter(c, TOPIC, "t", "local.retention.ms", 0, "soon").await;
    assert_eq!(code, ErrorCode::INVALID_CONFIG);
    // What would weaken the broker if it had no effect is not accepted.
    for name in [
        "authorizer.class.name",
        "sasl.enabled.mechanisms",
        "log.dir",
    ] {
        assert!(builder().set(name, "x").start().await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn a_setting_that_does_not_exist_can_be_deleted_and_not_set() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    for (kind, name) in [(TOPIC, "t"), (GROUP, "g"), (BROKER, "1"), (BROKER, "")] {
        let code = alter(&mut client, kind, name, "no.such", 1, "").await;
        assert_eq!(code, ErrorCode::NONE, "{kind}");
        let code = alter(&mut client, kind, name, "no.such", 0, "1").await;
        assert_ne!(code, ErrorCode::NONE, "{kind}");
    }
}

#[tokio::test]
async fn what_is_mentioned_twice_is_refused_or_counts_once_as_in_kafka() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 2).await;
    client.produce("t", 0, &["a", "b"]).await;
    let c = &mut client;

    let partition = |index| ListOffsetsPartition {
        partition_index: index,
        timestamp: -1,
        ..ListOffsetsPartition::default()
    };
    let topic = |indexes: &[i32]| ListOffsetsTopic {
        name: "t".into(),
        partitions: indexes.iter().map(|&index| partition(index)).collect(),
    };
    // In one mention of the topic, and in two.
    for topics in [vec![topic(&[0, 1, 0])], vec![topic(&[0, 1]), topic(&[0])]] {
        let request = ListOffsetsRequest {
            topics,
            ..ListOffsetsRequest::default()
        };
        let answer = c.ask(7, request).await;
        for partition in answer.topics.iter().flat_map(|topic| &topic.partitions) {
            let (code, offset) = match partition.partition_index {
                0 => (ErrorCode::INVALID_REQUEST, -1),
                _ => (ErrorCode::NONE, 0),
            };
            assert_eq!((partition.error_code, partition.offset), (code, offset));
        }
    }

    let partition = |offset| DeleteRecordsPartition {
        partition_index: 0,
        offset,
    };
    let request = DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: "t".into(),
            partitions: vec![partition(2), partition(1)],
        }],
        ..DeleteRecordsRequest::default()
    };
    let answer = c.ask(2, request).await;
    let deleted: Vec<_> = answer.topics[0]
        .partitions
        .iter()
        .map(|partition| partition.low_watermark)
        .collect();
    assert_eq!(deleted, [1]);

    let config = |value: &str| AlterableConfig {
        name: "retention.ms".into(),
        value: Some(value.into()),
    };
    let request = AlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: "t".into(),
            configs: vec![config("1000000"), config("2000000")],
        }],
        validate_only: false,
    };
    let answer = c.ask(2, request).await;
    assert_eq!(answer.responses[0].error_code, ErrorCode::INVALID_REQUEST);
}
