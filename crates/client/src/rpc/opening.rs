//! A connection from when the network has made it until requests can be sent: who knows which
//! versions, and who we are.

use std::{io, time::Duration};

use bytes::Bytes;
use kohort_wire::{
    ApiKey, ErrorCode, Request, frame,
    messages::{ApiVersionsRequest, ApiVersionsResponse},
};
use tokio::{io::AsyncWriteExt, time::Instant};

use super::{
    ApiVersions, ClientConfig, Connection, connection::encode, foreign::Foreign,
    frames::FrameReader, tls, transport::Transport,
};
use crate::{Error, Result};

/// What a broker older than Kafka 0.10 does with a request it doesn't know (KIP-35), and what other
/// servers may do too.
const CLOSED_AT_FIRST_REQUEST: &str = "closed at the first request: \
    does the server expect TLS or SASL, or is it older than Kafka 0.10?";

/// A connection before it can be used: one request at a time.
pub(super) struct Opening<'a> {
    pub(super) broker: i32,
    pub(super) address: &'a str,
    config: &'a ClientConfig,
    reader: FrameReader<Transport>,
    correlation_id: i32,
}

/// What has come of that.
pub(super) struct Opened<'a> {
    pub(super) broker: i32,
    pub(super) address: &'a str,
    pub(super) config: &'a ClientConfig,
    pub(super) transport: Transport,
    pub(super) versions: ApiVersions,
    /// When the authentication has to be renewed.
    pub(super) renew_at: Option<Instant>,
    /// Of the next request.
    pub(super) correlation_id: i32,
}

impl<'a> Opening<'a> {
    pub(super) fn new(
        broker: i32,
        address: &'a str,
        config: &'a ClientConfig,
        transport: Transport,
    ) -> Opening<'a> {
        Opening {
            broker,
            address,
            config,
            reader: FrameReader::new(transport, config.response_bytes_max),
            correlation_id: 0,
        }
    }

    /// Agrees on versions, and says who we are.
    pub(super) async fn finish(mut self) -> Result<Connection> {
        let versions = self.negotiate().await?;
        let mut renew_at = None;
        if let Some(sasl) = &self.config.security.sasl {
            let lifetime_ms = sasl.authenticate(&mut self, &versions).await?;
            // A new connection takes over before the broker ends this one (KIP-368).
            if let Ok(lifetime_ms @ 1..) = u64::try_from(lifetime_ms) {
                renew_at = Some(Instant::now() + Duration::from_millis(lifetime_ms / 10 * 8));
            }
        }
        let Opening {
            broker,
            address,
            config,
            reader,
            correlation_id,
        } = self;
        let Some(transport) = reader.into_inner() else {
            return Err(Error::Protocol {
                broker,
                address: address.to_owned(),
                problem: "it said more than it was asked".to_owned(),
            });
        };
        Ok(Connection::start(Opened {
            broker,
            address,
            config,
            transport,
            versions,
            renew_at,
            correlation_id,
        }))
    }

    /// Asks for the versions that the broker knows (KIP-511): in a version that every broker of
    /// the last years knows, and, if it does not, in the oldest.
    async fn negotiate(&mut self) -> Result<ApiVersions> {
        let mut request = ApiVersionsRequest {
            client_software_name: "kohort".into(),
            client_software_version: env!("CARGO_PKG_VERSION").into(),
            ..ApiVersionsRequest::default()
        };
        let mut version = 3;
        loop {
            let frame = self.exchange_frames(&request, version).await?;
            // A broker that does not know the version says so in version 0.
            let refused = frame.get(4..6) == Some(&ErrorCode::UNSUPPORTED_VERSION.0.to_be_bytes());
            if refused && version > 0 {
                version = 0;
                request = ApiVersionsRequest::default();
                continue;
            }
            let response: ApiVersionsResponse =
                self.decode::<ApiVersionsRequest>(frame, version)?;
            let subject = || crate::Subject::Broker(self.broker);
            crate::error::check(ApiKey::ApiVersions, response.error_code, None, subject)?;
            return Ok(ApiVersions::new(&response));
        }
    }

    fn decode<R: Request>(&self, frame: Bytes, version: i16) -> Result<R::Response> {
        frame::decode_response::<R>(frame, version)
            .map_err(|error| Error::decode(self.broker, self.address, R::API_KEY, error))
    }

    /// Sends one request and reads its answer.
    pub(super) async fn exchange<R: Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<R::Response> {
        let frame = self.exchange_frames(request, version).await?;
        self.decode::<R>(frame, version)
    }

    /// Sends one request and reads the frame that answers it.
    async fn exchange_frames<R: Request>(&mut self, request: &R, version: i16) -> Result<Bytes> {
        let correlation_id = self.correlation_id;
        self.correlation_id += 1;
        let frame = encode(request, version, correlation_id, &self.config.client_id)?;
        let exchange = async {
            let stream = self.reader.get_mut();
            stream.write_all(&frame.into_bytes()).await?;
            stream.flush().await?;
            self.reader.next().await
        };
        let answer = exchange.await.map_err(|error| {
            if let Some(error) = not_by_tls(self.address, &error) {
                return error;
            }
            let address = self.address.to_owned();
            if let Some(foreign) = Foreign::of(&error) {
                return Error::NotKafka {
                    address,
                    problem: foreign.to_string(),
                };
            }
            let closed = error.kind() == io::ErrorKind::UnexpectedEof;
            Error::Disconnected {
                broker: self.broker,
                address,
                reason: if closed && correlation_id == 0 {
                    CLOSED_AT_FIRST_REQUEST.to_owned()
                } else {
                    error.to_string()
                },
            }
        })?;
        match frame::correlation_id(&answer) {
            Ok(id) if id == correlation_id => Ok(answer),
            _ => Err(Error::Protocol {
                broker: self.broker,
                address: self.address.to_owned(),
                problem: format!("{} was answered with something else", R::API_KEY),
            }),
        }
    }
}

/// An error that says so if it is TLS by which there can be no connection.
pub(super) fn not_by_tls(address: &str, error: &io::Error) -> Option<Error> {
    Some(Error::Authentication {
        address: address.to_owned(),
        mechanism: "TLS",
        problem: tls::refusal(error)?,
    })
}
