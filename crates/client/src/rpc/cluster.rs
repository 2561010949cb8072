//! A cluster: any request to any of its brokers.

use std::{sync::Arc, time::Duration};

use bytestring::ByteString;
use kohort_wire::{ApiKey, ErrorCode, Request, codec::Versions, messages::*};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    ClientConfig, Connection, Lane, Metadata, PendingResponse, Retry,
    brokers::{Brokers, bootstrap_id, unknown_broker},
    cluster_metadata::{Refreshed, Topics},
    metadata::{BrokerMetadata, own},
    retry::random_u32,
};
use crate::{Error, Result, Subject, TopicPartition, error::check};

/// Whom a request is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Destination {
    /// Any broker.
    Any,
    /// The broker with this id.
    Broker(i32),
    /// The broker to ask for what concerns the whole cluster.
    Controller,
    /// The coordinator of a group.
    Group(ByteString),
    /// The coordinator of a transactional id.
    Transaction(ByteString),
    /// The leader of a partition.
    Leader(TopicPartition),
}

/// A cluster. Cloning it gives another handle of the same connections.
#[derive(Debug, Clone)]
pub struct Cluster(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) config: ClientConfig,
    brokers: Brokers,
    pub(super) metadata: watch::Sender<Arc<Metadata>>,
    pub(super) refreshed: tokio::sync::Mutex<Refreshed>,
    coordinators: Mutex<FxHashMap<Destination, i32>>,
    closed: CancellationToken,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.brokers.close();
    }
}

impl Cluster {
    /// A cluster to which nothing has been sent yet.
    pub fn new(config: ClientConfig) -> Result<Cluster> {
        config.validate()?;
        Ok(Cluster(Arc::new(Inner {
            config,
            brokers: Brokers::default(),
            metadata: watch::Sender::new(Arc::default()),
            refreshed: tokio::sync::Mutex::default(),
            coordinators: Mutex::default(),
            closed: CancellationToken::new(),
        })))
    }

    /// A cluster whose brokers are known: it has been reached.
    pub async fn connect(config: ClientConfig) -> Result<Cluster> {
        let cluster = Cluster::new(config)?;
        cluster.reach(|_| true).await?;
        Ok(cluster)
    }

