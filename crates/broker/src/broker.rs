//! A running broker.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tracing::{info, warn};

use crate::{
    Builder,
    node::Node,
    topics::{Partition, side_by_side},
};

/// How long connections get to finish what they are at, once the broker stops.
const CONNECTIONS_TIMEOUT: Duration = Duration::from_secs(6);

/// A running broker. It stops when it is dropped, or, in good order, by
/// [`shutdown`](Broker::shutdown).
#[derive(Debug)]
pub struct Broker {
    node: Arc<Node>,
    addresses: Vec<SocketAddr>,
}

impl Broker {
    /// A broker to be.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(node: Arc<Node>, addresses: Vec<SocketAddr>) -> Broker {
        Broker { node, addresses }
    }

    #[cfg(test)]
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// The address that it listens on, with the port that it has got: what a client needs as its
    /// `bootstrap.servers`. The first, if there are several.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// All addresses that it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The id of the cluster, which it keeps with its data.
    pub fn cluster_id(&self) -> &str {
        &self.node.catalog.cluster_id
    }

    /// The names of the topics that there are now, sorted.
    pub fn topics(&self) -> Vec<String> {
        let snapshot = self.node.snapshot();
        snapshot.topics.keys().map(ToString::to_string).collect()
    }

    /// Stops in good order: takes no more requests, answers those that it has, makes all data
    /// durable and leaves a mark that makes the next start quick. Takes a few seconds at most if
    /// the disk is well.
    pub async fn shutdown(self) {
        let node = &self.node;
        info!("stopping");
        node.stopping.cancel();
        node.groups.stop().await;
        node.connections.close();
        if tokio::time::timeout(CONNECTIONS_TIMEOUT, node.connections.wait())
            .await
            .is_err()
        {
            warn!("some connections did not end in time");
        }
        let node = Arc::clone(node);
        let closed = tokio::task::spawn_blocking(move || {
            let snapshot = node.snapshot();
            let topics = snapshot.topics.values();
            let partitions: Vec<_> = topics.flat_map(|topic| &topic.partitions).collect();
            side_by_side(&partitions, Partition::close);
        });
        if closed.await.is_ok() {
            info!("stopped");
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.node.stopping.cancel();
        self.node.groups.abandon();
    }
}
