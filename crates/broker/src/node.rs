//! What all connections share.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicU64},
};

use kohort_wire::ByteString;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    clock::Clock,
    fetching::Sessions,
    groups::Groups,
    log_limits::LogLimits,
    net::{Budget, Holders, Peer},
    pauses::Pauses,
    settings::{Fixed, Live},
    topics::{Catalog, Snapshot},
};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) fixed: Fixed,
    pub(crate) clock: Clock,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) groups: Groups,
    pub(crate) fetch_sessions: Sessions,
    /// Memory for requests.
    pub(crate) request_bytes: Budget,
    pub(crate) request_holders: Holders,
    /// Memory for fetched records that wait to be sent.
    pub(crate) response_bytes: Budget,
    pub(crate) response_holders: Holders,
    pub(crate) log_limits: LogLimits,
    pub(crate) pauses: Pauses,
    /// For each listener, where its clients are told to find the broker, when it is not where they
    /// have found it.
    pub(crate) advertised: Vec<Option<(ByteString, u16)>>,
    /// Cancelled when the broker is to stop.
    pub(crate) stopping: CancellationToken,
    pub(crate) connections: TaskTracker,
    pub(crate) next_connection: AtomicU64,
}

impl Node {
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.catalog.snapshot()
    }

    pub(crate) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.catalog.snapshot().live)
    }

    /// Where the peer is told to find the broker.
    pub(crate) fn endpoint(&self, peer: Peer) -> (ByteString, i32) {
        match self.advertised.get(peer.listener) {
            Some(Some((host, port))) => (host.clone(), (*port).into()),
            _ => (host(peer.local), peer.local.port().into()),
        }
    }
}

fn host(address: SocketAddr) -> ByteString {
    address.ip().to_canonical().to_string().into()
}
