//! A cursor over a received frame.

use bytes::Bytes;
use bytestring::ByteString;

use super::{
    TEXT_LENGTH_MAX,
    error::{DecodeError, Problem},
};

/// How many bytes of memory a frame may make its reader reserve for each byte that it has.
///
/// The least frugal of honest messages lists groups whose texts are empty: 3 bytes on the wire and
/// 128 in memory each.
const MEMORY_PER_BYTE: usize = 48;

/// A cursor over a received frame. Byte strings are handed out as slices of the frame.
///
/// No method panics, whatever the frame, and all lists of one frame together reserve at most a
/// small multiple of the frame's own length.
#[derive(Debug, Clone)]
pub struct Decoder {
    frame: Bytes,
    position: usize,
    /// Where the frame ends, or the part of it that is being read.
    end: usize,
    budget: usize,
}

type Result<T> = std::result::Result<T, DecodeError>;

macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident -> $type:ty;)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(&mut self) -> Result<$type> {
                let bytes = self.array()?;
                Ok(<$type>::from_be_bytes(bytes))
            }
        )*
    };
}

impl Decoder {
    /// A cursor at the start of `frame`.
    pub fn new(frame: Bytes) -> Decoder {
        let budget = frame.len().saturating_mul(MEMORY_PER_BYTE);
        Decoder {
            end: frame.len(),
            frame,
            position: 0,
            budget,
        }
    }

    /// How many bytes are left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.end - self.position
    }

    /// Everything that is left, as a slice of the frame.
    pub fn rest(&mut self) -> Bytes {
        let rest = self.frame.slice(self.position..self.end);
        self.position = self.end;
        rest
    }

    /// An error unless everything has been read.
    pub fn finish(&self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(DecodeError::new(Problem::Trailing(left))),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.frame[self.position..self.end]
            .first_chunk::<N>()
            .ok_or(DecodeError::new(Problem::Truncated))?;
        self.position += N;
        Ok(*bytes)
    }

    fixed! {
        /// A signed number of one byte.
        i8 -> i8;
        /// A byte.
        u8 -> u8;
        /// A signed number of two bytes, big-endian as all that follow.
        i16 -> i16;
        /// An unsigned number of two bytes.
        u16 -> u16;
        /// A signed number of four bytes.
        i32 -> i32;
        /// An unsigned number of four bytes.
        u32 -> u32;
        /// A signed number of eight bytes.
        i64 -> i64;
        /// A floating-point number of eight bytes.
        f64 -> f64;
        /// A number of sixteen bytes.
        u128 -> u128;
    }

    /// An unsigned number in 7-bit groups, the least significant first, at most five bytes.
    #[inline]
    pub fn unsigned_varint(&mut self) -> Result<u32> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8()?;
            if shift == 28 && byte > 0x0f {
                break;
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::new(Problem::Varint))
    }

    /// The next `length` bytes, as a slice of the frame.
    #[inline]
    pub fn take(&mut self, length: usize) -> Result<Bytes> {
        if length > self.remaining() {
            return Err(DecodeError::new(Problem::Length(length as i64)));
        }
        let slice = self.frame.slice(self.position..self.position + length);
        self.position += length;
        Ok(slice)
    }

    /// Passes over the next `length` bytes.
    pub fn skip(&mut self, length: usize) -> Result<()> {
        if length > self.remaining() {
            return Err(DecodeError::new(Problem::Length(length as i64)));
        }
        self.position += length;
        Ok(())
    }

    /// Reads a value from exactly the next `length` bytes. After an error the cursor may be anywhere.
    pub fn part<T>(
        &mut self,
        length: usize,
        read: impl FnOnce(&mut Decoder) -> Result<T>,
    ) -> Result<T> {
        if length > self.remaining() {
            return Err(DecodeError::new(Problem::Length(length as i64)));
        }
        let end = std::mem::replace(&mut self.end, self.position + length);
        let value = read(self)?;
        self.finish()?;
        self.end = end;
        Ok(value)
    }

    /// The length of a text: 16 bits, or compact; `None` for null. A compact length can say more
    /// than a text may have.
    #[inline]
    pub(crate) fn text_length(&mut self, flexible: bool) -> Result<Option<usize>> {
        if !flexible {
            return self.i16().and_then(|n| length(n.into()));
        }
        match self.compact_length()? {
            Some(length) if length > TEXT_LENGTH_MAX => {
                Err(DecodeError::new(Problem::TextLength(length)))
            }
            length => Ok(length),
        }
    }

    /// The length of bytes or of a list: 32 bits, or compact; `None` for null.
    #[inline]
    pub(crate) fn length(&mut self, flexible: bool) -> Result<Option<usize>> {
        if flexible {
            self.compact_length()
        } else {
            self.i32().and_then(|n| length(n.into()))
        }
    }

    fn compact_length(&mut self) -> Result<Option<usize>> {
        Ok((self.unsigned_varint()? as usize).checked_sub(1))
    }

    /// The next `length` bytes as text. As in Kafka, bytes that are not UTF-8 become U+FFFD; a text
    /// that grows beyond [`TEXT_LENGTH_MAX`] by that is refused, so that every text that has been
    /// read can be written again.
    pub(crate) fn text(&mut self, length: usize) -> Result<ByteString> {
        let bytes = self.take(length)?;
        if let Ok(text) = ByteString::try_from(bytes.clone()) {
            return Ok(text);
        }
        let mut length = 0;
        replace_invalid(&bytes, |part| length += part.len());
        if length > TEXT_LENGTH_MAX {
            return Err(DecodeError::new(Problem::TextLength(length)));
        }
        // Unlike other texts it takes memory of its own.
        self.reserve(length)?;
        let mut text = String::with_capacity(length);
        replace_invalid(&bytes, |part| text.push_str(part));
        Ok(text.into())
    }

    /// Takes `memory` bytes of what the frame may make its reader reserve.
    fn reserve(&mut self, memory: usize) -> Result<()> {
        let left = self.budget.checked_sub(memory);
        self.budget = left.ok_or(DecodeError::new(Problem::Budget))?;
        Ok(())
    }

    /// An empty list with room for `count` elements, if what is left can hold so many.
    pub(crate) fn list<T>(&mut self, count: usize) -> Result<Vec<T>> {
        if count > self.remaining() {
            return Err(DecodeError::new(Problem::Length(count as i64)));
        }
        let memory = count.checked_mul(size_of::<T>());
        self.reserve(memory.ok_or(DecodeError::new(Problem::Budget))?)?;
        Ok(Vec::with_capacity(count))
    }
}

fn length(n: i64) -> Result<Option<usize>> {
    match n {
        -1 => Ok(None),
        0.. => Ok(Some(n as usize)),
        _ => Err(DecodeError::new(Problem::Length(n))),
    }
}

/// Replaces what is not UTF-8 exactly as Java does, and hands out the text part by part: two clients
/// whose ids differ for Kafka must differ here too.
fn replace_invalid(bytes: &[u8], mut part: impl FnMut(&str)) {
    let mut rest = bytes;
    while let Some(chunk) = rest.utf8_chunks().next() {
        part(chunk.valid());
        let mut length = chunk.invalid().len();
        rest = &rest[chunk.valid().len()..];
        if length > 0 {
            part("\u{fffd}");
            // An encoded surrogate is one error for Java, and up to three for Rust.
            if let [0xed, 0xa0..=0xbf, after @ ..] = rest {
                length = match after {
                    [0x80..=0xbf, ..] => 3,
                    _ => 2,
                };
            }
        }
        rest = &rest[length..];
    }
}
