//! Accepts connections, within their limits.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use kohort_coordinator::Connection;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tracing::{debug, warn};

use super::{
    connection::{Peer, serve},
    guests::Guests,
};
use crate::node::Node;

/// A bound address.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Listener {
    pub(crate) fn bind(address: SocketAddr, backlog: u32) -> io::Result<Listener> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(backlog)?;
        let address = listener.local_addr()?;
        Ok(Listener { listener, address })
    }
}

/// Accepts connections until the broker stops. `index` is the listener's place among all.
pub(crate) async fn accept(listener: Listener, index: usize, guests: Guests, node: Arc<Node>) {
    let stopping = node.stopping.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.listener.accept() => accepted,
            () = stopping.cancelled() => return,
        };
        match accepted {
            Ok((stream, remote)) => start(stream, remote, index, &guests, &node),
            Err(error) => {
                // Out of file descriptors, most likely: those who hold them must go first.
                if node.log_limits.connections.admit() {
                    warn!("accepting a connection failed: {error}");
                } else {
                    debug!("accepting a connection failed: {error}");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn start(
    stream: TcpStream,
    remote: SocketAddr,
    listener: usize,
    guests: &Guests,
    node: &Arc<Node>,
) {
    let live = node.live();
    let guest = match guests.admit(remote.ip(), &live) {
        Ok(guest) => guest,
        Err(reason) => {
            if node.log_limits.connections.admit() {
                warn!("connection from {remote} refused: {reason}");
            } else {
                debug!("connection from {remote} refused: {reason}");
            }
            return;
        }
    };
    let Ok(local) = stream.local_addr() else {
        return;
    };
    if let Err(error) = stream.set_nodelay(true) {
        debug!("{remote}: TCP_NODELAY: {error}");
    }
    let peer = Peer {
        remote,
        local,
        listener,
        connection: Connection(node.next_connection.fetch_add(1, Ordering::Relaxed)),
    };
    let connection_node = Arc::clone(node);
    node.connections.spawn(async move {
        serve(stream, peer, guest, connection_node).await;
    });
}
