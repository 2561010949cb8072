//! Peers that do what no client does cost themselves their connection, and the others nothing.

mod common;

use std::time::Duration;

use common::*;
use kohort_wire::{ApiKey, ErrorCode, codec::Message, frame, messages::*};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};

/// Waits until the broker has closed the connection.
async fn expect_end(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    let _ = read.expect("the broker closes the connection");
}

async fn expect_service(client: &mut Client) {
    let response = client.ask(3, ApiVersionsRequest::named()).await;
    assert_eq!(response.error_code, ErrorCode::NONE);
}

trait Named {
    fn named() -> ApiVersionsRequest {
        ApiVersionsRequest {
            client_software_name: "test".into(),
            client_software_version: "1".into(),
            ..ApiVersionsRequest::default()
        }
    }
}

impl Named for ApiVersionsRequest {}

#[tokio::test]
async fn garbage_ends_its_own_connection_only() {
    let broker = builder().start().await.unwrap();
    let mut good = Client::connect(&broker).await;
    let frames: [&[u8]; 7] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc],
        &[0xff; 64],
        &[0, 0, 0, 0],
        &[0x7f, 0xff, 0xff, 0xff, 0, 0],
        // A header of an API that does not exist, and a request that ends too early.
        &[0, 0, 0, 10, 0x40, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff],
        &[0, 0, 0, 12, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff],
    ];
    for bytes in frames {
        let mut stream = TcpStream::connect(broker.address()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        expect_end(&mut stream).await;
        expect_service(&mut good).await;
    }
}

#[tokio::test]
async fn an_api_or_version_that_is_not_served_ends_the_connection_but_for_api_versions() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let header = [
        0,
        ApiKey::ApiVersions as u8,
        0,
        99,
        0,
        0,
        0,
        9,
        0xff,
        0xff,
        0,
    ];
    client.stream.write_i32(header.len() as i32).await.unwrap();
    client.stream.write_all(&header).await.unwrap();
    let response = client.receive().await.unwrap();
    assert_eq!(frame::correlation_id(&response).unwrap(), 9);
    let response = frame::decode_response::<ApiVersionsRequest>(response, 0).unwrap();
    assert_eq!(response.error_code, ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(response.api_keys.len(), 1);
    assert_eq!(
        response.api_keys[0].max_version,
        ApiVersionsRequest::VERSIONS.last
    );

    for (api, version) in [
        (ApiKey::Metadata as u8, 99),
        (ApiKey::SaslHandshake as u8, 0),
    ] {
        let mut client = Client::connect(&broker).await;
        let header = [0, api, 0, version, 0, 0, 0, 9, 0xff, 0xff, 0];
        client.stream.write_i32(header.len() as i32).await.unwrap();
        client.stream.write_all(&header).await.unwrap();
        assert_eq!(client.receive().await, None);
    }
}

#[tokio::test]
async fn what_is_served_is_advertised_with_the_versions_that_clients_look_for() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let response = client.ask(4, ApiVersionsRequest::named()).await;
    let versions = |api: ApiKey| {
        let found = response.api_keys.iter().find(|it| it.api_key == api as i16);
        found.map(|it| (it.min_version, it.max_version))
    };
    // KAFKA-18659.
    assert_eq!(versions(ApiKey::Produce), Some((0, 13)));
    assert_eq!(versions(ApiKey::ConsumerGroupHeartbeat), Some((0, 1)));
    assert_eq!(versions(ApiKey::AddPartitionsToTxn), None);
    assert_eq!(versions(ApiKey::SaslHandshake), None);
    let features = &response.finalized_features;
    let group = features
        .iter()
        .find(|it| &*it.name == "group.version")
        .unwrap();
    assert_eq!(group.max_version_level, 1);
}

#[tokio::test]
async fn a_peer_that_begins_a_request_and_stops_is_cut_off() {
    let broker = builder()
        .set("kohort.connection.stall.timeout.ms", "300")
        .start()
        .await
        .unwrap();
    let mut good = Client::connect(&broker).await;
    let mut slow = TcpStream::connect(broker.address()).await.unwrap();
    slow.write_all(&[0, 1, 0, 0, 0, 3]).await.unwrap();
    let started_at = Instant::now();
    expect_end(&mut slow).await;
    assert!(started_at.elapsed() >= Duration::from_millis(250));
    // One that is merely quiet stays.
    expect_service(&mut good).await;
}

