//! One connection to a broker.
//!
//! Requests are written in the order in which they were sent, by a task of their own, and answers
//! are read by another, which hands each to whoever waits for it. Brokers answer in order. Who
//! stops waiting, by dropping a future, leaves the connection as it is: the answer is read and
//! thrown away.

use std::{
    collections::VecDeque,
    io,
    marker::PhantomData,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI32, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use kohort_wire::{
    ApiKey, ErrorCode, Request,
    codec::{Frame, Versions},
    frame,
    messages::{ApiVersionsRequest, ApiVersionsResponse},
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncWriteExt, ReadHalf, WriteHalf},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use super::{
    ApiVersions, ClientConfig,
    frames::{FrameReader, Pieces},
    transport::Transport,
};
use crate::{Error, Result};

/// How often it is looked whether answers are overdue.
const OVERDUE_CHECK: Duration = Duration::from_millis(500);

/// A connection to a broker. Cloning it gives another handle of the same connection; when the last
/// handle and the last awaited answer are gone, it is closed.
#[derive(Debug, Clone)]
pub struct Connection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client_id: String,
    versions: ApiVersions,
    /// When the authentication has to be renewed.
    renew_at: Option<Instant>,
    correlation_id: AtomicI32,
    in_flight: Arc<Semaphore>,
    outgoing: mpsc::UnboundedSender<Outgoing>,
    shared: Arc<Shared>,
}

/// What the handles and the tasks have in common.
#[derive(Debug)]
struct Shared {
    broker: i32,
    address: String,
    /// In the order of the requests on the wire.
    awaited: Mutex<VecDeque<Awaited>>,
    ended: CancellationToken,
    reason: OnceLock<Error>,
}

#[derive(Debug)]
struct Outgoing {
    frame: Frame,
    /// `None` for a request that is not answered.
    awaited: Option<Awaited>,
}

#[derive(Debug)]
struct Awaited {
    correlation_id: i32,
    overdue: Instant,
    answer: oneshot::Sender<Bytes>,
    _in_flight: OwnedSemaphorePermit,
}

