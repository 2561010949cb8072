//! One connection to a broker.
//!
//! One task writes requests in the order in which they were sent. Another reads the responses, which
//! come in the same order, and completes the waiting calls. Dropping a call's future leaves the
//! connection usable: its response is read and discarded.

use std::{
    io,
    marker::PhantomData,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use kohort_wire::{
    ApiKey, Request,
    codec::{Frame, Struct, Versions},
    frame,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tracing::{Instrument, Span};

use super::{
    ApiVersions, ClientConfig,
    exchange::{Awaited, Outgoing, Shared, guarded, read_responses, write_requests},
    frames::FrameReader,
    opening::{Opened, Opening, not_by_tls},
    transport::Transport,
};
use crate::{Error, Result};

/// Why no connection came about, if the server has accepted it.
const SILENT: &str = "it accepts connections but does not answer: it may be overloaded, expect TLS \
    (security.protocol), or not be a Kafka broker";

/// The versions of Fetch since which clients make the pauses themselves (KIP-219).
const THROTTLED_BY_CLIENT: Versions = Versions::new(8, i16::MAX);

/// A connection to a broker. Cloning it gives another handle of the same connection; when the last
/// handle and the last awaited answer are gone, it is closed.
#[derive(Debug, Clone)]
pub struct Connection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client_id: String,
    versions: ApiVersions,
    /// Whether the client is to make the pauses that the broker asks for. A broker before Kafka 2.0
    /// has made them itself before it answers.
    throttles: bool,
    /// When the authentication has to be renewed.
    renew_at: Option<Instant>,
    correlation_id: AtomicI32,
    in_flight: Arc<Semaphore>,
    outgoing: mpsc::UnboundedSender<Outgoing>,
    shared: Arc<Shared>,
}

impl Connection {
    /// Connects to `address`, where broker `broker` is expected (negative if not known), and
    /// agrees on versions.
    pub async fn open(broker: i32, address: &str, config: &ClientConfig) -> Result<Connection> {
        Connection::open_again(broker, address, config, 0).await
    }

    /// The same after so many failures.
    pub(super) async fn open_again(
        broker: i32,
        address: &str,
        config: &ClientConfig,
        failures: u32,
    ) -> Result<Connection> {
        let is_connected = AtomicBool::new(false);
        let opening = async {
            let failed = |source: io::Error| {
                not_by_tls(address, &source).unwrap_or_else(|| Error::Connect {
                    broker,
                    address: address.to_owned(),
                    source: Arc::new(source),
                })
            };
            let transport = Transport::connect(address, config, failures).await;
            let transport = transport.map_err(failed)?;
            is_connected.store(true, Ordering::Relaxed);
            Opening::new(broker, address, config, transport)
                .finish()
                .await
        };
        let opening = opening.instrument(tracing::debug_span!("connect", broker, address));
        match tokio::time::timeout(config.connect_timeout, opening).await {
            Ok(result) => result,
            Err(_) => Err(Error::Connect {
                broker,
                address: address.to_owned(),
                source: Arc::new(io::Error::new(
                    io::ErrorKind::TimedOut,
                    if is_connected.load(Ordering::Relaxed) {
                        SILENT
                    } else {
                        "no answer"
                    },
                )),
            }),
        }
    }

    pub(super) fn start(opened: Opened<'_>) -> Connection {
        let Opened {
            broker,
            address,
            config,
            transport,
            versions,
            renew_at,
            correlation_id,
        } = opened;
        let shared = Arc::new(Shared::new(broker, address));
        let (read_half, write_half) = tokio::io::split(transport);
        let (outgoing, requests) = mpsc::unbounded_channel();
        let reader = FrameReader::new(read_half, config.response_bytes_max);
        let span = tracing::debug_span!(parent: None, "connection", broker, address);
        let writing = write_requests(shared.clone(), write_half, requests);
        let reading = read_responses(shared.clone(), reader);
        tokio::spawn(guarded(shared.clone(), writing).instrument(span.clone()));
        tokio::spawn(guarded(shared.clone(), reading).instrument(span));
        tracing::debug!(broker, address, "connected");
        Connection(Arc::new(Inner {
            client_id: config.client_id.clone(),
            throttles: versions
                .newest_of(ApiKey::Fetch, THROTTLED_BY_CLIENT)
                .is_some(),
            versions,
            renew_at,
            correlation_id: AtomicI32::new(correlation_id),
            in_flight: Arc::new(Semaphore::new(config.requests_in_flight_max)),
            outgoing,
            shared,
        }))
    }

    /// The broker's id; negative for a bootstrap server.
    pub fn broker(&self) -> i32 {
        self.0.shared.broker
    }

    /// The broker's address.
    pub fn address(&self) -> &str {
        &self.0.shared.address
    }

    /// Which versions of which API the broker knows.
    pub fn versions(&self) -> &ApiVersions {
        &self.0.versions
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.0.shared.ended.is_cancelled()
    }

    /// Whether another connection should be made, since the authentication of this one will not
    /// count for long any more.
    pub fn is_expiring(&self) -> bool {
        self.0
            .renew_at
            .is_some_and(|renew_at| renew_at <= Instant::now())
    }

    /// Returns when the connection has ended.
    pub async fn closed(&self) {
        self.0.shared.ended.cancelled().await;
    }

    /// Ends the connection. Calls that wait for a response get an error.
    pub fn close(&self) {
        self.0.shared.end("it was closed here".to_owned());
    }

    /// Until when the broker wants no requests, if not now: it has asked for a pause, as the client
    /// exceeds its quota (`throttle_time_ms`, KIP-219).
    pub fn throttled_until(&self) -> Option<Instant> {
        self.0.shared.throttled_until()
    }

    /// How many requests are under way.
    pub fn in_flight(&self) -> usize {
        self.0.shared.awaited.lock().len()
    }

    /// The newest version of `R` that both sides know, or an error.
    pub fn version<R: Request>(&self) -> Result<i16> {
        self.version_of::<R>(R::VERSIONS)
    }

    /// The newest version of `R` that both sides know, among `wanted`, or an error.
    pub fn version_of<R: Request>(&self, wanted: Versions) -> Result<i16> {
        let version = self.0.versions.newest_of(R::API_KEY, wanted);
        version.ok_or(Error::UnsupportedVersion {
            broker: self.broker(),
            api: R::API_KEY,
            reason: None,
        })
    }

    /// Sends a request and waits for its answer. When none comes within `timeout`, the broker is
    /// taken for dead and the connection is ended.
    pub async fn call<R: Request>(
        &self,
        request: &R,
        version: i16,
        timeout: Duration,
    ) -> Result<R::Response> {
        self.send(request, version, timeout).await?.await
    }

    /// Sends a request, waiting only while too many are under way or the broker has asked for a
    /// pause (KIP-219). The answer may be awaited, or not.
    pub async fn send<R: Request>(
        &self,
        request: &R,
        version: i16,
        timeout: Duration,
    ) -> Result<PendingResponse<R>> {
        let permit = async {
            let permit = self.0.in_flight.clone().acquire_owned().await;
            while let Some(until) = self.throttled_until() {
                sleep_until(until).await;
            }
            permit.ok()
        };
        let permit = tokio::select! {
            permit = permit => permit,
            () = self.closed() => None,
        };
        match permit {
            Some(permit) => self.enqueue(request, version, timeout, permit),
            None => Err(self.0.shared.error()),
        }
    }

    /// Sends a request without waiting; `None` if too many are under way, or the broker has asked for
    /// a pause.
    pub fn try_send<R: Request>(
        &self,
        request: &R,
        version: i16,
        timeout: Duration,
    ) -> Result<Option<PendingResponse<R>>> {
        if self.throttled_until().is_some() {
            return Ok(None);
        }
        match self.0.in_flight.clone().try_acquire_owned() {
            Ok(permit) => self.enqueue(request, version, timeout, permit).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Sends a request that is never answered: Produce with `acks=0`. The future is done when it has
    /// been written, and may be dropped; an error if the connection ended before.
    pub fn send_unanswered<R: Request>(
        &self,
        request: &R,
        version: i16,
    ) -> Result<impl Future<Output = Result<()>> + Send + use<R>> {
        let frame = self.encode(request, version, self.next_correlation_id())?;
        let (written, receiver) = oneshot::channel();
        self.transmit(Outgoing {
            frame,
            awaited: None,
            written: Some(written),
        })?;
        let shared = self.0.shared.clone();
        Ok(async move { receiver.await.map_err(|_| shared.error()) })
    }

    fn enqueue<R: Request>(
        &self,
        request: &R,
        version: i16,
        timeout: Duration,
        permit: OwnedSemaphorePermit,
    ) -> Result<PendingResponse<R>> {
        let correlation_id = self.next_correlation_id();
        let frame = self.encode(request, version, correlation_id)?;
        let (answer, receiver) = oneshot::channel();
        self.transmit(Outgoing {
            frame,
            awaited: Some(Awaited {
                correlation_id,
                overdue: Instant::now() + timeout,
                answer,
                _in_flight: permit,
            }),
            written: None,
        })?;
        let broker = self.broker();
        Ok(PendingResponse {
            connection: self.clone(),
            version,
            receiver,
            span: tracing::debug_span!(
                "request",
                api = R::API_KEY.name(),
                version,
                broker,
                correlation_id
            ),
            request: PhantomData,
        })
    }

    fn transmit(&self, outgoing: Outgoing) -> Result<()> {
        let sent = !self.is_closed() && self.0.outgoing.send(outgoing).is_ok();
        sent.then_some(()).ok_or_else(|| self.0.shared.error())
    }

    fn encode<R: Request>(&self, request: &R, version: i16, correlation_id: i32) -> Result<Frame> {
        encode(request, version, correlation_id, &self.0.client_id)
    }

    fn next_correlation_id(&self) -> i32 {
        self.0.correlation_id.fetch_add(1, Ordering::Relaxed)
    }
}

pub(super) fn encode<R: Request>(
    request: &R,
    version: i16,
    correlation_id: i32,
    client_id: &str,
) -> Result<Frame> {
    let frame = frame::encode_request(request, version, correlation_id, Some(client_id));
    frame.map_err(|source| Error::Encode {
        api: R::API_KEY,
        source,
    })
}

/// An answer that is still to come. Dropping it does the connection no harm.
#[derive(Debug)]
#[must_use = "await it, or drop it if the answer does not matter"]
pub struct PendingResponse<R> {
    connection: Connection,
    version: i16,
    receiver: oneshot::Receiver<Bytes>,
    /// From when the request is on its way until the answer has been read.
    span: Span,
    request: PhantomData<fn() -> R>,
}

impl<R: Request> PendingResponse<R> {
    /// The version of the request, and so of the answer.
    pub fn version(&self) -> i16 {
        self.version
    }

    /// The connection on which the answer will come.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl<R: Request> Future for PendingResponse<R> {
    type Output = Result<R::Response>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.receiver).poll(cx));
        let span = std::mem::replace(&mut self.span, Span::none());
        let _entered = span.enter();
        let shared = &self.connection.0.shared;
        let Ok(frame) = answer else {
            tracing::debug!("there will be no answer");
            return Poll::Ready(Err(shared.error()));
        };
        tracing::trace!(bytes = frame.len(), "answered");
        let decoded = frame::decode_response::<R>(frame, self.version);
        if let Ok(response) = &decoded
            && self.connection.0.throttles
        {
            shared.throttle(response.throttle_time_ms());
        }
        Poll::Ready(decoded.map_err(|error| {
            let error = Error::decode(shared.broker, &shared.address, R::API_KEY, error);
            // What follows cannot be trusted either.
            shared.end_with(error.clone());
            error
        }))
    }
}
