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
        ("listeners", "SSL://127.0.0.1:0", "SSL is not offered"),
        ("advertised.listeners", "nowhere", "advertised.listeners"),
    ] {
        let error = builder().set(name, value).start().await.unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}
