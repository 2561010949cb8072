//! What users do every day, and what they do by mistake, against an embedded broker.

mod stage;

use serde_json::Value;
use stage::{Stage, lines};

/// `groups describe` of a group in one partition whose log starts at 90 and ends at 100.
async fn described(stage: &Stage, group: &str, committed: i64) -> (Value, String) {
    let admin = stage.admin().await;
    let partition = kohort::TopicPartition::new("t", 0);
    let offsets = [(partition, kohort::CommittedOffset::new(committed))];
    let altered = admin.alter_group_offsets(group, &offsets).await;
    altered.expect("altered")[0].1.clone().expect("altered");
    let output = stage
        .run(&["groups", "describe", group, "-o", "json"], "")
        .await;
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let remarks = String::from_utf8(output.stderr).expect("text");
    (rows[0].clone(), remarks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lag_counts_only_records_that_exist() {
    let stage = Stage::new().await;
    stage.prints(&["topics", "create", "t"], "").await;
    let input = "a\n".repeat(100);
    stage.prints(&["produce", "-t", "t"], &input).await;
    let admin = stage.admin().await;
    let partition = kohort::TopicPartition::new("t", 0);
    let deleted = admin.delete_records(&[(partition, 90)]).await;
    deleted[0].1.clone().expect("deleted");

    let (row, remarks) = described(&stage, "behind", 0).await;
    assert_eq!(
        (&row["lag"], &row["deleted_unread"]),
        (&10.into(), &90.into())
    );
    assert_eq!(row["log_start_offset"], 90);
    assert!(
        remarks.contains("90 records of t-0 were deleted"),
        "{remarks}"
    );
    let (row, remarks) = described(&stage, "within", 95).await;
    assert_eq!(row["lag"], 5);
    assert_eq!(remarks, "kohort: group within has no members\n");
    let (row, remarks) = described(&stage, "beyond", 120).await;
    assert_eq!(row["lag"], 0);
    assert!(remarks.contains("t-0 is 20 beyond the end"), "{remarks}");
    let explained = stage.prints(&["groups", "explain", "behind"], "").await;
    assert!(
        explained.contains("10 records are waiting")
            && explained.contains("90 records of t-0 were deleted"),
        "{explained}"
    );

    stage.prints(&["topics", "delete", "t"], "").await;
    let output = stage
        .run(&["groups", "describe", "--all", "-o", "json"], "")
        .await;
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // Whether the broker keeps offsets of deleted topics is its own affair.
    for row in rows.as_array().expect("rows") {
        assert_eq!(row["lag"], Value::Null);
        let remarks = String::from_utf8_lossy(&output.stderr);
        assert!(remarks.contains("t-0 does not exist any more"), "{remarks}");
    }
}

/// A name that would clear the screen, set the title, begin a line and turn text around.
const HOSTILE: &str = "x\x1b[2J\x1b]0;owned\x07\nroot: \u{202e}exe\r";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_change_neither_the_terminal_nor_the_lines() {
    let stage = Stage::new().await;
    stage.prints(&["topics", "create", "t"], "").await;
    stage.prints(&["produce", "-t", "t"], "a\n").await;
    for protocol in ["consumer", "classic"] {
        let group = format!("{protocol}{HOSTILE}");
        let mut config = kohort::ConsumerConfig::new(&stage.broker.address().to_string());
        config.client.client_id = HOSTILE.to_owned();
        config.group_instance_id = Some(HOSTILE.into());
        config.group_protocol = match protocol {
            "classic" => kohort::consumer::GroupProtocol::Classic,
            _ => kohort::consumer::GroupProtocol::Consumer,
        };
        config.offset_reset = kohort::consumer::OffsetReset::Earliest;
        let consumer = kohort::Consumer::connect(config.group(group.as_str())).await;
        let mut consumer = consumer.expect("connected");
        consumer.subscribe(["t"]).expect("subscribed");
        while consumer.poll().await.expect("polled").is_empty() {}
        for arguments in [
            &["groups", "list"][..],
            &["groups", "describe", &group],
            &["groups", "describe", &group, "--members"],
            &["groups", "describe", &group, "--state"],
            &["groups", "explain", &group],
            &["groups", "history", &group],
            &["groups", "delete", &group],
            &["groups", "describe", HOSTILE],
            &["groups", "explain", HOSTILE],
            &["groups", "history", HOSTILE],
            &["groups", "rewind", &group, "--topic", "t", "--to-earliest"],
            &["groups", "rewind", HOSTILE, "--topic", "t", "--to-earliest"],
            &["groups", "rewind", HOSTILE, "--all-topics", "--to-earliest"],
            &["groups", "rewind", HOSTILE, "--undo"],
            &["topics", "describe", HOSTILE],
            &["topics", "create", HOSTILE],
            &["topics", "delete", HOSTILE],
            &["consume", "-t", HOSTILE, "-e"],
            &["consume", "-G", HOSTILE, HOSTILE, "-e"],
            &["consume", "-G", HOSTILE, &format!("^{HOSTILE}"), "-e"],
        ] {
            let output = stage.run(arguments, "").await;
            for text in [output.stdout, output.stderr] {
                let text = String::from_utf8(text).expect("text");
                let is_safe =
                    |line: &str| kohort::text::printable(line) == line && !line.starts_with("root");
                assert!(text.lines().all(is_safe), "{arguments:?}: {text:?}");
            }
        }
        let json = stage.json(&["groups", "list"]).await;
        let rows = json.as_array().expect("rows");
        assert!(rows.iter().any(|row| row["group"] == group.as_str()));
        consumer.close().await.expect("closed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_reads_topics_by_the_beginning_of_their_names() {
    let stage = Stage::new().await;
    for topic in ["orders", "ordinal", "payments"] {
        stage.prints(&["topics", "create", topic], "").await;
        stage
            .prints(&["produce", "-t", topic], &format!("{topic}\n"))
            .await;
    }
    for protocol in ["consumer", "classic"] {
        let consume = |group: &'static str, topics: &'static [&'static str]| {
            let stage = &stage;
            async move {
                let group = format!("{group}-{protocol}");
                let arguments = [
                    &["consume", "-G", &group][..],
                    topics,
                    &["-e", "--protocol", protocol],
                ];
                let printed = stage.prints(&arguments.concat(), "").await;
                lines(&printed).join(" ")
            }
        };
        assert_eq!(consume("prefix", &["^ord"]).await, "orders ordinal");
        assert_eq!(consume("anchored", &["^orders$"]).await, "orders");
        let mixed = consume("mixed", &["^ordi", "payments"]).await;
        assert_eq!(mixed, "ordinal payments");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_members_properties_count_unless_a_flag_says_otherwise() {
    let stage = Stage::new().await;
    stage.prints(&["topics", "create", "orders"], "").await;
    stage.prints(&["produce", "-t", "orders"], "one\n").await;
    let classic = ["-X", "group.protocol=classic"];
    let latest = ["-X", "auto.offset.reset=latest"];
    for (group, more, expected_type, expected) in [
        ("plain", vec![], "consumer", "one\n"),
        ("property", [classic, latest].concat(), "classic", ""),
        (
            "flag",
            [
                &classic[..],
                &latest,
                &["--protocol", "consumer", "-o", "beginning"],
            ]
            .concat(),
            "consumer",
            "one\n",
        ),
    ] {
        let arguments = [&["consume", "-G", group, "orders", "-e"][..], &more].concat();
        assert_eq!(stage.prints(&arguments, "").await, expected, "{group}");
        let groups = stage.prints(&["groups", "list"], "").await;
        let listed = groups.lines().find(|line| line.starts_with(group));
        assert!(
            listed.is_some_and(|line| line.split_whitespace().nth(1) == Some(expected_type)),
            "{groups}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_partitions_ends_when_it_is_told_to_end_at_the_end() {
    let stage = Stage::new().await;
    stage.prints(&["topics", "create", "t"], "").await;
    for protocol in ["consumer", "classic"] {
        let mut config = kohort::ConsumerConfig::new(&stage.broker.address().to_string());
        config.group_protocol = match protocol {
            "classic" => kohort::consumer::GroupProtocol::Classic,
            _ => kohort::consumer::GroupProtocol::Consumer,
        };
        // It comes first by name, and keeps the only partition.
        config.client.client_id = "a".to_owned();
        let owner = kohort::Consumer::connect(config.group(protocol)).await;
        let mut owner = owner.expect("connected");
        owner.subscribe(["t"]).expect("subscribed");
        let polls = async {
            loop {
                owner.poll().await.expect("polled");
            }
        };
        let consume = ["consume", "-G", protocol, "t", "-e", "--protocol", protocol];
        let output = tokio::select! {
            output = stage.run(&consume, "") => output,
            () = polls => unreachable!("it polls for ever"),
        };
        assert!(output.status.success(), "{output:?}");
        owner.close().await.expect("closed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_producing_creates_is_named() {
    let stage = Stage::with("auto.create.topics.enable", "true").await;
    let output = stage.run(&["produce", "-t", "ordres"], "a\n").await;
    assert!(output.status.success());
    let remarks = String::from_utf8_lossy(&output.stderr);
    assert!(
        remarks.starts_with("kohort: topic ordres does not exist; asking the broker to create it"),
        "{remarks}"
    );
    let output = stage.run(&["produce", "-t", "ordres"], "a\n").await;
    assert!(output.status.success() && output.stderr.is_empty());

    let stage = Stage::with("auto.create.topics.enable", "false").await;
    let failure = stage
        .run(&["produce", "-t", "ordres", "--timeout", "1"], "a\n")
        .await;
    let failure = String::from_utf8_lossy(&failure.stderr);
    assert!(
        failure.contains("topic ordres does not exist")
            && failure.contains("kohort topics create ordres"),
        "{failure}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_as_large_as_the_topic_allows() {
    let stage = Stage::new().await;
    let create = [
        "topics",
        "create",
        "large",
        "-c",
        "max.message.bytes=6000000",
    ];
    stage.prints(&create, "").await;
    stage.prints(&["topics", "create", "small"], "").await;
    let input = format!("{}\n", "a".repeat(5_000_000));
    stage.prints(&["produce", "-t", "large"], &input).await;
    let printed = stage.prints(&["consume", "-t", "large", "-e"], "").await;
    assert!(printed == input, "{} bytes", printed.len());
    let limited = ["produce", "-t", "large", "-X", "max.request.size=1000"];
    let output = stage.run(&limited, &input).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("max.request.size"), "{errors}");
    let output = stage.run(&["produce", "-t", "small"], &input).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("topic small") && errors.contains("max.message.bytes"),
        "{errors}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_has_numbers_and_arrays() {
    let stage = Stage::new().await;
    let create = ["topics", "create", "t", "-c", "retention.ms=1000", "-c"];
    let create = [&create[..], &["cleanup.policy=compact,delete"]].concat();
    stage.prints(&create, "").await;
    let described = stage.json(&["topics", "describe", "t"]).await;
    assert!(described[0]["replicas"][0].is_i64(), "{described}");
    assert!(described[0]["in_sync"][0].is_i64(), "{described}");
    let configs = stage.json(&["topics", "describe", "t", "--configs"]).await;
    let configs = configs.as_array().expect("rows");
    let value = |name: &str| {
        let row = configs.iter().find(|row| row["setting"] == name);
        row.expect(name)["value"].clone()
    };
    assert_eq!(value("retention.ms"), 1000);
    assert_eq!(
        value("cleanup.policy"),
        serde_json::json!(["compact", "delete"])
    );
}