/// Each byte shows that the peer is there; the request is never complete.
#[tokio::test]
async fn a_peer_that_sends_a_request_byte_by_byte_is_cut_off() {
    let broker = builder()
        .set("kohort.connection.stall.timeout.ms", "300")
        .start()
        .await
        .unwrap();
    let mut good = Client::connect(&broker).await;
    let mut slow = TcpStream::connect(broker.address()).await.unwrap();
    slow.write_all(&[0, 1, 0, 0, 0, 3]).await.unwrap();
    let trickled = async {
        while slow.write_all(&[0]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, trickled)
        .await
        .expect("the broker closes the connection");
    expect_service(&mut good).await;
}

#[tokio::test]
async fn a_peer_that_never_reads_is_cut_off() {
    let broker = builder()
        .set("kohort.connection.stall.timeout.ms", "500")
        .start()
        .await
        .unwrap();
    let mut good = Client::connect(&broker).await;
    good.create_topic("t", 1).await;
    let large = "x".repeat(500_000);
    for _ in 0..20 {
        good.produce("t", 0, &[&large]).await;
    }
    let mut deaf = Client::connect(&broker).await;
    let mut request = fetch("t", 0, 0, 0);
    request.max_bytes = 50 << 20;
    request.topics[0].partitions[0].partition_max_bytes = 50 << 20;
    let mut sent = 0;
    let ended = async {
        loop {
            sent += 1;
            let frame = frame::encode_request(&request, 12, sent, None)
                .unwrap()
                .into_bytes();
            if deaf.stream.write_all(&frame).await.is_err() {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, ended)
        .await
        .expect("the broker closes the connection");
    assert_eq!(values(&good.fetch("t", 0, 19).await).len(), 1);
}

#[tokio::test]
async fn a_huge_list_is_not_even_read() {
    let broker = builder().start().await.unwrap();
    let mut good = Client::connect(&broker).await;
    let mut client = Client::connect(&broker).await;
    let topic = MetadataRequestTopic {
        name: Some("t".into()),
        ..MetadataRequestTopic::default()
    };
    let request = MetadataRequest {
        topics: Some(vec![topic; 3_000_000]),
        ..MetadataRequest::default()
    };
    let frame = frame::encode_request(&request, 1, 1, None).unwrap();
    // The broker may hang up before all of it is sent.
    let _ = client.stream.write_all(&frame.into_bytes()).await;
    expect_end(&mut client.stream).await;
    expect_service(&mut good).await;
}

#[tokio::test]
async fn a_quiet_connection_ends_after_its_idle_time() {
    let broker = builder()
        .set("connections.max.idle.ms", "300")
        .start()
        .await
        .unwrap();
    let mut client = Client::connect(&broker).await;
    expect_service(&mut client).await;
    expect_end(&mut client.stream).await;
}

#[tokio::test]
async fn connections_beyond_the_limits_are_refused_and_the_others_stay() {
    let broker = builder()
        .set("max.connections.per.ip", "3")
        .start()
        .await
        .unwrap();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(&broker).await;
        expect_service(&mut client).await;
        clients.push(client);
    }
    let mut refused = TcpStream::connect(broker.address()).await.unwrap();
    expect_end(&mut refused).await;
    for client in &mut clients {
        expect_service(client).await;
    }
    drop(clients);
    // There is room again, as soon as the broker has noticed.
    let served = async {
        loop {
            let mut client = Client::connect(&broker).await;
            client.send(3, &ApiVersionsRequest::named()).await;
            if client.receive().await.is_some() {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, served).await.unwrap();
}

#[tokio::test]
async fn a_thousand_connections_that_say_nothing_do_not_disturb() {
    let broker = builder().start().await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..1000 {
        silent.push(TcpStream::connect(broker.address()).await.unwrap());
    }
    let mut client = Client::connect(&broker).await;
    expect_service(&mut client).await;
}

#[tokio::test]
async fn large_requests_wait_for_memory_and_small_ones_do_not() {
    let broker = builder()
        .set("queued.max.request.bytes", "1048576")
        .start()
        .await
        .unwrap();
    let mut good = Client::connect(&broker).await;
    good.create_topic_with("t", 1, &[("max.message.bytes", "3000000")])
        .await;
    // Takes all the memory that there is, and does not go on.
    let mut greedy = TcpStream::connect(broker.address()).await.unwrap();
    greedy
        .write_all(&2_000_000_i32.to_be_bytes())
        .await
        .unwrap();
    greedy.write_all(&vec![0; 1_200_000]).await.unwrap();
    expect_service(&mut good).await;
    let large = "x".repeat(600_000);
    let produced = good.produce("t", 0, &[&large]).await;
    assert_eq!(produced.error_code, ErrorCode::NONE);
    expect_end(&mut greedy).await;
}

#[tokio::test]
async fn peers_that_take_all_memory_for_responses_and_do_not_read_lose_it() {
    let broker = builder()
        .set("kohort.queued.max.response.bytes", "2097152")
        .start()
        .await
        .unwrap();
    let mut good = Client::connect(&broker).await;
    good.create_topic("t", 1).await;
    let large = "x".repeat(900_000);
    for _ in 0..20 {
        good.produce("t", 0, &[&large]).await;
    }
    let mut deaf = Vec::new();
    for _ in 0..8 {
        let mut client = Client::connect(&broker).await;
        for _ in 0..16 {
            client.send(12, &fetch("t", 0, 0, 0)).await;
        }
        deaf.push(client);
    }
    for offset in 0..20 {
        let fetched =
            async { while good.fetch("t", 0, offset).await.records.unwrap().is_empty() {} };
        tokio::time::timeout(PATIENCE, fetched).await.unwrap();
    }
}

#[tokio::test]
async fn a_broker_that_stops_answers_what_it_has() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    client.send(12, &fetch("t", 0, 0, 60_000)).await;
    // The fetch has begun once another connection's request has been answered after it.
    let mut other = Client::connect(&broker).await;
    expect_service(&mut other).await;
    let stopping = tokio::spawn(broker.shutdown());
    let response = client.receive().await;
    if let Some(response) = response {
        let response = frame::decode_response::<FetchRequest>(response, 12).unwrap();
        assert_eq!(response.error_code, ErrorCode::NONE);
    }
    assert_eq!(client.receive().await, None);
    tokio::time::timeout(PATIENCE, stopping)
        .await
        .unwrap()
        .unwrap();
}
