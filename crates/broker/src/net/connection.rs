//! One connection: requests in, responses out, in the same order.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use kohort_coordinator::Connection;
use tokio::{net::TcpStream, time::Instant};
use tracing::{debug, warn};

use super::{
    guests::Guest,
    in_flight::{Answer, InFlight},
    progress::ProgressLimit,
    reader::{FrameReader, Incoming, ReadError},
    writer::FrameWriter,
};
use crate::{api, node::Node};

/// How many bytes of responses wait for a peer before nothing more is started for it.
const QUEUED_BYTES_MAX: usize = 1 << 20;

/// How long requests that are being worked on may take once the broker stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Both ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    /// The client's end.
    pub(crate) remote: SocketAddr,
    /// The broker's end: the address under which the client has found it.
    pub(crate) local: SocketAddr,
    /// The listener through which it has come, by its place among the listeners.
    pub(crate) listener: usize,
    pub(crate) connection: Connection,
}

/// Why a connection has ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("writing failed: {0}")]
    Write(std::io::Error),
    #[error("{0}")]
    Refused(String),
    #[error("nothing has happened for {0:?} (connections.max.idle.ms)")]
    Idle(Duration),
    #[error(
        "the peer has begun a request and sends the rest too slowly \
         (kohort.connection.stall.timeout.ms, kohort.connection.min.bytes.per.second)"
    )]
    Sending,
    #[error(
        "the peer reads its responses too slowly \
         (kohort.connection.stall.timeout.ms, kohort.connection.min.bytes.per.second)"
    )]
    Reading,
    #[error(
        "others need what it holds: memory (queued.max.request.bytes, \
         kohort.queued.max.response.bytes), or its place (max.connections)"
    )]
    Dismissed,
    #[error("the broker stops")]
    Stopped,
}

impl End {
    /// Whether to log it as a warning: the peer does something that no client does.
    fn is_strange(&self) -> bool {
        match self {
            End::Read(ReadError::TooLong { .. } | ReadError::OtherProtocol(_)) => true,
            End::Refused(_) | End::Sending | End::Reading | End::Dismissed => true,
            End::Read(_) | End::Write(_) | End::Idle(_) | End::Stopped => false,
        }
    }
}

/// Serves a connection until it ends.
pub(super) async fn serve(mut stream: TcpStream, peer: Peer, guest: Guest, node: Arc<Node>) {
    let end = run(&mut stream, peer, &guest, &node).await;
    node.groups.connection_closed(&node, peer.connection);
    if end.is_strange() && node.log_limits.connections.admit() {
        warn!("connection from {} closed: {end}", peer.remote);
    } else {
        debug!("connection from {} closed: {end}", peer.remote);
    }
}

async fn run(stream: &mut TcpStream, peer: Peer, guest: &Guest, node: &Arc<Node>) -> End {
    let (read_half, mut write_half) = stream.split();
    let dismissal = &guest.dismissal;
    let mut has_spoken = false;
    let dismissed = dismissal.cancelled();
    tokio::pin!(dismissed);
    let limit = ProgressLimit {
        stall: node.fixed.stall_timeout,
        bytes_per_second: node.fixed.connection_min_bytes_per_second,
    };
    let mut reader = FrameReader::new(
        node.fixed.request_max_bytes,
        node.request_bytes.clone(),
        node.request_holders.clone(),
        dismissal.clone(),
        limit,
    );
    let mut writer = FrameWriter::new(node.response_holders.clone(), dismissal.clone(), limit);
    let mut in_flight = InFlight::default();
    let stopping = node.stopping.cancelled();
    tokio::pin!(stopping);
    let mut drain_until = None;
    let mut active_at = Instant::now();
    let period = node
        .fixed
        .stall_timeout
        .min(node.fixed.connections_max_idle)
        / 2;
    let watch = tokio::time::sleep(period);
    tokio::pin!(watch);

    loop {
        let has_room = writer.queued_bytes() < QUEUED_BYTES_MAX;
        let takes_more = writer.queued_bytes() + in_flight.done_bytes() < QUEUED_BYTES_MAX
            && drain_until.is_none()
            && in_flight.len() < node.fixed.connection_requests_max;
        if !takes_more {
            reader.excuse();
        }
        if drain_until.is_some() && in_flight.is_empty() && writer.is_empty() {
            return End::Stopped;
        }
        tokio::select! {
            answer = in_flight.next(), if has_room && !in_flight.is_empty() => {
                active_at = Instant::now();
                match answer {
                    Answer::Send(frame, reserved) => writer.push(frame, reserved),
                    Answer::Nothing => {}
                    Answer::Close(reason) => return End::Refused(reason),
                }
            }
            written = writer.write_some(&mut write_half), if !writer.is_empty() => {
                active_at = Instant::now();
                if let Err(error) = written {
                    return End::Write(error);
                }
            }
            incoming = reader.next(&read_half), if takes_more => match incoming {
                Ok(Incoming { frame, reserved }) => {
                    if !std::mem::replace(&mut has_spoken, true) {
                        guest.has_spoken();
                    }
                    active_at = Instant::now();
                    in_flight.start(api::answer(frame, peer, Arc::clone(node)), reserved).await;
                }
                Err(error) => return error.into(),
            },
            () = &mut dismissed => return End::Dismissed,
            () = &mut stopping, if drain_until.is_none() => {
                drain_until = Some(Instant::now() + DRAIN_TIMEOUT);
                watch.as_mut().reset(Instant::now() + DRAIN_TIMEOUT);
            }
            () = &mut watch => {
                let now = Instant::now();
                if drain_until.is_some_and(|until| until <= now) {
                    return End::Stopped;
                }
                // After a pause of the process the peer may have sent and read all it should have.
                if let Some(until) = node.pauses.grace() {
                    reader.excuse();
                    writer.excuse();
                    watch.as_mut().reset(until.max(now + period));
                    continue;
                }
                if takes_more && reader.is_overdue() {
                    return End::Sending;
                }
                if writer.is_overdue() {
                    return End::Reading;
                }
                let idle = node.fixed.connections_max_idle;
                if in_flight.is_empty() && active_at + idle <= now {
                    return End::Idle(idle);
                }
                watch.as_mut().reset(now + period);
            }
        }
    }
}
