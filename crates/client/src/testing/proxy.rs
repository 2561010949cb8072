//! Where requests pass on their way to the broker, or do not.

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::{Mutex, RwLock};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
};
use tokio_util::sync::CancellationToken;

use crate::ApiKey;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// It goes to the broker.
    Pass,
    /// It goes to the broker after this time; so do those behind it on the same connection.
    Delay(Duration),
    /// Nobody hears of it: the client waits for its answer in vain. Answers to what it asks
    /// afterwards on the same connection show it that something is missing.
    Lose,
    /// It goes to the broker, and the connection ends before the answer comes.
    LoseAnswer,
    /// The connection ends; the broker does not hear of it.
    Disconnect,
}

/// A request on its way to the broker.
#[derive(Debug)]
pub struct RequestSeen<'a> {
    /// What is asked; `None` if that is not known here.
    pub api: Option<ApiKey>,
    /// In which version.
    pub version: i16,
    /// The whole request, without its length.
    pub frame: &'a [u8],
}

type Decide = Box<dyn Fn(&RequestSeen<'_>) -> Fate + Send + Sync>;

/// A frame longer than this is not from a client.
const FRAME_MAX: usize = 128 << 20;

pub(super) struct Proxy(Arc<Inner>);

struct Inner {
    decide: RwLock<Option<Decide>>,
    broker: watch::Sender<Option<SocketAddr>>,
    connections: Mutex<CancellationToken>,
    closed: CancellationToken,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proxy")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.closed.cancel();
        self.disconnect_all();
    }
}

impl Proxy {
    /// Listens. Returns where.
    pub(super) async fn bind() -> io::Result<(Proxy, String)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let inner = Arc::new(Inner {
            decide: RwLock::new(None),
            broker: watch::Sender::new(None),
            connections: Mutex::default(),
            closed: CancellationToken::new(),
        });
        tokio::spawn(inner.clone().accept(listener));
        Ok((Proxy(inner), address))
    }

    pub(super) fn forward_to(&self, broker: SocketAddr) {
        self.0.broker.send_replace(Some(broker));
    }

    pub(super) fn decide(&self, decide: Option<Decide>) {
        *self.0.decide.write() = decide;
    }

    pub(super) fn disconnect_all(&self) {
        let connections = std::mem::take(&mut *self.0.connections.lock());
        connections.cancel();
    }
}

impl Inner {
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.closed.cancelled() => return,
            };
            if let Ok((client, _)) = accepted {
                let inner = self.clone();
                let ended = self.connections.lock().clone();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = inner.serve(client) => {}
                        () = ended.cancelled() => {}
                    }
                });
            }
        }
    }

    async fn serve(&self, client: TcpStream) -> io::Result<()> {
        let broker = {
            let mut broker = self.broker.subscribe();
            let known = broker.wait_for(Option::is_some).await;
            known.ok().and_then(|known| *known)
        };
        let Some(broker) = broker else { return Ok(()) };
        let broker = TcpStream::connect(broker).await?;
        client.set_nodelay(true)?;
        broker.set_nodelay(true)?;
        let (from_client, mut to_client) = client.into_split();
        let (mut from_broker, to_broker) = broker.into_split();
        tokio::select! {
            ended = self.requests(from_client, to_broker) => ended,
            ended = tokio::io::copy(&mut from_broker, &mut to_client) => ended.map(|_| ()),
        }
    }

    async fn requests(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<()> {
        loop {
            let length = from.read_u32().await? as usize;
            if !(4..=FRAME_MAX).contains(&length) {
                return Ok(());
            }
            let mut frame = vec![0; length];
            from.read_exact(&mut frame).await?;
            let fate = {
                let decide = self.decide.read();
                let number = i16::from_be_bytes([frame[0], frame[1]]);
                let seen = RequestSeen {
                    api: ApiKey::try_from(number).ok(),
                    version: i16::from_be_bytes([frame[2], frame[3]]),
                    frame: &frame,
                };
                decide.as_ref().map_or(Fate::Pass, |decide| decide(&seen))
            };
            match fate {
                Fate::Pass | Fate::LoseAnswer => {}
                Fate::Delay(time) => tokio::time::sleep(time).await,
                Fate::Lose => continue,
                Fate::Disconnect => return Ok(()),
            }
            to.write_u32(length as u32).await?;
            to.write_all(&frame).await?;
            if fate == Fate::LoseAnswer {
                return Ok(());
            }
        }
    }
}
