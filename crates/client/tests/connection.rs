//! A connection against a peer that behaves, or does not.

use std::time::Duration;

use kohort::{
    Error,
    rpc::{ClientConfig, Connection, messages::*},
};
use kohort_wire::{ApiKey, codec::Decoder, frame};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const LONG: Duration = Duration::from_secs(20);

/// A peer that has agreed on versions and then does as the test says.
struct Peer(TcpStream);

impl Peer {
    async fn request(&mut self) -> (ApiKey, i32) {
        let length = self.0.read_u32().await.unwrap();
        let mut request = vec![0; length as usize];
        self.0.read_exact(&mut request).await.unwrap();
        let header = frame::RequestHeader::decode(&mut Decoder::new(request.into())).unwrap();
        (header.api_key.try_into().unwrap(), header.correlation_id)
    }

    async fn answer_heartbeat(&mut self, correlation_id: i32, throttle_time_ms: i32) {
        let response = HeartbeatResponse {
            throttle_time_ms,
            ..Default::default()
        };
        let api = ApiKey::Heartbeat;
        let answer = frame::encode_response(&response, api, 4, correlation_id).unwrap();
        self.0.write_all(&answer.into_bytes()).await.unwrap();
    }
}

async fn connected() -> (Connection, Peer) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let accept = tokio::spawn(async move {
        let mut peer = Peer(listener.accept().await.unwrap().0);
        // As a broker that does not know this version of ApiVersions: it says so in version 0.
        let (api, correlation_id) = peer.request().await;
        assert_eq!(api, ApiKey::ApiVersions);
        for (error_code, correlation_id) in [(35, correlation_id), (0, correlation_id + 1)] {
            if error_code == 0 {
                assert_eq!(peer.request().await, (api, correlation_id));
            }
            let response = ApiVersionsResponse {
                error_code: kohort::ErrorCode(error_code),
                api_keys: vec![ApiVersion {
                    api_key: ApiKey::Heartbeat as i16,
                    min_version: 0,
                    max_version: 100,
                }],
                ..Default::default()
            };
            let answer = frame::encode_response(&response, api, 0, correlation_id).unwrap();
            peer.0.write_all(&answer.into_bytes()).await.unwrap();
        }
        peer
    });
    let config = ClientConfig {
        requests_in_flight_max: 2,
        response_bytes_max: 1000,
        ..ClientConfig::new(&address)
    };
    let connection = Connection::open(7, &address, &config).await.unwrap();
    (connection, accept.await.unwrap())
}

#[tokio::test]
async fn requests_are_pipelined_and_each_gets_its_own_answer() {
    let (connection, mut peer) = connected().await;
    let request = HeartbeatRequest::default();
    assert_eq!(connection.version::<HeartbeatRequest>().unwrap(), 4);
    let first = connection.send(&request, 4, LONG).await.unwrap();
    let second = connection.send(&request, 4, LONG).await.unwrap();
    for throttle in [1, 2] {
        let (_, id) = peer.request().await;
        peer.answer_heartbeat(id, throttle).await;
    }
    assert_eq!(second.await.unwrap().throttle_time_ms, 2);
    assert_eq!(first.await.unwrap().throttle_time_ms, 1);
}

#[tokio::test]
async fn dropping_the_future_of_an_answer_leaves_the_connection_in_step() {
    let (connection, mut peer) = connected().await;
    let request = HeartbeatRequest::default();
    drop(connection.send(&request, 4, LONG).await.unwrap());
    let call = connection.call(&request, 4, LONG);
    let answers = async {
        for throttle in [1, 2] {
            let (_, id) = peer.request().await;
            peer.answer_heartbeat(id, throttle).await;
        }
    };
    let (answer, ()) = tokio::join!(call, answers);
    assert_eq!(answer.unwrap().throttle_time_ms, 2);
}

#[tokio::test]
async fn no_more_requests_are_under_way_than_allowed() {
    let (connection, mut peer) = connected().await;
    let request = HeartbeatRequest::default();
    let _first = connection.send(&request, 4, LONG).await.unwrap();
    let _second = connection.send(&request, 4, LONG).await.unwrap();
    assert!(connection.try_send(&request, 4, LONG).unwrap().is_none());
    let (_, id) = peer.request().await;
    peer.answer_heartbeat(id, 1).await;
    let third = connection.send(&request, 4, LONG).await.unwrap();
    drop(third);
}

#[tokio::test]
async fn an_answer_to_another_request_ends_the_connection() {
    let (connection, mut peer) = connected().await;
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call(&HeartbeatRequest::default(), 4, LONG).await }
    });
    let (_, id) = peer.request().await;
    peer.answer_heartbeat(id + 1, 0).await;
    let error = call.await.unwrap().unwrap_err();
    assert!(
        matches!(error, Error::Protocol { broker: 7, .. }),
        "{error}"
    );
    assert!(connection.is_closed());
}

#[tokio::test]
async fn an_answer_over_the_limit_ends_the_connection() {
    let (connection, mut peer) = connected().await;
    let call = connection
        .send(&HeartbeatRequest::default(), 4, LONG)
        .await
        .unwrap();
    peer.0.write_u32(1001).await.unwrap();
    let error = call.await.unwrap_err();
    assert!(
        error.to_string().contains("a response of 1001 bytes"),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_an_error_and_ends_the_connection() {
    let (connection, mut peer) = connected().await;
    let call = connection
        .send(&HeartbeatRequest::default(), 4, LONG)
        .await
        .unwrap();
    let (_, id) = peer.request().await;
    peer.0.write_u32(5).await.unwrap();
    peer.0.write_i32(id).await.unwrap();
    peer.0.write_u8(0).await.unwrap();
    let error = call.await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("answer to Heartbeat cannot be read"),
        "{error}"
    );
    assert!(connection.is_closed());
}

#[tokio::test]
async fn a_broker_that_does_not_answer_is_given_up() {
    let (connection, _peer) = connected().await;
    let timeout = Duration::from_millis(10);
    let error = connection
        .call(&HeartbeatRequest::default(), 4, timeout)
        .await
        .unwrap_err();
    assert!(
        error.is_retriable() && error.to_string().contains("not answered in time"),
        "{error}"
    );
    assert!(connection.is_closed());
}

#[tokio::test]
async fn a_broker_that_goes_away_is_noticed_at_once() {
    let (connection, peer) = connected().await;
    let call = connection
        .send(&HeartbeatRequest::default(), 4, LONG)
        .await
        .unwrap();
    drop(peer);
    assert!(matches!(
        call.await.unwrap_err(),
        Error::Disconnected { broker: 7, .. }
    ));
    connection.closed().await;
    let again = connection.send(&HeartbeatRequest::default(), 4, LONG).await;
    assert!(again.unwrap_err().is_retriable());
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_connection() {
    let (connection, mut peer) = connected().await;
    drop(connection);
    assert_eq!(peer.0.read(&mut [0]).await.unwrap(), 0);
}
