//! The Kafka wire protocol as plain values: messages, frames, record batches, compression.
//!
//! No I/O happens here. Byte strings and records are slices of the frame they came in; who keeps
//! one beyond the request copies it, or it keeps the whole frame in memory.

mod api;
pub mod codec;
mod error_code;
pub mod frame;
pub mod messages;
pub mod records;
mod uuid;

pub use api::{ApiKey, Request, UnknownApi};
pub use bytestring::ByteString;
pub use error_code::ErrorCode;
pub use uuid::{ParseUuidError, Uuid};
