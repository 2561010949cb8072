//! Topic ids and their like.

use std::{fmt, str::FromStr};

/// A 128-bit id, written as Kafka writes it: URL-safe base64 without padding, 22 characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Uuid(pub u128);

/// A text that is not an id in Kafka's spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id of 22 URL-safe base64 characters")]
pub struct ParseUuidError;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Uuid {
    /// The id that stands for "none".
    pub const ZERO: Uuid = Uuid(0);

    /// Whether this is the id that stands for "none".
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sixteen bytes as they are sent.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The id of the sixteen bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Uuid {
        Uuid(u128::from_be_bytes(bytes))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 22];
        // 128 bits are 21 characters of 6 bits and one of 2, filled up with zeros.
        for (index, place) in text.iter_mut().enumerate() {
            let bits = match index {
                21 => self.0 << 4,
                _ => self.0 >> (122 - 6 * index),
            };
            *place = ALPHABET[(bits & 63) as usize];
        }
        f.pad(std::str::from_utf8(&text).expect("the alphabet is ASCII"))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Uuid, ParseUuidError> {
        if text.len() != 22 {
            return Err(ParseUuidError);
        }
        let mut value = 0u128;
        for (index, byte) in text.bytes().enumerate() {
            let bits = ALPHABET
                .iter()
                .position(|&c| c == byte)
                .ok_or(ParseUuidError)? as u128;
            value = match index {
                21 if bits & 15 != 0 => return Err(ParseUuidError),
                21 => value << 2 | bits >> 4,
                _ => value << 6 | bits,
            };
        }
        Ok(Uuid(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_kafka_writes_it() {
        assert_eq!(Uuid(1).to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(Uuid(u128::MAX).to_string(), "_____________________w");
    }

    #[test]
    fn reads_back_what_it_writes_and_nothing_else() {
        for value in [0, 1, 0x0123_4567_89ab_cdef_0fed_cba9_8765_4321, u128::MAX] {
            assert_eq!(Uuid(value).to_string().parse(), Ok(Uuid(value)));
        }
        for text in [
            "",
            "AAAAAAAAAAAAAAAAAAAAAB",
            "AAAAAAAAAAAAAAAAAAAA",
            "AAAAAAAAAAAAAAAAAAAA+w",
        ] {
            assert_eq!(text.parse::<Uuid>(), Err(ParseUuidError), "{text}");
        }
    }
}
