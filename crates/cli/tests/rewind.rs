//! `kohort groups rewind`, run as a user runs it, against an embedded broker.

use std::{
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use kohort::{
    Consumer, ConsumerConfig, Producer, ProducerConfig, ProducerRecord, consumer::OffsetReset,
};
use kohort_broker::Broker;
use serde_json::Value;

async fn broker() -> Broker {
    let builder = Broker::builder()
        .set("offsets.topic.num.partitions", "1")
        // The records say that they are from 1970, and are to stay.
        .set("log.retention.ms", "-1");
    let broker = builder.start().await.expect("a broker in memory starts");
    let config = ProducerConfig::new(&broker.address().to_string());
    let producer = Producer::connect(config).await.expect("connected");
    let config = kohort::ClientConfig::new(&broker.address().to_string());
    let admin = kohort::Admin::connect(config).await.expect("connected");
    let topic = kohort::admin::NewTopic::new("orders", 2);
    admin.create_topic(&topic).await.expect("created");
    for index in 0..20 {
        let mut record = ProducerRecord::new("orders")
            .value("a")
            .timestamp(index * 1_000);
        record.partition = Some((index % 2) as i32);
        drop(producer.send(record).await.expect("sent"));
    }
    producer.close().await;
    broker
}

async fn run(broker: &Broker, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kohort"));
    command
        .args(["groups", "rewind", "billing"])
        .args(arguments)
        .env("KOHORT_BOOTSTRAP_SERVERS", broker.address().to_string());
    tokio::task::spawn_blocking(move || command.output().expect("the program runs"))
        .await
        .expect("the program was run")
}

/// Where the partitions are and go to, by the printed JSON.
async fn rewinds(broker: &Broker, arguments: &[&str]) -> Vec<(Option<i64>, Option<i64>)> {
    let output = run(broker, &[arguments, &["-o", "json"]].concat()).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?} failed: {errors}");
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = rows.as_array().expect("rows");
    rows.iter()
        .map(|row| (row["current_offset"].as_i64(), row["new_offset"].as_i64()))
        .collect()
}

async fn fails(broker: &Broker, arguments: &[&str]) -> String {
    let output = run(broker, arguments).await;
    assert!(!output.status.success(), "{arguments:?} did not fail");
    String::from_utf8(output.stderr).expect("text")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_without_members_is_shown_rewound_saved_and_restored() {
    let broker = broker().await;
    let all = ["--topic", "orders"];
    let to = |to: &'static [&'static str]| [&all, to].concat();

    let output = run(&broker, &to(&["--to-offset", "4"])).await;
    let shown = String::from_utf8_lossy(&output.stdout);
    let remark = String::from_utf8_lossy(&output.stderr);
    assert!(
        shown.contains("GROUP    TOPIC   PARTITION  CURRENT-OFFSET"),
        "{shown}"
    );
    assert!(
        remark.contains("dry run: nothing changed. Group billing does not exist"),
        "{remark}"
    );
    // A misspelled name creates no group.
    let to_four = to(&["--to-offset", "4", "--execute"]);
    let failure = fails(&broker, &to_four).await;
    assert!(failure.contains("pass --create"), "{failure}");
    let to_four = to(&["--to-offset", "4", "--execute", "--create"]);
    assert_eq!(rewinds(&broker, &to_four).await, [(None, Some(4)); 2]);
    let shift = ["--topic", "orders:1", "--shift-by", "-3", "--execute"];
    assert_eq!(rewinds(&broker, &shift).await, [(Some(4), Some(1))]);

    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("saved.csv");
    let latest = [
        "--all-topics",
        "--to-latest",
        "--execute",
        "--save",
        path(&saved),
    ];
    let ends = [(Some(4), Some(10)), (Some(1), Some(10))];
    assert_eq!(rewinds(&broker, &latest).await, ends);
    let undo = [(Some(10), Some(4)), (Some(10), Some(1))];
    assert_eq!(rewinds(&broker, &["--undo"]).await, undo);
    let restore = ["--from-file", path(&saved), "--execute"];
    assert_eq!(rewinds(&broker, &restore).await, undo);
    assert_eq!(rewinds(&broker, &["--undo", "--execute"]).await, ends);

    let by_time = to(&["--to-datetime", "1970-01-01T00:00:04"]);
    let by_time = rewinds(&broker, &by_time).await;
    assert_eq!(by_time, [(Some(10), Some(2)), (Some(10), Some(2))]);
    let ago = rewinds(&broker, &to(&["--by-duration", "PT1H"])).await;
    assert_eq!(ago, [(Some(10), Some(10)); 2]);
    broker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_is_said_in_a_line() {
    let broker = broker().await;
    let outside = ["--topic", "orders:0", "--to-offset", "11", "--execute"];
    let failure = fails(&broker, &outside).await;
    assert!(
        failure.contains("orders-0") && failure.contains("from 0 to 10"),
        "{failure}"
    );
    let clamped = ["--topic", "orders:0", "--to-offset", "11", "--clamp"];
    assert_eq!(rewinds(&broker, &clamped).await, [(None, Some(10))]);
    let failure = fails(&broker, &["--topic", "absent", "--to-earliest"]).await;
    assert!(failure.contains("absent"), "{failure}");
    let failure = fails(&broker, &["--undo"]).await;
    assert!(failure.contains("remembers no rewind"), "{failure}");
    let failure = fails(&broker, &["--all-topics", "--to-earliest"]).await;
    assert!(failure.contains("name topics with --topic"), "{failure}");
    assert!(
        fails(&broker, &["--topic", "orders"])
            .await
            .contains("--to-earliest")
    );
    broker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_group_is_rewound_while_its_member_reads() {
    let broker = broker().await;
    let config = ConsumerConfig {
        offset_reset: OffsetReset::Earliest,
        ..ConsumerConfig::new(&broker.address().to_string()).group("billing")
    };
    let mut consumer = Consumer::connect(config).await.expect("connected");
    consumer.subscribe(["orders"]).expect("subscribed");
    let mut read = async |wanted: usize| {
        let mut count = 0;
        let reading = async {
            while count < wanted {
                count += consumer.poll().await.expect("records").into_iter().count();
            }
        };
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, reading)
            .await
            .expect("they come");
    };
    read(20).await;
    let goals = ["--topic", "orders:0", "--to-earliest"];
    let output = run(&broker, &goals).await;
    let remark = String::from_utf8_lossy(&output.stderr);
    assert!(
        remark.contains("Pass --execute to apply: the owners among 1 member release"),
        "{remark}"
    );
    let goals = [&goals[..], &["--execute"]].concat();
    let (done, ()) = tokio::join!(rewinds(&broker, &goals), read(10));
    assert_eq!(done, [(Some(10), Some(0))]);
    consumer.close().await.expect("closed");
    broker.shutdown().await;
}
