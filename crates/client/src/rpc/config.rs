//! How to reach a cluster.

use std::time::Duration;

use super::{Backoff, Security};
use crate::{Error, Result};

/// How to reach a cluster. What the fields are called in Kafka's configuration is said with each.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// `bootstrap.servers`: addresses (`host:port`) of some brokers, by which the others are found.
    pub bootstrap_servers: Vec<String>,
    /// `client.id`: what the client calls itself in requests. Default `kohort`.
    pub client_id: String,
    /// `request.timeout.ms`: how long to wait for an answer before the connection is given up.
    /// Default 30 s.
    pub request_timeout: Duration,
    /// `default.api.timeout.ms`: how long an operation may take with all its retries. Default 60 s.
    pub api_timeout: Duration,
    /// `socket.connection.setup.timeout.ms`: how long a connection may take to come about,
    /// authentication included. Default 10 s.
    pub connect_timeout: Duration,
    /// `retry.backoff.ms` and `retry.backoff.max.ms`: 100 ms to 1 s by default.
    pub retry_backoff: Backoff,
    /// `reconnect.backoff.ms` and `reconnect.backoff.max.ms`: 50 ms to 1 s by default.
    pub reconnect_backoff: Backoff,
    /// `metadata.max.age.ms`: how old metadata may grow. Default 5 min.
    pub metadata_max_age: Duration,
    /// `allow.auto.create.topics`: whether the broker may create a topic that the client asks for and
    /// that doesn't exist, if the broker's `auto.create.topics.enable` allows it. Default `None`:
    /// producers create topics, consumers don't (unlike Java's, where subscribing to a misspelled
    /// name creates a topic). An [`Admin`](crate::Admin) never does.
    pub allow_auto_create_topics: Option<bool>,
    /// The longest answer that is accepted, in bytes. Default 100 MiB.
    pub response_bytes_max: usize,
    /// How many requests may be under way on one connection. Default 64.
    pub requests_in_flight_max: usize,
    /// `security.protocol` and what goes with it. Default neither TLS nor SASL.
    pub security: Security,
}

impl Default for ClientConfig {
    fn default() -> ClientConfig {
        ClientConfig {
            bootstrap_servers: Vec::new(),
            client_id: "kohort".to_owned(),
            request_timeout: Duration::from_secs(30),
            api_timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
            retry_backoff: Backoff {
                first: Duration::from_millis(100),
                most: Duration::from_secs(1),
            },
            reconnect_backoff: Backoff {
                first: Duration::from_millis(50),
                most: Duration::from_secs(1),
            },
            metadata_max_age: Duration::from_secs(300),
            allow_auto_create_topics: None,
            response_bytes_max: 100 << 20,
            requests_in_flight_max: 64,
            security: Security::default(),
        }
    }
}

impl ClientConfig {
    /// The defaults, and these servers (`host:port`, several separated by commas).
    pub fn new(bootstrap_servers: &str) -> ClientConfig {
        ClientConfig {
            bootstrap_servers: split_list(bootstrap_servers),
            ..ClientConfig::default()
        }
    }

    /// An error if a value cannot be meant.
    pub fn validate(&self) -> Result<()> {
        if self.bootstrap_servers.is_empty() {
            return Err(Error::config("bootstrap.servers", "no server is named"));
        }
        for server in &self.bootstrap_servers {
            let parts = server.rsplit_once(':');
            let is_address = parts.is_some_and(|(host, port)| {
                let is_host = !host.is_empty() && !host.contains(['/', ' ']);
                is_host && matches!(port.parse::<u16>(), Ok(1..))
            });
            if !is_address {
                let problem = format!("{server:?} is not an address like host:9092");
                return Err(Error::config("bootstrap.servers", problem));
            }
        }
        if self.requests_in_flight_max == 0 {
            return Err(Error::config(
                "max.in.flight.requests.per.connection",
                "must not be 0",
            ));
        }
        for (setting, time) in [
            ("request.timeout.ms", self.request_timeout),
            ("default.api.timeout.ms", self.api_timeout),
            ("socket.connection.setup.timeout.ms", self.connect_timeout),
        ] {
            check_time(setting, time)?;
            if time.is_zero() {
                return Err(Error::config(setting, "must not be 0"));
            }
        }
        check_time("metadata.max.age.ms", self.metadata_max_age)?;
        for (setting, most, backoff) in [
            (
                "retry.backoff.ms",
                "retry.backoff.max.ms",
                self.retry_backoff,
            ),
            (
                "reconnect.backoff.ms",
                "reconnect.backoff.max.ms",
                self.reconnect_backoff,
            ),
        ] {
            check_time(most, backoff.most)?;
            if backoff.first > backoff.most {
                let problem = format!("must not be greater than {most}");
                return Err(Error::config(setting, problem));
            }
        }
        Ok(())
    }
}

/// Brokers are told times in so many bits; and sums of times must not overflow.
pub(crate) fn check_time(setting: &str, time: Duration) -> Result<()> {
    const MOST: u128 = i32::MAX as u128;
    match time.as_millis() {
        ..=MOST => Ok(()),
        _ => {
            let problem = format!("must not be longer than {MOST} ms");
            Err(Error::config(setting, problem))
        }
    }
}

pub(crate) fn split_list(text: &str) -> Vec<String> {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}
