//! Where requests pass on their way to the broker, or do not.

use std::{collections::HashMap, fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use kohort_wire::{codec::Message, frame::encode_response};
use parking_lot::{Mutex, RwLock};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
};
use tokio_util::sync::CancellationToken;

use crate::{ApiKey, Error, Result};

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// It goes to the broker.
    Pass,
    /// It goes to the broker after this time; so do those behind it on the same connection.
    Delay(Duration),
    /// It is lost, and the client waits in vain. Responses to later requests on the same connection
    /// tell the client that one is missing.
    Lose,
    /// It goes to the broker, which does what is asked; instead of its answer comes the end of the
    /// connection.
    LoseAnswer,
    /// The connection ends; the broker does not hear of it.
    Disconnect,
    /// This is the answer, a frame without its length, when those to earlier requests have come;
    /// the broker does not hear of it. [`RequestSeen::answer`] makes one.
    Answer(Bytes),
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

impl RequestSeen<'_> {
    /// To be answered with `response`, which is to be of the same API.
    pub fn answer(&self, response: &impl Message) -> Result<Fate> {
        let unknown = || Error::State("a request that is not known here".to_owned());
        let api = self.api.ok_or_else(unknown)?;
        let correlation_id = correlation_id(self.frame).ok_or_else(unknown)?;
        let frame = encode_response(response, api, self.version, correlation_id)
            .map_err(|source| Error::Encode { api, source })?;
        Ok(Fate::Answer(frame.into_bytes().slice(4..)))
    }
}

fn correlation_id(request: &[u8]) -> Option<i32> {
    let id = request.get(4..8)?.try_into().ok()?;
    Some(i32::from_be_bytes(id))
}

type Decide = Box<dyn Fn(&RequestSeen<'_>) -> Fate + Send + Sync>;

/// A frame longer than this is not Kafka's.
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
        let (from_client, to_client) = client.into_split();
        let (from_broker, to_broker) = broker.into_split();
        let instead = Answers::default();
        tokio::select! {
            ended = self.requests(from_client, to_broker, &instead) => ended,
            ended = answers(from_broker, to_client, &instead) => ended,
        }
    }

    async fn requests(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        instead: &Answers,
    ) -> io::Result<()> {
        while let Some(mut frame) = read_frame(&mut from).await? {
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
                Fate::Pass => {}
                Fate::LoseAnswer => {
                    if let Some(id) = correlation_id(&frame) {
                        instead.lock().insert(id, None);
                    }
                }
                Fate::Delay(time) => tokio::time::sleep(time).await,
                Fate::Lose => continue,
                Fate::Disconnect => return Ok(()),
                Fate::Answer(answer) => {
                    let Some(id) = correlation_id(&frame) else {
                        return Ok(());
                    };
                    instead.lock().insert(id, Some(answer));
                    frame = place_holder(id);
                }
            }
            write_frame(&mut to, &frame).await?;
        }
        Ok(())
    }
}

/// What clients get instead of what the broker answers, by correlation id; `None` for the end of the
/// connection.
type Answers = Mutex<HashMap<i32, Option<Bytes>>>;

/// A request that every broker answers and that changes nothing (ApiVersions, version 0): it keeps
/// the place for an answer of our own.
fn place_holder(correlation_id: i32) -> Vec<u8> {
    let mut frame = vec![0, ApiKey::ApiVersions as u8, 0, 0];
    frame.extend(correlation_id.to_be_bytes());
    // No client id.
    frame.extend((-1i16).to_be_bytes());
    frame
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    instead: &Answers,
) -> io::Result<()> {
    while let Some(frame) = read_frame(&mut from).await? {
        let id = i32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]);
        let answer = match instead.lock().remove(&id) {
            None => frame.into(),
            Some(Some(answer)) => answer,
            Some(None) => return Ok(()),
        };
        write_frame(&mut to, &answer).await?;
    }
    Ok(())
}

/// The next frame, without its length; `None` for what cannot be one.
async fn read_frame(from: &mut OwnedReadHalf) -> io::Result<Option<Vec<u8>>> {
    let length = from.read_u32().await? as usize;
    if !(4..=FRAME_MAX).contains(&length) {
        return Ok(None);
    }
    let mut frame = vec![0; length];
    from.read_exact(&mut frame).await?;
    Ok(Some(frame))
}

async fn write_frame(to: &mut OwnedWriteHalf, frame: &[u8]) -> io::Result<()> {
    to.write_u32(frame.len() as u32).await?;
    to.write_all(frame).await
}
