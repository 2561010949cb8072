//! Who may connect.

use std::{collections::HashMap, io, net::IpAddr, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tracing::{debug, warn};

use super::connection::{Peer, serve};
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

/// How many connections there are, in all and by address.
#[derive(Debug, Default)]
struct Count {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A connection that is counted; until it is dropped.
struct Admitted {
    count: Arc<Mutex<Count>>,
    address: IpAddr,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut count = self.count.lock();
        count.all -= 1;
        if let Some(own) = count.by_address.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                count.by_address.remove(&self.address);
            }
        }
    }
}

fn admit(count: &Arc<Mutex<Count>>, address: IpAddr, node: &Node) -> Result<Admitted, String> {
    let live = node.live();
    let mut counted = count.lock();
    if counted.all >= live.connections_max {
        return Err(format!(
            "there are {} connections already (max.connections)",
            counted.all
        ));
    }
    let own = counted.by_address.entry(address).or_default();
    if *own >= live.connections_per_ip_max {
        return Err(format!(
            "{address} has {own} connections already (max.connections.per.ip)"
        ));
    }
    *own += 1;
    counted.all += 1;
    Ok(Admitted {
        count: Arc::clone(count),
        address,
    })
}

/// Accepts connections until the broker stops.
pub(crate) async fn accept(listener: Listener, node: Arc<Node>) {
    let count = Arc::new(Mutex::new(Count::default()));
    let stopping = node.stopping.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.listener.accept() => accepted,
            () = stopping.cancelled() => return,
        };
        match accepted {
            Ok((stream, remote)) => start(stream, remote, &count, &node),
            Err(error) => {
                // Out of file descriptors, most likely: those who hold them must go first.
                if node.complaints.admit() {
                    warn!("accepting a connection failed: {error}");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn start(stream: TcpStream, remote: SocketAddr, count: &Arc<Mutex<Count>>, node: &Arc<Node>) {
    let admitted = match admit(count, remote.ip(), node) {
        Ok(admitted) => admitted,
        Err(reason) => {
            if node.complaints.admit() {
                warn!("connection from {remote} refused: {reason}");
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
    let connection_node = Arc::clone(node);
    node.connections.spawn(async move {
        let _admitted = admitted;
        serve(stream, Peer { remote, local }, connection_node).await;
    });
}
