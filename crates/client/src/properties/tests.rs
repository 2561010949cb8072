//! Promises about settings.

use std::time::Duration;

use super::*;
use crate::{
    consumer::{AssignmentStrategy, OffsetReset},
    producer::Acks,
};

fn properties(pairs: &[(&str, &str)]) -> Properties {
    let servers = [("bootstrap.servers", "a:1, b:2")];
    servers.iter().chain(pairs).copied().collect()
}

fn problem<T>(result: Result<T>) -> String {
    result.err().expect("it is an error").to_string()
}

#[test]
fn settings_are_read_under_kafkas_names() {
    let text = "# a comment\nbootstrap.servers=a:1,\\\n  b:2\nacks : 1\ncompression.type=zstd\n";
    let config = ProducerConfig::from_properties(&text.parse().unwrap()).unwrap();
    assert_eq!(config.client.bootstrap_servers, ["a:1", "b:2"]);
    assert_eq!((config.acks, config.idempotence), (Acks::Leader, false));
    let pairs = [
        ("auto.offset.reset", "by_duration:P1DT2H"),
        (
            "partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.RoundRobinAssignor,sticky",
        ),
    ];
    let config = ConsumerConfig::from_properties(&properties(&pairs)).unwrap();
    assert_eq!(
        config.offset_reset,
        OffsetReset::ByDuration(Duration::from_secs(26 * 3600))
    );
    assert_eq!(
        config.assignment_strategies,
        [AssignmentStrategy::RoundRobin, AssignmentStrategy::Sticky]
    );
}

#[test]
fn a_file_is_read_as_java_reads_it() {
    let text = r"
        # not this
        a : 1\
            2
        b = one\\two\ \u00e9\tthree\\
        c\=d = x = y
        ! nor this
    ";
    let properties: Properties = text.parse().unwrap();
    let pairs: Vec<_> = properties.iter().collect();
    let expected = [
        ("a", "12"),
        ("b", "one\\two \u{e9}\tthree\\"),
        ("c=d", "x = y"),
    ];
    assert_eq!(pairs, expected);
    let twice = "a=1\na=1\nb=2\nb=3".parse::<Properties>();
    assert_eq!(problem(twice), "b: is set twice with different values");
}

#[test]
fn the_level_of_the_compression_that_is_used_counts() {
    for name in ["gzip", "lz4", "zstd"] {
        let level = format!("compression.{name}.level");
        let pairs = [("compression.type", name), (&level, "3")];
        let config = ProducerConfig::from_properties(&properties(&pairs)).unwrap();
        assert_eq!(config.compression_level, Some(3), "{name}");
        let pairs = [("compression.type", name), (&level, "99")];
        let problem = problem(ProducerConfig::from_properties(&properties(&pairs)));
        assert!(
            problem.starts_with(&format!("{level}: must be from ")),
            "{problem}"
        );
    }
}

#[test]
fn times_that_are_too_long_or_nothing_are_errors_that_name_the_setting() {
    let durations = [
        "request.timeout.ms",
        "default.api.timeout.ms",
        "socket.connection.setup.timeout.ms",
        "metadata.max.age.ms",
        "retry.backoff.max.ms",
        "reconnect.backoff.max.ms",
    ];
    let of_consumers = [
        "session.timeout.ms",
        "max.poll.interval.ms",
        "auto.commit.interval.ms",
    ];
    let longest = u64::MAX.to_string();
    for name in durations.into_iter().chain(of_consumers) {
        let pairs = [("group.id", "g"), (name, &*longest)];
        let problem = problem(ConsumerConfig::from_properties(&properties(&pairs)));
        assert_eq!(
            problem,
            format!("{name}: must not be longer than 2147483647 ms")
        );
    }
    for name in ["max.block.ms", "delivery.timeout.ms", "linger.ms"] {
        let pairs = [(name, &*longest)];
        let problem = problem(ProducerConfig::from_properties(&properties(&pairs)));
        assert_eq!(
            problem,
            format!("{name}: must not be longer than 2147483647 ms")
        );
    }
    for name in [
        "request.timeout.ms",
        "default.api.timeout.ms",
        "max.poll.interval.ms",
    ] {
        let pairs = [("group.id", "g"), (name, "0")];
        let problem = problem(ConsumerConfig::from_properties(&properties(&pairs)));
        assert_eq!(problem, format!("{name}: must not be 0"));
    }
}

