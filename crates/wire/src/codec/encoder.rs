//! A frame in the making.

use bytes::{BufMut, Bytes, BytesMut};

use super::{TEXT_LENGTH_MAX, error::EncodeError};

/// Byte strings of at least this length are sent from where they are instead of being copied.
const SHARE_LENGTH_MIN: usize = 4096;

/// The bytes of the longest 32-bit number in 7-bit groups.
const VARINT_LENGTH_MAX: usize = 5;

/// A frame in the making: what is written piece by piece, with long byte strings between, which are
/// shared, not copied.
#[derive(Debug, Default)]
pub struct Encoder {
    finished: Vec<Piece>,
    finished_length: usize,
    buffer: BytesMut,
}

#[derive(Debug)]
enum Piece {
    Written(BytesMut),
    Shared(Bytes),
}

/// The bytes of a message, in one or more pieces to be sent one after the other.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    pieces: Vec<Bytes>,
}

impl Frame {
    /// The pieces, in order.
    pub fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// The pieces, in order.
    pub fn into_pieces(self) -> Vec<Bytes> {
        self.pieces
    }

    /// How many bytes the frame has.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Whether the frame has no bytes.
    pub fn is_empty(&self) -> bool {
        self.pieces.iter().all(Bytes::is_empty)
    }

    /// All bytes in one piece, copied unless they are in one piece already.
    pub fn into_bytes(mut self) -> Bytes {
        match self.pieces.len() {
            1 => self.pieces.remove(0),
            _ => self.pieces.concat().into(),
        }
    }
}

impl Encoder {
    /// An empty frame.
    pub fn new() -> Encoder {
        Encoder::default()
    }

    /// An empty frame with room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Encoder {
        Encoder {
            buffer: BytesMut::with_capacity(capacity),
            ..Encoder::default()
        }
    }

    /// How many bytes have been written.
    pub fn len(&self) -> usize {
        self.finished_length + self.buffer.len()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where numbers and short byte strings are written.
    #[inline]
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Writes an unsigned number in 7-bit groups, the least significant first.
    #[inline]
    pub fn unsigned_varint(&mut self, value: u32) {
        if value < 0x80 {
            return self.buffer.put_u8(value as u8);
        }
        self.buffer
            .put_slice(varint(value, &mut [0; VARINT_LENGTH_MAX]));
    }

    /// Writes bytes: short ones are copied, long ones shared.
    #[inline]
    pub fn bytes(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARE_LENGTH_MIN {
            self.buffer.put_slice(bytes);
        } else {
            self.finish_buffer();
            self.finish_piece(Piece::Shared(bytes.clone()));
        }
    }

    /// Writes a tagged field: its tag, the length of its value, and the value (KIP-482).
    pub fn tagged(
        &mut self,
        tag: u32,
        write: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.unsigned_varint(tag);
        let (piece, place) = (self.finished.len(), self.buffer.len());
        // Room for the length, which seldom takes more than a byte.
        self.buffer.put_u8(0);
        let start = self.len();
        write(self)?;
        let length = self.len() - start;
        let mut bytes = [0; VARINT_LENGTH_MAX];
        let bytes = varint(length as u32, &mut bytes);
        // Long byte strings may have finished the piece in which the room is.
        let buffer = match self.finished.get_mut(piece) {
            Some(Piece::Written(buffer)) => {
                self.finished_length += bytes.len() - 1;
                buffer
            }
            _ => &mut self.buffer,
        };
        if bytes.len() > 1 {
            let end = buffer.len();
            buffer.put_bytes(0, bytes.len() - 1);
            buffer.copy_within(place + 1..end, place + bytes.len());
        }
        buffer[place..place + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn finish_buffer(&mut self) {
        if !self.buffer.is_empty() {
            let written = self.buffer.split();
            self.finish_piece(Piece::Written(written));
        }
    }

    fn finish_piece(&mut self, piece: Piece) {
        self.finished_length += match &piece {
            Piece::Written(bytes) => bytes.len(),
            Piece::Shared(bytes) => bytes.len(),
        };
        self.finished.push(piece);
    }

    /// The finished frame.
    pub fn finish(mut self) -> Frame {
        if self.finished.is_empty() && !self.buffer.is_empty() {
            let pieces = vec![self.buffer.freeze()];
            return Frame { pieces };
        }
        self.finish_buffer();
        let pieces = self.finished.into_iter().map(|piece| match piece {
            Piece::Written(bytes) => bytes.freeze(),
            Piece::Shared(bytes) => bytes,
        });
        Frame {
            pieces: pieces.collect(),
        }
    }

    /// The finished frame, with the number of bytes that follow in its first four bytes, which have
    /// been left free by whoever started it.
    pub(crate) fn finish_with_length(mut self) -> Result<Frame, EncodeError> {
        let length = self.len() - 4;
        let prefix = i32::try_from(length).map_err(|_| EncodeError::TooLong { length })?;
        let start = match self.finished.first_mut() {
            Some(Piece::Written(first)) => first,
            _ => &mut self.buffer,
        };
        start[..4].copy_from_slice(&prefix.to_be_bytes());
        Ok(self.finish())
    }

    /// Writes the length of a text: 16 bits, or compact. Both have the same limit.
    #[inline]
    pub(crate) fn text_length(&mut self, length: usize, flexible: bool) -> Result<(), EncodeError> {
        if length > TEXT_LENGTH_MAX {
            return Err(EncodeError::TooLong { length });
        }
        if flexible {
            return self.compact_length(length);
        }
        self.buffer.put_i16(length as i16);
        Ok(())
    }

    /// Writes the length of bytes or of a list: 32 bits, or compact.
    #[inline]
    pub(crate) fn length(&mut self, length: usize, flexible: bool) -> Result<(), EncodeError> {
        if flexible {
            return self.compact_length(length);
        }
        let long = i32::try_from(length).map_err(|_| EncodeError::TooLong { length })?;
        self.buffer.put_i32(long);
        Ok(())
    }

    fn compact_length(&mut self, length: usize) -> Result<(), EncodeError> {
        let long = i32::try_from(length).map_err(|_| EncodeError::TooLong { length })?;
        self.unsigned_varint(long as u32 + 1);
        Ok(())
    }
}

/// The number in 7-bit groups, the least significant first.
fn varint(mut value: u32, bytes: &mut [u8; VARINT_LENGTH_MAX]) -> &[u8] {
    let mut length = 0;
    while value >= 0x80 {
        bytes[length] = value as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    bytes[length] = value as u8;
    &bytes[..=length]
}
