//! Frames as they come in.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::net::tcp::ReadHalf;
use tokio_util::sync::CancellationToken;

use super::{
    Budget, Holder, Holders, Reserved,
    progress::{ProgressDeadline, ProgressLimit},
};

/// The buffer that a connection gets when there is something to read; an idle one has none.
const BUFFER_LENGTH_MIN: usize = 4 * 1024;

/// How much of a frame is held without a share of the common budget, so that small requests get
/// through while large ones wait for each other.
const FREE_LENGTH: usize = 16 * 1024;

/// How long a request waits for memory before the connection that holds most of it is closed.
const MEMORY_PATIENCE: Duration = Duration::from_millis(50);

/// Reads frames: a length of four bytes, then as many bytes.
#[derive(Debug)]
pub(super) struct FrameReader {
    buffer: BytesMut,
    frame_length_max: usize,
    budget: Budget,
    reserved: Reserved,
    holders: Holders,
    holder: Option<Holder>,
    dismissal: CancellationToken,
    deadline: ProgressDeadline,
    waits_for_budget: bool,
}

/// A frame, and the memory that it takes from the common budget.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) frame: Bytes,
    pub(super) reserved: Reserved,
}

/// Why there are no more frames.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// The peer has gone away between two frames.
    #[error("closed by the peer")]
    Closed,
    /// The peer has gone away in the middle of one.
    #[error("closed by the peer in the middle of a request")]
    ClosedInFrame,
    #[error(
        "the peer announced a request of {length} bytes; the limit is {limit} bytes (socket.request.max.bytes)"
    )]
    TooLong { length: i64, limit: usize },
    #[error("the peer speaks {0}, not the Kafka protocol")]
    OtherProtocol(&'static str),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl FrameReader {
    pub(super) fn new(
        frame_length_max: usize,
        budget: Budget,
        holders: Holders,
        dismissal: CancellationToken,
        limit: ProgressLimit,
    ) -> FrameReader {
        FrameReader {
            buffer: BytesMut::new(),
            frame_length_max,
            budget,
            reserved: Reserved::default(),
            holders,
            holder: None,
            dismissal,
            deadline: ProgressDeadline::new(limit),
            waits_for_budget: false,
        }
    }

    /// Whether the peer has begun a request and takes too long over the rest of it.
    pub(super) fn is_overdue(&self) -> bool {
        !self.buffer.is_empty() && !self.waits_for_budget && self.deadline.has_passed()
    }

    /// Nothing was read until now: the peer cannot be blamed for that.
    pub(super) fn excuse(&mut self) {
        self.deadline.restart();
    }

    /// The next frame, without its length. May be dropped at any time without losing anything.
    pub(super) async fn next(&mut self, stream: &ReadHalf<'_>) -> Result<Incoming, ReadError> {
        loop {
            let wanted = match self.buffer.first_chunk::<4>() {
                Some(&prefix) => self.frame_length(prefix)?,
                None => 4,
            };
            if wanted > 4 && self.buffer.len() >= wanted {
                return Ok(self.take_frame(wanted));
            }
            self.make_room(wanted, stream).await?;
            match stream.try_read_buf(&mut self.buffer) {
                Ok(0) if self.buffer.is_empty() => return Err(ReadError::Closed),
                Ok(0) => return Err(ReadError::ClosedInFrame),
                Ok(read) => self.deadline.moved(read),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if self.buffer.is_empty() {
                        self.buffer = BytesMut::new();
                    }
                    stream.readable().await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The length of the whole frame, its prefix included.
    fn frame_length(&self, prefix: [u8; 4]) -> Result<usize, ReadError> {
        let length = i32::from_be_bytes(prefix);
        if let Some(protocol) = other_protocol(prefix) {
            return Err(ReadError::OtherProtocol(protocol));
        }
        match usize::try_from(length) {
            // No request is shorter than its header.
            Ok(length) if (8..=self.frame_length_max).contains(&length) => Ok(4 + length),
            _ => Err(ReadError::TooLong {
                length: length.into(),
                limit: self.frame_length_max,
            }),
        }
    }

    /// Makes the buffer grow with what has arrived, not with what the peer has announced: it at
    /// most doubles.
    async fn make_room(&mut self, wanted: usize, stream: &ReadHalf<'_>) -> Result<(), ReadError> {
        let filled = self.buffer.len();
        if filled == 0 {
            stream.readable().await?;
            self.deadline.restart();
        }
        if self.buffer.capacity() > filled {
            return Ok(());
        }
        let room = (wanted.saturating_sub(filled))
            .min(filled)
            .max(BUFFER_LENGTH_MIN);
        let uncovered = (filled + room).saturating_sub(FREE_LENGTH + self.reserved.bytes());
        if uncovered > 0 && wanted > FREE_LENGTH {
            self.take_budget(uncovered).await;
        }
        self.buffer.reserve(room);
        Ok(())
    }

    async fn take_budget(&mut self, bytes: usize) {
        // Set still if the wait was dropped before its end.
        let mut has_waited = self.waits_for_budget;
        let more = match self.budget.try_take(bytes) {
            Some(more) => more,
            None => {
                has_waited = true;
                self.waits_for_budget = true;
                loop {
                    tokio::select! {
                        more = self.budget.take(bytes) => break more,
                        () = tokio::time::sleep(MEMORY_PATIENCE) => {
                            self.holders.dismiss_largest(Duration::ZERO);
                        }
                    }
                }
            }
        };
        self.reserved.merge(more);
        self.waits_for_budget = false;
        if has_waited {
            self.deadline.restart();
        }
        let holder = self
            .holder
            .get_or_insert_with(|| self.holders.join(self.dismissal.clone()));
        holder.note(self.reserved.bytes());
    }

    fn take_frame(&mut self, length: usize) -> Incoming {
        self.holder = None;
        let mut frame = self.buffer.split_to(length);
        // What is there already of the next one has its own time.
        self.deadline.restart();
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
        let _ = frame.split_to(4);
        Incoming {
            frame: frame.freeze(),
            reserved: std::mem::take(&mut self.reserved),
        }
    }
}

/// What some well-known other protocols begin with, for an error that helps.
fn other_protocol(prefix: [u8; 4]) -> Option<&'static str> {
    match &prefix {
        [0x16, 3, ..] => Some("TLS"),
        b"GET " | b"POST" | b"HEAD" | b"PUT " | b"OPTI" | b"PRI " => Some("HTTP"),
        b"SSH-" => Some("SSH"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::AsyncWriteExt,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    /// As long as the broker has enough to do for a peer, it does not read what else it sends.
    #[tokio::test]
    async fn a_peer_whose_next_request_is_not_read_has_its_time_afterwards() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let (read_half, _) = stream.split();
        let (budget, holders) = (Budget::new(1 << 20), Holders::default());
        let limit = ProgressLimit {
            stall: Duration::from_secs(30),
            bytes_per_second: 1,
        };
        let dismissal = CancellationToken::new();
        let mut reader = FrameReader::new(1 << 20, budget, holders, dismissal, limit);
        // A whole request, and the beginning of another.
        let mut bytes = [&8_i32.to_be_bytes()[..], &[0; 8]].concat();
        bytes.extend([0; 3]);
        peer.write_all(&bytes).await.unwrap();
        assert_eq!(reader.next(&read_half).await.unwrap().frame.len(), 8);
        assert!(!reader.is_overdue());
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(31)).await;
        assert!(reader.is_overdue(), "it owes the rest");
        reader.excuse();
        assert!(!reader.is_overdue());
    }
}