#[test]
fn unknown_wrong_and_contradictory_settings_are_errors_that_name_the_setting() {
    for (pair, expected) in [
        (("grup.id", "g"), "grup.id: "),
        (("max.poll.records", "many"), "max.poll.records: "),
        (("max.poll.records", "0"), "max.poll.records: "),
        (("isolation.level", "none"), "isolation.level: "),
        (("session.timeout.ms", "10"), "heartbeat.interval.ms: "),
        (("bootstrap.servers", "nowhere"), "bootstrap.servers: "),
        (("bootstrap.servers", ":9092"), "bootstrap.servers: "),
        (
            ("bootstrap.servers", "PLAINTEXT://a:9092"),
            "bootstrap.servers: ",
        ),
    ] {
        let problem = problem(ConsumerConfig::from_properties(&properties(&[pair])));
        assert!(problem.starts_with(expected), "{problem}");
    }
    for (pairs, expected) in [
        (
            [
                ("group.protocol", "consumer"),
                ("session.timeout.ms", "9000"),
            ],
            "session.timeout.ms: has no meaning with group.protocol=consumer",
        ),
        (
            [
                ("group.protocol", "classic"),
                ("group.remote.assignor", "range"),
            ],
            "group.remote.assignor: has no meaning with group.protocol=classic",
        ),
        (
            [("enable.auto.commit", "true"), ("fetch.min.bytes", "1")],
            "enable.auto.commit: needs a group.id",
        ),
        (
            [("fetch.min.bytes", "-1"), ("check.crcs", "true")],
            "fetch.min.bytes: must not be negative",
        ),
    ] {
        let problem = problem(ConsumerConfig::from_properties(&properties(&pairs)));
        assert_eq!(problem, expected);
    }
    let pairs = [("acks", "1"), ("enable.idempotence", "true")];
    let problem = problem(ProducerConfig::from_properties(&properties(&pairs)));
    assert!(problem.starts_with("enable.idempotence: "), "{problem}");
}

#[test]
fn librdkafkas_names_are_read_too() {
    let pairs = [
        ("metadata.broker.list", "a:1,b:2"),
        ("auto.offset.reset", "smallest"),
        ("auto.commit.enable", "0"),
        ("fetch.wait.max.ms", "7"),
        ("fetch.message.max.bytes", "8"),
        ("queued.max.messages.kbytes", "3"),
        ("socket.timeout.ms", "9000"),
        ("topic.metadata.refresh.interval.ms", "-1"),
        ("metadata.max.age.ms", "5"),
        ("receive.message.max.bytes", "2000000"),
    ];
    let config = ConsumerConfig::from_properties(&pairs.into_iter().collect()).unwrap();
    assert_eq!(config.client.bootstrap_servers, ["a:1", "b:2"]);
    assert_eq!(config.offset_reset, OffsetReset::Earliest);
    assert!(!config.auto_commit);
    assert_eq!(config.fetch_wait_max, Duration::from_millis(7));
    assert_eq!(config.partition_fetch_bytes_max, 8);
    assert_eq!(config.prefetch_bytes_max, 3 << 10);
    assert_eq!(config.client.request_timeout, Duration::from_secs(9));
    let longest = Duration::from_millis(i32::MAX as u64);
    assert_eq!(config.client.metadata_max_age, longest);
    assert_eq!(config.client.response_bytes_max, 2_000_000);

    let pairs = [
        ("compression.codec", "lz4"),
        ("compression.level", "9"),
        ("request.required.acks", "-1"),
        ("queue.buffering.max.ms", "0.5"),
        ("queue.buffering.max.kbytes", "64"),
        ("message.max.bytes", "5"),
        ("message.timeout.ms", "0"),
        ("max.in.flight", "2"),
        ("partitioner", "consistent_random"),
    ];
    let config = ProducerConfig::from_properties(&properties(&pairs)).unwrap();
    assert_eq!(config.compression.name(), "lz4");
    assert_eq!(config.compression_level, Some(9));
    assert_eq!(config.acks, Acks::All);
    assert_eq!(config.linger, Duration::from_micros(500));
    assert_eq!(config.buffer_bytes_max, 64 << 10);
    assert_eq!(config.request_bytes_max, 5);
    assert_eq!(config.delivery_timeout, longest);
    assert_eq!(config.in_flight_max, 2);
    assert_eq!(format!("{:?}", config.partitioner), "Crc32Partitioner");
}

#[test]
fn a_setting_that_is_given_under_two_names_must_agree() {
    let pairs = [("compression.type", "lz4"), ("compression.codec", "zstd")];
    let problem = problem(ProducerConfig::from_properties(&properties(&pairs)));
    let expected = "compression.codec: is set to another value as compression.type";
    assert_eq!(problem, expected);
    let pairs = [("compression.type", "lz4"), ("compression.codec", "lz4")];
    assert!(ProducerConfig::from_properties(&properties(&pairs)).is_ok());
}

#[test]
fn errors_name_a_setting_as_it_was_given() {
    for (name, value) in [
        ("queue.buffering.max.kbytes", "many"),
        ("compression.codec", "rar"),
        ("sasl.mechanisms", "PLAIN"),
    ] {
        let problem = problem(ProducerConfig::from_properties(&properties(&[(
            name, value,
        )])));
        assert!(problem.starts_with(&format!("{name}: ")), "{problem}");
    }
}

#[test]
fn settings_that_mean_nothing_here_do_not_fail() {
    let pairs = [
        (
            "key.deserializer",
            "org.apache.kafka.common.serialization.StringDeserializer",
        ),
        ("interceptor.classes", ""),
        ("retries", "3"),
        ("statistics.interval.ms", "1000"),
        // A producer's, in a file that several programs share.
        ("acks", "1"),
        ("batch.size", "not even a number"),
    ];
    let config = ConsumerConfig::from_properties(&properties(&pairs)).unwrap();
    assert_eq!(config.client.bootstrap_servers, ["a:1", "b:2"]);
    // What would be unsafe to ignore is an error.
    let pairs = [("transactional.id", "payments")];
    let problem = problem(ProducerConfig::from_properties(&properties(&pairs)));
    assert_eq!(problem, "transactional.id: kohort has no transactions yet");
}
