//! A connection that asks one thing at a time.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kohort_wire::Request;
use kohort_wire::frame::{decode_response, encode_request};

use crate::failure::Failure;

/// What every request of a script calls its client.
const CLIENT_ID: &str = "script";
/// Longer than any answer that is not parked takes, on a busy machine too.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// A connection with at most one request in flight.
pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// What came of waiting for an answer.
pub(crate) enum Received {
    Frame(Bytes),
    Closed,
    NotYet,
}

impl Connection {
    pub(crate) fn open(address: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address)
            .map_err(|error| Failure::new(format!("{address}: {error}")))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            received: Vec::new(),
        })
    }

    /// Where it leads.
    pub(crate) fn peer(&self) -> Result<String, Failure> {
        Ok(self.stream.peer_addr()?.to_string())
    }

    pub(crate) fn send<R: Request>(&mut self, request: &R, version: i16) -> Result<(), Failure> {
        let frame = encode_request(request, version, 1, Some(CLIENT_ID))
            .map_err(|error| Failure::new(format!("{} {version}: {error}", R::NAME)))?;
        for piece in frame.pieces() {
            // A broker that has closed the connection is noticed by whoever reads.
            let _ = self.stream.write_all(piece);
        }
        Ok(())
    }

    /// Waits for the answer, at most so long.
    pub(crate) fn receive(&mut self, limit: Duration) -> Result<Received, Failure> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some((length, rest)) = self.received.split_first_chunk::<4>() {
                let length = u32::from_be_bytes(*length) as usize;
                if rest.len() >= length {
                    let frame = Bytes::copy_from_slice(&rest[..length]);
                    self.received.drain(..4 + length);
                    return Ok(Received::Frame(frame));
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            self.stream
                .set_read_timeout(Some(left.max(Duration::from_micros(100))))?;
            let mut buffer = [0; 16 << 10];
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(Received::Closed),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                        if Instant::now() >= deadline {
                            return Ok(Received::NotYet);
                        }
                    }
                    ErrorKind::Interrupted => {}
                    _ => return Ok(Received::Closed),
                },
            }
        }
    }

    /// Asks and waits for the answer; `None` if the broker closed the connection instead.
    pub(crate) fn ask<R: Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<Option<R::Response>, Failure> {
        self.send(request, version)?;
        match self.receive(ANSWER_LIMIT)? {
            Received::Frame(frame) => decode::<R>(frame, version).map(Some),
            Received::Closed => Ok(None),
            Received::NotYet => Err(Failure::new(format!(
                "{} {version}: no answer within {} s",
                R::NAME,
                ANSWER_LIMIT.as_secs()
            ))),
        }
    }
}

pub(crate) fn decode<R: Request>(frame: Bytes, version: i16) -> Result<R::Response, Failure> {
    decode_response::<R>(frame, version)
        .map_err(|error| Failure::new(format!("the answer to {} {version}: {error}", R::NAME)))
}