    /// Waits until a broker answers, within [`ClientConfig::api_timeout`]. After each failed attempt
    /// `go_on` decides whether there is another.
    pub async fn reach(&self, mut go_on: impl FnMut(&Error) -> bool) -> Result<()> {
        let servers = self.0.config.bootstrap_servers.join(", ");
        let mut retry = self.retry(format!("reach {servers}"));
        let no_topics = Topics::Named(Vec::new());
        loop {
            match retry.attempt(self.refresh(&no_topics)).await {
                Ok(_) => return Ok(()),
                Err(error) if go_on(&error) => retry.failed(error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// How the cluster is reached.
    pub fn config(&self) -> &ClientConfig {
        &self.0.config
    }

    /// Ends all connections; from then on every request fails with [`Error::Closed`].
    pub fn close(&self) {
        self.0.closed.cancel();
        self.0.brokers.close();
    }

    /// Attempts to do `what` ("list the groups") within [`ClientConfig::api_timeout`].
    pub fn retry(&self, what: impl Into<String>) -> Retry {
        self.retry_for(what, self.0.config.api_timeout)
    }

    /// Attempts to do `what` ("list the groups") within `timeout`.
    pub fn retry_for(&self, what: impl Into<String>, timeout: Duration) -> Retry {
        Retry::new(what, timeout, self.0.config.retry_backoff)
    }

    /// Sends a request in the newest version that both sides know, once, and waits for the answer.
    pub async fn call<R: Request>(&self, to: &Destination, request: &R) -> Result<R::Response> {
        let connection = self.connection(to, Lane::Main).await?;
        let version = connection.version::<R>()?;
        let answer = connection
            .call(request, version, self.0.config.request_timeout)
            .await;
        self.noted(to, answer)
    }

    /// Sends a request, once, and returns as soon as it is on its way. The answer may be awaited,
    /// or not.
    pub async fn send<R: Request>(
        &self,
        to: &Destination,
        request: &R,
    ) -> Result<PendingResponse<R>> {
        let connection = self.connection(to, Lane::Main).await?;
        let version = connection.version::<R>()?;
        connection
            .send(request, version, self.0.config.request_timeout)
            .await
    }

    /// Asks until there is an answer that `check` lets pass, for as long as
    /// [`ClientConfig::api_timeout`]. `request` makes the request for the version that the broker
    /// of the attempt knows.
    pub async fn ask<R: Request>(
        &self,
        to: &Destination,
        request: impl Fn(i16) -> R,
        check: impl Fn(&R::Response) -> Result<()>,
    ) -> Result<R::Response> {
        self.ask_within(
            to,
            Lane::Main,
            R::VERSIONS,
            self.0.config.api_timeout,
            request,
            check,
        )
        .await
    }

    /// [`ask`](Cluster::ask) with all that can be chosen: the lane, the versions among which to
    /// choose, and for how long to try.
    pub async fn ask_within<R: Request>(
        &self,
        to: &Destination,
        lane: Lane,
        versions: Versions,
        timeout: Duration,
        request: impl Fn(i16) -> R,
        check: impl Fn(&R::Response) -> Result<()>,
    ) -> Result<R::Response> {
        self.ask_again(to, lane, versions, timeout, request, check)
            .await
            .map(|(answer, _)| answer)
    }

    /// [`ask_within`](Cluster::ask_within), which tells, with the answer, of an earlier attempt that
    /// may have been carried out: how the last such attempt ended.
    pub(crate) async fn ask_again<R: Request>(
        &self,
        to: &Destination,
        lane: Lane,
        versions: Versions,
        timeout: Duration,
        request: impl Fn(i16) -> R,
        check: impl Fn(&R::Response) -> Result<()>,
    ) -> Result<(R::Response, Option<Error>)> {
        let mut retry = self.retry_for(format!("complete {}", R::API_KEY.name()), timeout);
        let mut earlier = None;
        loop {
            let attempt = async {
                let connection = self.connection(to, lane).await?;
                let version = connection.version_of::<R>(versions)?;
                let request = request(version);
                // It is on its way from here on.
                Ok(connection
                    .call(&request, version, self.0.config.request_timeout)
                    .await)
            };
            let (sent, answer) = match retry.attempt(attempt).await {
                Ok(answer) => (true, answer),
                Err(error) => (false, Err(error)),
            };
            let answer = answer.and_then(|answer| check(&answer).map(|()| answer));
            let error = match self.noted(to, answer) {
                Ok(answer) => return Ok((answer, earlier)),
                Err(error) => error,
            };
            // Brokers say others when they lose their office while they are about it.
            if sent && error.code() != Some(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS) {
                earlier = Some(error.clone());
            }
            retry.failed(error).await?;
        }
    }

    fn noted<T>(&self, to: &Destination, answer: Result<T>) -> Result<T> {
        if let Err(error) = &answer {
            self.note_error(to, error);
        }
        answer
    }

    /// Forgets what an error shows to be outdated: where a coordinator is, for example.
    pub fn note_error(&self, to: &Destination, error: &Error) {
        let gone = matches!(
            error,
            Error::Connect { .. }
                | Error::Disconnected { .. }
                | Error::NotKafka { .. }
                | Error::Protocol { .. }
                | Error::Timeout { .. }
        );
        let code = match error {
            Error::Kafka { code, .. } => *code,
            _ => ErrorCode::NONE,
        };
        match to {
            Destination::Group(_) | Destination::Transaction(_) => {
                let moved = matches!(
                    code,
                    ErrorCode::NOT_COORDINATOR | ErrorCode::COORDINATOR_NOT_AVAILABLE
                );
                if gone || moved {
                    self.0.coordinators.lock().remove(to);
                }
            }
            Destination::Controller if gone || code == ErrorCode::NOT_CONTROLLER => {
                self.0
                    .metadata
                    .send_if_modified(|metadata| Arc::make_mut(metadata).forget_controller());
            }
            Destination::Leader(partition) => {
                let moved = matches!(
                    code,
                    ErrorCode::NOT_LEADER_OR_FOLLOWER
                        | ErrorCode::FENCED_LEADER_EPOCH
                        | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                        | ErrorCode::UNKNOWN_TOPIC_ID
                        | ErrorCode::KAFKA_STORAGE_ERROR
                );
                if gone || moved {
                    self.0.metadata.send_if_modified(|metadata| {
                        Arc::make_mut(metadata).forget_leader(partition)
                    });
                }
            }
            _ => {}
        }
    }

    /// A connection to whom it may concern. Asks where that is if it is not known.
    pub async fn connection(&self, to: &Destination, lane: Lane) -> Result<Connection> {
        if self.0.closed.is_cancelled() {
            return Err(Error::Closed);
        }
        match to {
            Destination::Any => self.any(lane).await,
            Destination::Broker(id) => self.broker(*id, lane).await,
            Destination::Controller => match self.metadata().controller() {
                Some(id) if self.metadata().broker(id).is_some() => self.broker(id, lane).await,
                _ => {
                    let metadata = self.refresh(&Topics::Named(Vec::new())).await?;
                    match metadata.controller() {
                        Some(id) => self.broker(id, lane).await,
                        None => self.any(lane).await,
                    }
                }
            },
            Destination::Group(_) | Destination::Transaction(_) => {
                let id = self.coordinator(to).await?;
                self.broker(id, lane).await
            }
            Destination::Leader(partition) => {
                let id = match self.metadata().leader(partition) {
                    Some(id) => id,
                    None => {
                        let topics = Topics::Named(vec![partition.topic.clone()]);
                        self.refresh(&topics)
                            .await?
                            .leader(partition)
                            .ok_or_else(|| {
                                let subject = Subject::Partition(partition.clone());
                                Error::kafka(
                                    ApiKey::Metadata,
                                    subject,
                                    ErrorCode::LEADER_NOT_AVAILABLE,
                                )
                            })?
                    }
                };
                self.broker(id, lane).await
            }
        }
    }

    /// The connection to a broker, if one is open.
    pub fn connected(&self, broker: i32, lane: Lane) -> Option<Connection> {
        self.0.brokers.connected(broker, lane)
    }

    async fn broker(&self, id: i32, lane: Lane) -> Result<Connection> {
        let address = match self.address(id) {
            Some(address) => address,
            None => {
                self.refresh(&Topics::Named(Vec::new())).await?;
                self.address(id).ok_or_else(|| unknown_broker(id))?
            }
        };
        self.connect_to(id, lane, &address).await
    }

    fn address(&self, id: i32) -> Option<String> {
        self.0
            .metadata
            .borrow()
            .broker(id)
            .map(BrokerMetadata::address)
    }

    async fn connect_to(&self, id: i32, lane: Lane, address: &str) -> Result<Connection> {
        tokio::select! {
            connection = self.0.brokers.connect(id, lane, address, &self.0.config) => connection,
            () = self.0.closed.cancelled() => Err(Error::Closed),
        }
    }

    /// A connection to any broker: one that is there already; else the first of the brokers, and
    /// then of the bootstrap servers (KIP-899), that can be reached.
    pub(super) async fn any(&self, lane: Lane) -> Result<Connection> {
        let mut candidates = self.candidates();
        let connected = candidates
            .iter()
            .find_map(|(id, _)| self.0.brokers.connected(*id, lane));
        if let Some(connection) = connected {
            return Ok(connection);
        }
        // Those that have just failed come last, and are waited for.
        candidates.sort_by_key(|(id, _)| self.0.brokers.backing_off(*id, lane));
        let mut last = Error::Closed;
        for (id, address) in candidates {
            match self.connect_to(id, lane, &address).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// All brokers in random order, then all bootstrap servers in random order.
    fn candidates(&self) -> Vec<(i32, String)> {
        let metadata = self.metadata();
        let mut brokers: Vec<_> = metadata
            .brokers()
            .map(|broker| (broker.id, broker.address()))
            .collect();
        let mut servers: Vec<_> = (0..)
            .zip(&self.0.config.bootstrap_servers)
            .map(|(index, address)| (bootstrap_id(index), address.clone()))
            .collect();
        for list in [&mut brokers, &mut servers] {
            if !list.is_empty() {
                let first = random_u32() as usize % list.len();
                list.rotate_left(first);
            }
        }
        brokers.extend(servers);
        brokers
    }

    /// The id of the broker that coordinates a group or a transactional id; asked for, once, if it
    /// is not known.
    async fn coordinator(&self, to: &Destination) -> Result<i32> {
        let (key, key_type, subject) = match to {
            Destination::Group(group) => (group, 0, Subject::Group(group.clone())),
            Destination::Transaction(id) => (id, 1, Subject::Named(id.clone())),
            _ => unreachable!("only these have coordinators"),
        };
        let known = self.0.coordinators.lock().get(to).copied();
        if let Some(id) = known {
            return Ok(id);
        }
        let connection = self.any(Lane::Main).await?;
        let version = connection.version::<FindCoordinatorRequest>()?;
        let request = match version {
            ..=3 => FindCoordinatorRequest {
                key: key.clone(),
                key_type,
                ..Default::default()
            },
            _ => FindCoordinatorRequest {
                key_type,
                coordinator_keys: vec![key.clone()],
                ..Default::default()
            },
        };
        let timeout = self.0.config.request_timeout;
        let mut response = connection.call(&request, version, timeout).await?;
        let found = response
            .coordinators
            .pop()
            .unwrap_or_else(|| FoundCoordinator {
                node_id: response.node_id,
                host: response.host.clone(),
                port: response.port,
                error_code: response.error_code,
                error_message: response.error_message.clone(),
                ..Default::default()
            });
        check(
            ApiKey::FindCoordinator,
            found.error_code,
            found.error_message.as_ref(),
            || subject,
        )?;
        self.note_broker(BrokerMetadata {
            id: found.node_id,
            host: own(&found.host),
            port: found.port,
            rack: self
                .metadata()
                .broker(found.node_id)
                .and_then(|broker| broker.rack.clone()),
        });
        self.0.coordinators.lock().insert(to.clone(), found.node_id);
        Ok(found.node_id)
    }
}
