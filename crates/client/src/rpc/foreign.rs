//! What answers at a port where a Kafka broker should.

use std::{fmt, io};

/// A protocol other than Kafka's, recognized by the first bytes of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Foreign {
    Http,
    Tls,
    Ssh,
}

impl Foreign {
    /// The protocol whose servers begin like this. Read as the length of a frame, these bytes would
    /// be over 300 MiB, so no Kafka response under the usual limit begins with them.
    pub(super) fn recognize(start: [u8; 4]) -> Option<Foreign> {
        match &start {
            b"HTTP" => Some(Foreign::Http),
            b"SSH-" => Some(Foreign::Ssh),
            // An alert or a handshake record of TLS (or SSL 3).
            [0x15 | 0x16, 3, ..] => Some(Foreign::Tls),
            _ => None,
        }
    }

    /// The one that an error of [`FrameReader`](super::frames::FrameReader) found.
    pub(super) fn of(error: &io::Error) -> Option<Foreign> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Foreign::Http => "it speaks HTTP, not Kafka's protocol",
            Foreign::Ssh => "it speaks SSH, not Kafka's protocol",
            Foreign::Tls => "it expects TLS: set security.protocol to SSL or SASL_SSL",
        })
    }
}

impl std::error::Error for Foreign {}
