//! A web service that writes each request to a topic, with one producer for all requests.
//!
//! `cargo run --example axum -- localhost:9092 TOPIC`, then
//! `curl -d 'three pears' http://127.0.0.1:8080/orders`.

use std::{future::Future, sync::Arc};

use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use kohort::{Producer, ProducerRecord};
use tokio::net::TcpListener;

struct Service {
    producer: Producer,
    topic: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(servers), Some(topic)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: axum SERVERS TOPIC");
        std::process::exit(2);
    };
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    let interrupted = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    run(&servers, &topic, listener, interrupted).await
}

/// Serves until `stop`.
pub(crate) async fn run(
    servers: &str,
    topic: &str,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Box<dyn std::error::Error>> {
    let producer = Producer::builder()
        .bootstrap_servers(servers)
        .build()
        .await?;
    let service = Arc::new(Service {
        producer,
        topic: topic.to_owned(),
    });
    let router = Router::new()
        .route("/orders", post(order))
        .with_state(service.clone());
    let served = axum::serve(listener, router);
    served.with_graceful_shutdown(stop).await?;
    // What was accepted is written before the program ends.
    service.producer.flush().await;
    Ok(())
}

async fn order(State(service): State<Arc<Service>>, body: Bytes) -> (StatusCode, String) {
    let record = ProducerRecord::new(&service.topic).value(&body);
    // Requests that come at the same time share batches. The response waits for the broker: after a
    // 200, the record is written.
    let written = match service.producer.send(record).await {
        Ok(delivery) => delivery.await,
        Err(error) => Err(error),
    };
    match written {
        Ok(written) => (StatusCode::OK, format!("offset {:?}\n", written.offset)),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    }
}
