//! A broker with few file descriptors.

mod common;

use std::{fs, process::Command};

use common::*;
use kohort_wire::{ErrorCode, messages::*};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Set in the process of its own that each of these tests runs in.
const CHILD: &str = "KOHORT_TEST_FEW_FILES";

/// How many files such a process may have open.
const LIMIT: u64 = 120;

/// Runs a test of this file once more, in a process with few file descriptors. Returns whether
/// this is that process.
fn in_a_process_with_few_files(test: &str) -> bool {
    if std::env::var_os(CHILD).is_some() {
        let limit = Rlimit {
            current: Some(LIMIT),
            maximum: Some(LIMIT),
        };
        setrlimit(Resource::Nofile, limit).unwrap();
        return true;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("1 passed"), "{out}");
    false
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test]
async fn more_partitions_than_file_descriptors_are_used_and_groups_go_on() {
    if !in_a_process_with_few_files(
        "more_partitions_than_file_descriptors_are_used_and_groups_go_on",
    ) {
        return;
    }
    const COUNT: i32 = 300;
    let folder = tempfile::tempdir().unwrap();
    for life in 1..=2_i64 {
        let broker = builder().data_dir(folder.path()).start().await.unwrap();
        let mut client = Client::connect(&broker).await;
        if life == 1 {
            // The broker has accepted the connection when it has answered.
            client.create_topic("first", 1).await;
            let before = open_files();
            client.create_topic("t", COUNT).await;
            assert!(open_files() <= before, "empty partitions have no open file");
        }
        for partition in 0..COUNT {
            let taken = client.produce("t", partition, &["a"]).await;
            assert_eq!(taken.error_code, ErrorCode::NONE, "{partition}");
        }
        client.find_coordinator("g").await;
        let committed = client.commit("g", "t", 0, life).await;
        assert_eq!(committed, ErrorCode::NONE);
        // Topics can still be created, changed and deleted,
        client.create_topic("other", 1).await;
        let delete = DeleteTopicsRequest {
            topic_names: vec!["other".into()],
            ..DeleteTopicsRequest::default()
        };
        let deleted = client.ask(5, delete).await;
        assert_eq!(deleted.responses[0].error_code, ErrorCode::NONE);
        // clients connect,
        for _ in 0..10 {
            let mut another = Client::connect(&broker).await;
            assert_eq!(another.committed("g", "t", 0).await, life);
        }
        // and everything can be read.
        for partition in 0..COUNT {
            let fetched = client.fetch("t", partition, 0).await;
            assert_eq!(values(&fetched).len(), life as usize, "{partition}");
        }
        assert!(open_files() < LIMIT as usize);
        broker.shutdown().await;
    }
}

#[tokio::test]
async fn a_request_for_very_many_topics_creates_a_bounded_number() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let topics = (0..3000).map(|number| MetadataRequestTopic {
        name: Some(format!("t{number}").into()),
        ..MetadataRequestTopic::default()
    });
    let request = MetadataRequest {
        topics: Some(topics.collect()),
        allow_auto_topic_creation: true,
        ..MetadataRequest::default()
    };
    for created in [1000, 2000, 3000] {
        let answer = client.ask(12, request.clone()).await;
        let found = answer
            .topics
            .iter()
            .filter(|topic| topic.error_code == ErrorCode::NONE);
        assert_eq!(found.count(), created);
        assert_eq!(answer.topics.len(), 3000);
        assert_eq!(broker.topics().len(), created);
    }
}
