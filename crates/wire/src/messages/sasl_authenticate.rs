//! SaslAuthenticate (API 36).

use bytes::Bytes;

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct SaslAuthenticateRequest: 0..=2, flexible 2.. {
        auth_bytes: Bytes [0..],
    }

    pub struct SaslAuthenticateResponse: 0..=2, flexible 2.. {
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        auth_bytes: Bytes [0..],
        session_lifetime_ms: i64 [1.., ignorable],
    }
}
