//! Requests and responses as they go over a connection: a length of four bytes, a header, a message.
//!
//! The functions that write include the length; those that read expect a frame without it.

use bytes::{BufMut, Bytes};
use bytestring::ByteString;

use crate::{
    api::{ApiKey, Request},
    codec::{DecodeError, Decoder, EncodeError, Encoder, Field, Frame, Message},
};

/// What stands before every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    /// The number of the API; perhaps one that is not known.
    pub api_key: i16,
    /// The version of the request.
    pub api_version: i16,
    /// What the response will be recognised by.
    pub correlation_id: i32,
    /// What the client calls itself.
    pub client_id: Option<ByteString>,
}

impl RequestHeader {
    /// Reads a header. Of an API that is not known only the first fields are read, which are the
    /// same in all versions of the header.
    pub fn decode(input: &mut Decoder) -> Result<RequestHeader, DecodeError> {
        let api_key = input.i16()?;
        let api_version = input.i16()?;
        let correlation_id = input.i32()?;
        // The client id has a length of 16 bits even in the flexible header (KIP-511).
        let client_id = Field::read(input, 1, false)?;
        let header = RequestHeader {
            api_key,
            api_version,
            correlation_id,
            client_id,
        };
        if ApiKey::try_from(api_key).is_ok_and(|api| api.is_flexible(api_version)) {
            skip_tags(input)?;
        }
        Ok(header)
    }
}

/// A frame of `request` in `version`, ready to be sent.
pub fn encode_request<R: Request>(
    request: &R,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
) -> Result<Frame, EncodeError> {
    let mut out = Encoder::with_capacity(128);
    let buffer = out.buffer();
    buffer.put_i32(0);
    buffer.put_i16(R::API_KEY as i16);
    buffer.put_i16(version);
    buffer.put_i32(correlation_id);
    client_id.map(ByteString::from).write(&mut out, 1, false)?;
    if R::API_KEY.request_header_version(version) >= 2 {
        out.unsigned_varint(0);
    }
    request.encode(&mut out, version)?;
    out.finish_with_length()
}

/// A frame of `response` in `version`, ready to be sent.
pub fn encode_response<M: Message>(
    response: &M,
    api: ApiKey,
    version: i16,
    correlation_id: i32,
) -> Result<Frame, EncodeError> {
    let mut out = Encoder::with_capacity(128);
    out.buffer().put_i32(0);
    out.buffer().put_i32(correlation_id);
    if api.response_header_version(version) >= 1 {
        out.unsigned_varint(0);
    }
    response.encode(&mut out, version)?;
    out.finish_with_length()
}

/// Reads a request whose header has been read. What follows it is ignored, as Kafka does:
/// librdkafka up to 2.16 asks for all topics (Metadata from version 9) with three bytes too many.
pub fn decode_request<R: Request>(mut input: Decoder, version: i16) -> Result<R, DecodeError> {
    R::decode(&mut input, version)
}

/// The correlation id of a response, by which its request is found.
pub fn correlation_id(frame: &Bytes) -> Result<i32, DecodeError> {
    Decoder::new(frame.clone()).i32()
}

/// Reads a response to a request of type `R` in `version`.
pub fn decode_response<R: Request>(frame: Bytes, version: i16) -> Result<R::Response, DecodeError> {
    let mut input = Decoder::new(frame);
    input.i32()?;
    if R::API_KEY.response_header_version(version) >= 1 {
        skip_tags(&mut input)?;
    }
    let response = R::Response::decode(&mut input, version)?;
    input.finish()?;
    Ok(response)
}

fn skip_tags(input: &mut Decoder) -> Result<(), DecodeError> {
    for _ in 0..input.unsigned_varint()? {
        input.unsigned_varint()?;
        let length = input.unsigned_varint()?;
        input.skip(length as usize)?;
    }
    Ok(())
}
