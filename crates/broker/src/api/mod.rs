//! The APIs, one file each.

mod alter_configs;
mod api_versions;
mod authorized;
mod config_resources;
mod create_partitions;
mod create_topics;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_log_dirs;
mod describe_producers;
mod describe_topic_partitions;
mod fetch;
mod find_coordinator;
mod groups;
mod init_producer_id;
mod list_offsets;
mod metadata;
mod offset_for_leader_epoch;
mod offsets;
mod produce;
mod rewinds;
mod table;

use std::{fmt::Debug, future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use kohort_coordinator::Caller;
use kohort_wire::{
    ApiKey, ErrorCode, Request,
    codec::Decoder,
    frame::{self, RequestHeader},
};
use tracing::trace;

use crate::{
    net::{Answer, Peer, Reserved},
    node::Node,
};

/// A request's circumstances.
#[derive(Debug)]
struct Call {
    node: Arc<Node>,
    peer: Peer,
    header: RequestHeader,
}

impl Call {
    fn version(&self) -> i16 {
        self.header.api_version
    }

    /// The client, as the coordinator needs to know it.
    fn caller(&self) -> Caller {
        Caller {
            client_id: self
                .header
                .client_id
                .as_deref()
                .unwrap_or_default()
                .to_owned(),
            // As Java writes an address without a name.
            client_host: format!("/{}", self.peer.remote.ip().to_canonical()),
            connection: Some(self.peer.connection),
        }
    }
}

/// What an API makes of a request.
#[derive(Debug)]
enum Outcome<T> {
    /// To be sent.
    Respond(T),
    /// To be sent, with what it holds of the memory for responses.
    Hold(T, Reserved),
    /// No answer is wanted.
    Silence,
    /// The peer has broken the protocol, or asked for something that has no answer.
    Close(String),
}

impl<T> From<T> for Outcome<T> {
    fn from(response: T) -> Outcome<T> {
        Outcome::Respond(response)
    }
}

type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Starts on a request, given as its frame.
pub(crate) fn answer(frame: Bytes, peer: Peer, node: Arc<Node>) -> Work {
    let length = frame.len();
    let mut input = Decoder::new(frame);
    let header = match RequestHeader::decode(&mut input) {
        Ok(header) => header,
        Err(error) => return close(format!("unreadable request: {error}")),
    };
    let Ok(api) = ApiKey::try_from(header.api_key) else {
        return close(format!("API {} is not served", header.api_key));
    };
    let length_max = node.fixed.control_request_max_bytes;
    if api != ApiKey::Produce && length > length_max {
        return close(format!(
            "a {api} request has {length} bytes; the limit is {length_max} bytes \
             (kohort.control.request.max.bytes)"
        ));
    }
    let call = Call { node, peer, header };
    let Some(versions) = table::served(api) else {
        return close(format!("API {api} is not served"));
    };
    if !versions.contains(call.version()) {
        if api == ApiKey::ApiVersions {
            return api_versions::refuse(&call);
        }
        return close(format!(
            "version {} of API {api} is not served, only {} to {}",
            call.version(),
            versions.first,
            versions.last
        ));
    }
    table::dispatch(api, call, input)
}

fn close(reason: String) -> Work {
    Box::pin(std::future::ready(Answer::Close(reason)))
}

/// Decodes a request, lets `handle` answer it, and encodes the response.
fn run<R, F, O>(
    call: Call,
    input: Decoder,
    handle: impl FnOnce(Call, R) -> F + Send + 'static,
) -> Work
where
    R: Request + Debug + Send + 'static,
    R::Response: Debug + Send,
    F: Future<Output = O> + Send + 'static,
    O: Into<Outcome<R::Response>>,
{
    let version = call.version();
    let correlation_id = call.header.correlation_id;
    let request = match frame::decode_request::<R>(input, version) {
        Ok(request) => request,
        Err(error) => return close(format!("unreadable {} request: {error}", R::API_KEY)),
    };
    trace!(peer = %call.peer.remote, version, ?request);
    let future = handle(call, request);
    Box::pin(async move {
        let (response, reserved) = match future.await.into() {
            Outcome::Respond(response) => (response, Reserved::default()),
            Outcome::Hold(response, reserved) => (response, reserved),
            Outcome::Silence => return Answer::Nothing,
            Outcome::Close(reason) => return Answer::Close(reason),
        };
        trace!(?response);
        match frame::encode_response(&response, R::API_KEY, version, correlation_id) {
            Ok(frame) => Answer::Send(frame, reserved),
            Err(error) => Answer::Close(format!(
                "the {} response cannot be sent: {error}",
                R::API_KEY
            )),
        }
    })
}

/// An error unless a client's idea of the leader's epoch is right, or it has none (KIP-320).
fn check_leader_epoch(epoch: i32) -> Result<(), ErrorCode> {
    match epoch {
        ..0 | crate::LEADER_EPOCH => Ok(()),
        _ => Err(ErrorCode::UNKNOWN_LEADER_EPOCH),
    }
}
