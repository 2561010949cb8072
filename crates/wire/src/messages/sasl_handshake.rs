//! SaslHandshake (API 17).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Chooses a SASL mechanism.
    pub struct SaslHandshakeRequest: 0..=1 {
        mechanism: ByteString [0..],
    }

    /// Whether the mechanism is there, and which others are.
    pub struct SaslHandshakeResponse: 0..=1 {
        error_code: ErrorCode [0..],
        mechanisms: Vec<ByteString> [0..],
    }
}
