//! Frames to and from a stream.

use std::{collections::VecDeque, io};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::foreign::Foreign;

/// Frames up to this length share one buffer and are copied out of it, so that who keeps a small
/// answer does not keep a large buffer. Longer ones get memory of their own.
const BUFFER_LENGTH: usize = 16 << 10;

/// A frame may claim any length up to the limit; memory is reserved in steps as its bytes arrive.
const RESERVE_MAX: usize = 4 << 20;

/// Reads frames. [`next`](FrameReader::next) may be cancelled and called again.
#[derive(Debug)]
pub(super) struct FrameReader<S> {
    stream: S,
    limit: usize,
    buffer: BytesMut,
    /// A long frame in the making, and how long it will be.
    long: Option<(BytesMut, usize)>,
}

impl<S: AsyncRead + Unpin> FrameReader<S> {
    /// Reads frames of at most `limit` bytes from `stream`.
    pub(super) fn new(stream: S, limit: usize) -> FrameReader<S> {
        FrameReader {
            stream,
            limit,
            buffer: BytesMut::with_capacity(BUFFER_LENGTH),
            long: None,
        }
    }

    pub(super) fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// What was read from, provided that nothing has been read from it that was not handed out.
    pub(super) fn into_inner(self) -> Option<S> {
        (self.buffer.is_empty() && self.long.is_none()).then_some(self.stream)
    }

    /// The next frame, without its length.
    pub(super) async fn next(&mut self) -> io::Result<Bytes> {
        loop {
            if let Some((frame, length)) = &mut self.long {
                if frame.len() == *length {
                    let (frame, _) = self.long.take().expect("it was there");
                    return Ok(frame.freeze());
                }
                let left = *length - frame.len();
                if frame.capacity() == frame.len() {
                    frame.reserve(left.min(RESERVE_MAX.max(frame.len())));
                }
                // Not a byte more than the frame has: what follows belongs to the buffer.
                let read = self.stream.read_buf(&mut frame.limit_mut(left)).await?;
                ended_if(read == 0)?;
                continue;
            }
            if let Some(frame) = self.buffered()? {
                return Ok(frame);
            }
            if self.long.is_none() {
                self.buffer.reserve(BUFFER_LENGTH - self.buffer.len());
                let read = self.stream.read_buf(&mut self.buffer).await?;
                ended_if(read == 0)?;
            }
        }
    }

    /// A frame that is whole in the buffer. A long one is begun.
    fn buffered(&mut self) -> io::Result<Option<Bytes>> {
        let Some(prefix) = self.buffer.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = i32::from_be_bytes(*prefix);
        let length = match usize::try_from(length) {
            Ok(length) if length <= self.limit => length,
            _ => {
                let invalid = |problem: Box<dyn std::error::Error + Send + Sync>| {
                    io::Error::new(io::ErrorKind::InvalidData, problem)
                };
                if let Some(foreign) = Foreign::recognize(*prefix) {
                    return Err(invalid(foreign.into()));
                }
                let limit = self.limit;
                let problem = format!("a response of {length} bytes, over the limit of {limit}");
                return Err(invalid(problem.into()));
            }
        };
        if 4 + length > BUFFER_LENGTH {
            self.buffer.advance(4);
            let mut frame = BytesMut::with_capacity(length.min(RESERVE_MAX));
            let there = self.buffer.len().min(length);
            frame.extend_from_slice(&self.buffer[..there]);
            self.buffer.advance(there);
            self.long = Some((frame, length));
            return Ok(None);
        }
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        let frame = Bytes::copy_from_slice(&self.buffer[4..4 + length]);
        self.buffer.advance(4 + length);
        Ok(Some(frame))
    }
}

fn ended_if(ended: bool) -> io::Result<()> {
    if ended {
        Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the broker closed the connection",
        ))
    } else {
        Ok(())
    }
}

trait LimitMut {
    fn limit_mut(&mut self, limit: usize) -> bytes::buf::Limit<&mut BytesMut>;
}

impl LimitMut for BytesMut {
    fn limit_mut(&mut self, limit: usize) -> bytes::buf::Limit<&mut BytesMut> {
        bytes::BufMut::limit(self, limit)
    }
}

/// The pieces of several frames, to be written with as few system calls as possible.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pieces: VecDeque<Bytes>,
    remaining: usize,
}

impl Pieces {
    pub(super) fn push(&mut self, piece: Bytes) {
        self.remaining += piece.len();
        self.pieces.push_back(piece);
    }
}

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [io::IoSlice<'a>]) -> usize {
        let pairs = slices.iter_mut().zip(&self.pieces);
        let count = pairs.len();
        for (slice, piece) in pairs {
            *slice = io::IoSlice::new(piece);
        }
        count
    }

    fn advance(&mut self, mut count: usize) {
        self.remaining -= count;
        while let Some(piece) = self.pieces.front_mut() {
            if count < piece.len() {
                piece.advance(count);
                return;
            }
            count -= piece.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(lengths: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (index, &length) in lengths.iter().enumerate() {
            bytes.extend_from_slice(&(length as u32).to_be_bytes());
            bytes.extend(std::iter::repeat_n(index as u8, length));
        }
        bytes
    }

    #[tokio::test]
    async fn frames_of_any_length_come_out_as_they_went_in() {
        let lengths = [0, 1, BUFFER_LENGTH - 4, BUFFER_LENGTH - 3, 3, 9 << 20, 7];
        let bytes = framed(&lengths);
        let mut reader = FrameReader::new(&bytes[..], 10 << 20);
        for (index, length) in lengths.into_iter().enumerate() {
            let frame = reader.next().await.unwrap();
            assert_eq!(frame.len(), length);
            assert!(frame.iter().all(|&byte| byte == index as u8));
        }
        assert_eq!(
            reader.next().await.unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[tokio::test]
    async fn a_frame_over_the_limit_or_of_negative_length_is_refused() {
        for bytes in [101u32.to_be_bytes(), (-1i32).to_be_bytes()] {
            let mut reader = FrameReader::new(&bytes[..], 100);
            assert_eq!(
                reader.next().await.unwrap_err().kind(),
                io::ErrorKind::InvalidData
            );
        }
    }

    #[tokio::test]
    async fn a_server_of_another_protocol_is_named() {
        for (start, expected) in [
            (&b"HTTP/1.1 400 Bad Request"[..], Foreign::Http),
            (b"SSH-2.0-OpenSSH_9.2", Foreign::Ssh),
            (b"\x15\x03\x03\x00\x02\x02\x32", Foreign::Tls),
        ] {
            let error = FrameReader::new(start, 100 << 20).next().await.unwrap_err();
            assert_eq!(Foreign::of(&error), Some(expected));
        }
    }

    #[test]
    fn pieces_are_advanced_over_their_borders() {
        let mut pieces = Pieces::default();
        for piece in ["ab", "", "cde", "f"] {
            pieces.push(Bytes::from_static(piece.as_bytes()));
        }
        pieces.advance(3);
        assert_eq!((pieces.remaining(), pieces.chunk()), (3, &b"de"[..]));
        pieces.advance(3);
        assert_eq!((pieces.remaining(), pieces.chunk()), (0, &b""[..]));
    }
}
