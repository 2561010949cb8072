//! What can be wrong with bytes, and with messages.

use std::fmt;

/// Bytes that are not the message they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    /// The field at which decoding stopped, as `Struct.field`; empty outside of messages.
    pub field: &'static str,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The bytes end before the value does.
    #[error("the bytes end too early")]
    Truncated,
    /// A length is negative, or greater than what is left of the bytes.
    #[error("a length of {0} does not fit the bytes that are left")]
    Length(i64),
    /// More elements than the frame's size justifies reserving memory for.
    #[error("too many elements for the size of the frame")]
    Budget,
    /// A variable-length number that is longer than its type.
    #[error("a variable-length number is too long")]
    Varint,
    /// A text of more bytes than the protocol allows
    /// ([`TEXT_LENGTH_MAX`](super::TEXT_LENGTH_MAX)).
    #[error("a text of {0} bytes is too long; the limit is 32767 bytes")]
    TextLength(usize),
    /// A null where the version of the message allows none.
    #[error("null where a value must be")]
    Null,
    /// Bytes after the end of the message.
    #[error("{0} bytes are left over")]
    Trailing(usize),
    /// A version of the message that does not exist.
    #[error("version {0} is not known")]
    Version(i16),
}

impl DecodeError {
    pub(crate) const fn new(problem: Problem) -> DecodeError {
        DecodeError { field: "", problem }
    }

    /// Names the field, unless an inner field has been named.
    #[doc(hidden)]
    pub fn at(mut self, field: &'static str) -> DecodeError {
        if self.field.is_empty() {
            self.field = field;
        }
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            "" => fmt::Display::fmt(&self.problem, f),
            field => write!(f, "{field}: {}", self.problem),
        }
    }
}

impl std::error::Error for DecodeError {}

/// A message that cannot be written in the version asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The message has no such version.
    #[error("{message} has no version {version}")]
    Version {
        /// The message's name.
        message: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A field has a value that this version cannot carry, and that must not be left out.
    #[error("{field} cannot be sent in version {version}")]
    FieldNotInVersion {
        /// The field, as `Struct.field`.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A field is null where this version wants a value.
    #[error("{field} must not be null in version {version}")]
    Null {
        /// The field, as `Struct.field`.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A text or a list is longer than its length field can say.
    #[error("a value of {length} bytes or elements is too long to be sent")]
    TooLong {
        /// Its length in bytes or elements.
        length: usize,
    },
}
