//! The examples do what they say.

#![allow(dead_code)] // Their main functions.

mod common;

#[path = "../examples/admin.rs"]
mod admin;
#[path = "../examples/application_test.rs"]
mod application_test;
#[path = "../examples/axum.rs"]
mod axum_service;
#[path = "../examples/from_timestamp.rs"]
mod from_timestamp;
#[path = "../examples/select.rs"]
mod select;
#[path = "../examples/workers.rs"]
mod workers;

use common::{LONG, produce};
use kohort::testing::TestBroker;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::timeout,
};

async fn broker(partitions: i32, records: i64) -> TestBroker {
    let broker = TestBroker::start().await.unwrap();
    broker.create_topic("t", partitions).await.unwrap();
    produce(broker.servers(), "t", Some(0), 0..records).await;
    broker
}

#[tokio::test]
async fn workers_process_every_record() {
    let broker = broker(1, 50).await;
    let run = workers::run(broker.servers(), "g", "t", 50);
    timeout(LONG, run).await.unwrap().unwrap();
    let lags = admin::run(broker.servers(), "t").await.unwrap();
    assert_eq!(lags, [("g".to_owned(), 0)]);
}

#[tokio::test]
async fn reading_from_a_time_ends_where_the_partitions_end() {
    let broker = broker(3, 20).await;
    let run = from_timestamp::run(broker.servers(), "t", 0);
    assert_eq!(timeout(LONG, run).await.unwrap().unwrap(), 20);
    let run = from_timestamp::run(broker.servers(), "t", i64::MAX);
    assert_eq!(timeout(LONG, run).await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn a_loop_that_selects_stops_gracefully() {
    let broker = broker(1, 5).await;
    let admin = kohort::Admin::connect(broker.config()).await.unwrap();
    let stop = common::until(async || {
        let offsets = admin.list_group_offsets("g", None).await.unwrap();
        // Record 3 is finished once 4 is asked for.
        offsets
            .iter()
            .any(|(_, offset)| matches!(offset, Ok(Some(at)) if at.offset >= 4))
    });
    let run = select::run(broker.servers(), "g", "t", stop);
    assert_eq!(timeout(LONG, run).await.unwrap().unwrap(), 5);
    let lags = admin::run(broker.servers(), "other").await.unwrap();
    assert_eq!(lags, [("g".to_owned(), 0)]);
}

#[tokio::test]
async fn an_application_is_tested_with_a_broker_of_its_own() {
    timeout(LONG, application_test::run())
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_web_service_answers_once_the_record_is_written() {
    let broker = broker(1, 0).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let servers = broker.servers().to_owned();
    let (stop, stopped) = oneshot::channel::<()>();
    let service = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        let served = axum_service::run(&servers, "t", listener, stopped).await;
        served.map_err(|error| error.to_string())
    });
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "POST /orders HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\
        Content-Length: 5\r\n\r\npears";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    let read = stream.read_to_string(&mut response);
    timeout(LONG, read).await.unwrap().unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert!(response.contains("offset Some(0)"), "{response}");
    stop.send(()).unwrap();
    timeout(LONG, service).await.unwrap().unwrap().unwrap();
}
