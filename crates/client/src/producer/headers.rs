//! The headers of a record to be written.

use bytes::Bytes;
use kohort_wire::records::{Header, Headers};

use crate::consumer::OwnedRecord;

/// The headers of a [`ProducerRecord`](super::ProducerRecord), in their order.
///
/// Made from a slice of names and values, or from the headers of a consumed record, which are
/// forwarded unchanged: names that repeat, that are empty or that are not UTF-8 included.
///
/// ```
/// use kohort::producer::RecordHeaders;
///
/// let headers = [("trace-id", Some(&b"4bf92f35"[..])), ("retried", None)];
/// assert_eq!(RecordHeaders::from(&headers).iter().count(), 2);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordHeaders<'a>(Source<'a>);

#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    Named(&'a [(&'a str, Option<&'a [u8]>)]),
    Bytes(&'a [(&'a [u8], Option<&'a [u8]>)]),
    Owned(&'a [(Bytes, Option<Bytes>)]),
    Consumed(Headers<'a>),
}

impl Default for Source<'_> {
    fn default() -> Self {
        Source::Named(&[])
    }
}

impl<'a> RecordHeaders<'a> {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = Header<'a>> + Clone + use<'a> {
        let source = self.0;
        let count = match source {
            Source::Named(headers) => headers.len(),
            Source::Bytes(headers) => headers.len(),
            Source::Owned(headers) => headers.len(),
            Source::Consumed(headers) => headers.len(),
        };
        let mut consumed = match source {
            Source::Consumed(headers) => Some(headers),
            _ => None,
        };
        (0..count).map_while(move |at| match source {
            Source::Named(headers) => {
                let (name, value) = headers[at];
                let key = name.as_bytes();
                Some(Header { key, value })
            }
            Source::Bytes(headers) => {
                let (key, value) = headers[at];
                Some(Header { key, value })
            }
            Source::Owned(headers) => {
                let (name, value) = &headers[at];
                Some(Header {
                    key: name,
                    value: value.as_deref(),
                })
            }
            Source::Consumed(_) => consumed.as_mut()?.next(),
        })
    }
}

/// The conversions from slices, arrays and vectors of one kind of headers.
macro_rules! from_slices {
    ($($header:ty => $source:ident),+) => {
        $(
            impl<'a> From<&'a [$header]> for RecordHeaders<'a> {
                fn from(headers: &'a [$header]) -> RecordHeaders<'a> {
                    RecordHeaders(Source::$source(headers))
                }
            }

            impl<'a, const N: usize> From<&'a [$header; N]> for RecordHeaders<'a> {
                fn from(headers: &'a [$header; N]) -> RecordHeaders<'a> {
                    RecordHeaders(Source::$source(headers))
                }
            }

            impl<'a> From<&'a Vec<$header>> for RecordHeaders<'a> {
                fn from(headers: &'a Vec<$header>) -> RecordHeaders<'a> {
                    RecordHeaders(Source::$source(headers))
                }
            }
        )+
    };
}

from_slices! {
    (&'a str, Option<&'a [u8]>) => Named,
    (&'a [u8], Option<&'a [u8]>) => Bytes,
    (Bytes, Option<Bytes>) => Owned
}

impl<'a> From<Headers<'a>> for RecordHeaders<'a> {
    fn from(headers: Headers<'a>) -> RecordHeaders<'a> {
        RecordHeaders(Source::Consumed(headers))
    }
}

impl<'a> From<&'a OwnedRecord> for RecordHeaders<'a> {
    fn from(record: &'a OwnedRecord) -> RecordHeaders<'a> {
        RecordHeaders::from(&record.headers)
    }
}