impl Connection {
    /// Connects to `address`, where broker `broker` is expected (negative if not known), and
    /// agrees on versions.
    pub async fn open(broker: i32, address: &str, config: &ClientConfig) -> Result<Connection> {
        let opening = async {
            let failed = |source: io::Error| Error::Connect {
                broker,
                address: address.to_owned(),
                source: Arc::new(source),
            };
            let transport = Transport::connect(address, config).await.map_err(failed)?;
            Opening {
                broker,
                address,
                config,
                reader: FrameReader::new(transport, config.response_bytes_max),
                correlation_id: 0,
            }
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
                    format!("no answer within {} ms", config.connect_timeout.as_millis()),
                )),
            }),
        }
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

    /// Ends the connection. Whoever waits for an answer gets an error.
    pub fn close(&self) {
        self.0.shared.end("it was closed here".to_owned());
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

    /// Sends a request, waiting only while too many are under way. The answer may be awaited, or
    /// not.
    pub async fn send<R: Request>(
        &self,
        request: &R,
        version: i16,
        timeout: Duration,
    ) -> Result<PendingResponse<R>> {
        let permit = tokio::select! {
            permit = self.0.in_flight.clone().acquire_owned() => permit.ok(),
            () = self.closed() => None,
        };
        match permit {
            Some(permit) => self.enqueue(request, version, timeout, permit),
            None => Err(self.0.shared.error()),
        }
    }

    /// Sends a request without waiting; `None` if too many are under way.
    pub fn try_send<R: Request>(
        &self,
        request: &R,
        version: i16,
        timeout: Duration,
    ) -> Result<Option<PendingResponse<R>>> {
        match self.0.in_flight.clone().try_acquire_owned() {
            Ok(permit) => self.enqueue(request, version, timeout, permit).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Sends a request that is never answered: Produce with `acks=0`.
    pub fn send_unanswered<R: Request>(&self, request: &R, version: i16) -> Result<()> {
        let frame = self.encode(request, version, self.next_correlation_id())?;
        self.transmit(Outgoing {
            frame,
            awaited: None,
        })
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

fn encode<R: Request>(
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
        Poll::Ready(
            frame::decode_response::<R>(frame, self.version).map_err(|error| {
                let error = Error::decode(shared.broker, &shared.address, R::API_KEY, error);
                // What follows cannot be trusted either.
                shared.end_with(error.clone());
                error
            }),
        )
    }
}

impl Shared {
    fn error(&self) -> Error {
        let unknown = || self.disconnected("it was closed".to_owned());
        self.reason.get().cloned().unwrap_or_else(unknown)
    }

    fn disconnected(&self, reason: String) -> Error {
        Error::Disconnected {
            broker: self.broker,
            address: self.address.clone(),
            reason,
        }
    }

    fn end(&self, reason: String) {
        self.end_with(self.disconnected(reason));
    }

    /// Ends the connection. The first reason counts.
    fn end_with(&self, error: Error) {
        if self.reason.set(error).is_ok() {
            tracing::debug!(broker = self.broker, address = self.address, reason = %self.error(),
                "connection ended");
        }
        self.ended.cancel();
        // Dropping the senders wakes everybody who waits.
        self.awaited.lock().clear();
    }

    /// Hands an answer to whoever waits for it.
    fn answered(&self, frame: Bytes) -> Result<(), String> {
        let id = frame::correlation_id(&frame).map_err(|error| error.to_string())?;
        let awaited = self.awaited.lock().pop_front();
        match awaited {
            Some(awaited) if awaited.correlation_id == id => {
                // Nobody may be interested any more.
                let _ = awaited.answer.send(frame);
                Ok(())
            }
            Some(awaited) => Err(format!(
                "an answer to request {id} came instead of one to {}",
                awaited.correlation_id
            )),
            None => Err(format!("an answer to request {id}, which was not asked")),
        }
    }

    fn check_overdue(&self) -> Result<(), String> {
        match self.awaited.lock().front() {
            Some(awaited) if awaited.overdue <= Instant::now() => {
                Err("a request was not answered in time".to_owned())
            }
            _ => Ok(()),
        }
    }
}

async fn write_requests(
    shared: Arc<Shared>,
    mut stream: WriteHalf<Transport>,
    mut outgoing: mpsc::UnboundedReceiver<Outgoing>,
) {
    loop {
        let first = tokio::select! {
            first = outgoing.recv() => first,
            () = shared.ended.cancelled() => None,
        };
        // No handle is left, or the connection has ended.
        let Some(first) = first else { break };
        let mut pieces = Pieces::default();
        {
            let mut awaited = shared.awaited.lock();
            let rest = std::iter::from_fn(|| outgoing.try_recv().ok());
            for request in std::iter::once(first).chain(rest).take(64) {
                awaited.extend(request.awaited);
                request
                    .frame
                    .into_pieces()
                    .into_iter()
                    .for_each(|piece| pieces.push(piece));
            }
        }
        let writing = async {
            stream.write_all_buf(&mut pieces).await?;
            stream.flush().await
        };
        let written = tokio::select! {
            written = writing => written,
            () = shared.ended.cancelled() => break,
        };
        if let Err(error) = written {
            shared.end(error.to_string());
            break;
        }
    }
    shared.end("it was closed here".to_owned());
    // Requests that came too late: their senders learn of it.
    outgoing.close();
    while outgoing.try_recv().is_ok() {}
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.shutdown()).await;
}

async fn read_responses(shared: Arc<Shared>, mut reader: FrameReader<ReadHalf<Transport>>) {
    let mut overdue_check = tokio::time::interval(OVERDUE_CHECK);
    overdue_check.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let problem = tokio::select! {
            frame = reader.next() => match frame {
                Ok(frame) => shared.answered(frame),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(error.to_string()),
                Err(error) => return shared.end(error.to_string()),
            },
            _ = overdue_check.tick() => match shared.check_overdue() {
                Ok(()) => Ok(()),
                Err(reason) => return shared.end(reason),
            },
            () = shared.ended.cancelled() => return,
        };
        if let Err(problem) = problem {
            return shared.end_with(Error::Protocol {
                broker: shared.broker,
                address: shared.address.clone(),
                problem,
            });
        }
    }
}

/// A connection before it can be used: one request at a time.
pub(super) struct Opening<'a> {
    broker: i32,
    pub(super) address: &'a str,
    config: &'a ClientConfig,
    reader: FrameReader<Transport>,
    correlation_id: i32,
}

