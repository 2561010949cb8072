//! How messages become bytes and bytes become messages.
//!
//! A message is declared once, by [`message!`](macro@crate::message): its fields in the order of
//! the wire, each with the versions that carry it. Reading, writing, comparing, printing and the
//! [`schema`] that tests compare with Kafka's own all come from that declaration.

mod decoder;
mod encoder;
mod error;
mod field;
mod message;
mod rule;
pub mod schema;

pub use decoder::Decoder;
pub use encoder::{Encoder, Frame};
pub use error::{DecodeError, EncodeError, Problem};
pub use field::{Field, Nullable};
pub use message::{Message, Struct};
pub use rule::{Rule, Versions};

/// The most bytes that a text may have, however its length is written: Kafka's generated readers
/// and writers refuse more.
pub const TEXT_LENGTH_MAX: usize = i16::MAX as usize;
