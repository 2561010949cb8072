//! SaslAuthenticate (API 36).

use bytes::Bytes;

use crate::{ByteString, ErrorCode};

crate::message! {
    /// A step of a SASL exchange.
    pub struct SaslAuthenticateRequest: 0..=2, flexible 2.. {
        /// What the mechanism has to say.
        auth_bytes: Bytes [0..],
    }

    /// The broker's answer to a step of a SASL exchange.
    pub struct SaslAuthenticateResponse: 0..=2, flexible 2.. {
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        /// What the mechanism has to say.
        auth_bytes: Bytes [0..],
        /// After how long the client must authenticate again; 0 for never (KIP-368).
        session_lifetime_ms: i64 [1.., ignorable],
    }
}
