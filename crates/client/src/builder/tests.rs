//! Every option has its method.

use super::*;
use crate::producer::StickyPartitioner;

// Each names all fields: one that is new has to find its way into the builders.

#[test]
fn every_option_of_a_client_can_be_set() {
    let second = Duration::from_secs(1);
    let backoff = Backoff {
        first: second,
        most: second,
    };
    let built = Admin::builder()
        .bootstrap_servers("a:1, b:2")
        .client_id("me")
        .request_timeout(second)
        .api_timeout(second)
        .connect_timeout(second)
        .retry_backoff(backoff)
        .reconnect_backoff(backoff)
        .metadata_max_age(second)
        .allow_auto_create_topics(false)
        .response_bytes_max(1)
        .requests_in_flight_max(1)
        .security(Security::default())
        .config()
        .unwrap();
    let ClientConfig {
        bootstrap_servers,
        client_id,
        request_timeout,
        api_timeout,
        connect_timeout,
        retry_backoff,
        reconnect_backoff,
        metadata_max_age,
        allow_auto_create_topics: Some(false),
        response_bytes_max: 1,
        requests_in_flight_max: 1,
        security: Security {
            tls: None,
            sasl: None,
        },
    } = built
    else {
        panic!("{built:?}")
    };
    assert_eq!(bootstrap_servers, ["a:1", "b:2"]);
    assert_eq!(client_id, "me");
    let durations = [request_timeout, api_timeout, connect_timeout];
    assert_eq!(durations, [second; 3]);
    let backoffs = [retry_backoff, reconnect_backoff];
    assert!(backoffs.iter().all(|backoff| backoff.first == second));
    assert_eq!(metadata_max_age, second);
}

#[test]
fn every_option_of_a_producer_can_be_set() {
    let second = Duration::from_secs(1);
    let built = Producer::builder()
        .bootstrap_servers("a:1")
        .acks(Acks::Leader)
        .idempotence(false)
        .compression(Compression::Gzip)
        .compression_level(2)
        .batch_bytes(1)
        .linger(second)
        .request_bytes_max(1)
        .buffer_bytes_max(1)
        .block_max(second)
        .delivery_timeout(Duration::from_secs(100))
        .in_flight_max(1)
        .partitioner(StickyPartitioner)
        .config()
        .unwrap();
    let ProducerConfig {
        client: _,
        acks: Acks::Leader,
        idempotence: false,
        compression: Compression::Gzip,
        compression_level: Some(2),
        batch_bytes: 1,
        linger,
        request_bytes_max: 1,
        buffer_bytes_max: 1,
        block_max,
        delivery_timeout,
        in_flight_max: 1,
        partitioner,
    } = built
    else {
        panic!("{built:?}")
    };
    assert_eq!([linger, block_max, delivery_timeout / 100], [second; 3]);
    assert_eq!(format!("{partitioner:?}"), "StickyPartitioner");
}

#[test]
fn every_option_of_a_consumer_can_be_set() {
    let second = Duration::from_secs(1);
    let built = Consumer::builder()
        .bootstrap_servers("a:1")
        .group_id("g")
        .group_instance_id("i")
        .group_protocol(GroupProtocol::Consumer)
        .group_remote_assignor("a")
        .assignment_strategies([AssignmentStrategy::Sticky])
        .session_timeout(2 * second)
        .heartbeat_interval(second)
        .poll_interval_max(second)
        .poll_records_max(1)
        .auto_commit(false)
        .auto_commit_interval(second)
        .offset_reset(OffsetReset::None)
        .isolation_level(IsolationLevel::ReadCommitted)
        .rack("r")
        .fetch_bytes_min(2)
        .fetch_wait_max(second)
        .fetch_bytes_max(1)
        .partition_fetch_bytes_max(1)
        .prefetch_bytes_max(1)
        .decompressed_bytes_max(1)
        .check_crcs(false)
        .config()
        .unwrap();
    let ConsumerConfig {
        client: _,
        group_id,
        group_instance_id,
        group_protocol: GroupProtocol::Consumer,
        group_remote_assignor,
        assignment_strategies,
        session_timeout,
        heartbeat_interval,
        poll_interval_max,
        poll_records_max: 1,
        auto_commit: false,
        auto_commit_interval,
        offset_reset: OffsetReset::None,
        isolation_level: IsolationLevel::ReadCommitted,
        rack,
        fetch_bytes_min: 2,
        fetch_wait_max,
        fetch_bytes_max: 1,
        partition_fetch_bytes_max: 1,
        prefetch_bytes_max: 1,
        decompressed_bytes_max: 1,
        check_crcs: false,
    } = built
    else {
        panic!("{built:?}")
    };
    let texts = [group_id, group_instance_id, group_remote_assignor, rack];
    assert_eq!(texts.map(Option::unwrap), ["g", "i", "a", "r"]);
    assert_eq!(assignment_strategies, [AssignmentStrategy::Sticky]);
    assert_eq!(
        [
            session_timeout / 2,
            heartbeat_interval,
            poll_interval_max,
            auto_commit_interval,
            fetch_wait_max
        ],
        [second; 5]
    );
}

#[test]
fn contradictions_are_errors_that_name_the_settings() {
    let producer = Producer::builder().bootstrap_servers("a:1");
    let error = producer.acks(Acks::None).config().unwrap_err();
    assert!(
        error.to_string().starts_with("enable.idempotence: "),
        "{error}"
    );
    let error = Consumer::builder().group_id("g").config().unwrap_err();
    assert!(
        error.to_string().starts_with("bootstrap.servers: "),
        "{error}"
    );
}

#[test]
fn settings_under_kafkas_names_go_over_those_before() {
    let properties: Properties = "max.poll.records=7\ngroup.id=g".parse().unwrap();
    let builder = Consumer::builder()
        .bootstrap_servers("a:1")
        .group_id("other");
    let builder = builder.poll_records_max(3).properties(&properties).unwrap();
    let config = builder.auto_commit(false).config().unwrap();
    assert_eq!(config.poll_records_max, 7);
    assert_eq!(config.group_id.as_deref(), Some("g"));
    assert!(!config.auto_commit);
}