impl Opening<'_> {
    async fn finish(mut self) -> Result<Connection> {
        let versions = self.negotiate().await?;
        let mut renew_at = None;
        if let Some(sasl) = &self.config.security.sasl {
            let lifetime_ms = sasl.authenticate(&mut self, &versions).await?;
            // A new connection takes over before the broker ends this one (KIP-368).
            if let Ok(lifetime_ms @ 1..) = u64::try_from(lifetime_ms) {
                renew_at = Some(Instant::now() + Duration::from_millis(lifetime_ms / 10 * 8));
            }
        }
        let Opening {
            broker,
            address,
            config,
            reader,
            correlation_id,
        } = self;
        let shared = Arc::new(Shared {
            broker,
            address: address.to_owned(),
            awaited: Mutex::default(),
            ended: CancellationToken::new(),
            reason: OnceLock::new(),
        });
        let Some(transport) = reader.into_inner() else {
            return Err(Error::Protocol {
                broker,
                address: address.to_owned(),
                problem: "it said more than it was asked".to_owned(),
            });
        };
        let (read_half, write_half) = tokio::io::split(transport);
        let (outgoing, requests) = mpsc::unbounded_channel();
        let reader = FrameReader::new(read_half, config.response_bytes_max);
        let span = tracing::debug_span!(parent: None, "connection", broker, address);
        let writing = write_requests(shared.clone(), write_half, requests);
        tokio::spawn(writing.instrument(span.clone()));
        tokio::spawn(read_responses(shared.clone(), reader).instrument(span));
        tracing::debug!(broker, address, "connected");
        Ok(Connection(Arc::new(Inner {
            client_id: config.client_id.clone(),
            versions,
            renew_at,
            correlation_id: AtomicI32::new(correlation_id),
            in_flight: Arc::new(Semaphore::new(config.requests_in_flight_max)),
            outgoing,
            shared,
        })))
    }

    /// Asks for the versions that the broker knows (KIP-511): in a version that every broker of
    /// the last years knows, and, if it does not, in the oldest.
    async fn negotiate(&mut self) -> Result<ApiVersions> {
        let mut request = ApiVersionsRequest {
            client_software_name: "kohort".into(),
            client_software_version: env!("CARGO_PKG_VERSION").into(),
            ..ApiVersionsRequest::default()
        };
        let mut version = 3;
        loop {
            let frame = self.exchange_frames(&request, version).await?;
            // A broker that does not know the version says so in version 0.
            let refused = frame.get(4..6) == Some(&ErrorCode::UNSUPPORTED_VERSION.0.to_be_bytes());
            if refused && version > 0 {
                version = 0;
                request = ApiVersionsRequest::default();
                continue;
            }
            let response: ApiVersionsResponse =
                self.decode::<ApiVersionsRequest>(frame, version)?;
            let subject = || crate::Subject::Broker(self.broker);
            crate::error::check(ApiKey::ApiVersions, response.error_code, None, subject)?;
            return Ok(ApiVersions::new(&response));
        }
    }

    fn decode<R: Request>(&self, frame: Bytes, version: i16) -> Result<R::Response> {
        frame::decode_response::<R>(frame, version)
            .map_err(|error| Error::decode(self.broker, self.address, R::API_KEY, error))
    }

    /// Sends one request and reads its answer.
    pub(super) async fn exchange<R: Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<R::Response> {
        let frame = self.exchange_frames(request, version).await?;
        self.decode::<R>(frame, version)
    }

    /// Sends one request and reads the frame that answers it.
    async fn exchange_frames<R: Request>(&mut self, request: &R, version: i16) -> Result<Bytes> {
        let correlation_id = self.correlation_id;
        self.correlation_id += 1;
        let frame = encode(request, version, correlation_id, &self.config.client_id)?;
        let exchange = async {
            let stream = self.reader.get_mut();
            stream.write_all(&frame.into_bytes()).await?;
            stream.flush().await?;
            self.reader.next().await
        };
        let answer = exchange.await.map_err(|error| Error::Disconnected {
            broker: self.broker,
            address: self.address.to_owned(),
            reason: error.to_string(),
        })?;
        match frame::correlation_id(&answer) {
            Ok(id) if id == correlation_id => Ok(answer),
            _ => Err(Error::Protocol {
                broker: self.broker,
                address: self.address.to_owned(),
                problem: format!("{} was answered with something else", R::API_KEY),
            }),
        }
    }
}
