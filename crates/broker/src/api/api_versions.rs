//! ApiVersions (18): what this broker can do. The first request of every client.

use kohort_wire::{ApiKey, ErrorCode, frame, messages::*};

use super::{Call, Work, table::SERVED};
use crate::net::{Answer, Reserved};

/// Kafka's `metadata.version` of 4.4 (IBP_4_4_IV2): some clients judge by it what a cluster can do.
const METADATA_VERSION: i16 = 33;
/// The first `metadata.version` of clusters without ZooKeeper.
const METADATA_VERSION_FIRST: i16 = 7;
/// `group.version` 1: the consumer protocol (KIP-848).
const GROUP_VERSION: i16 = 1;

pub(super) async fn handle(call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse {
    if call.version() >= 3
        && !(is_valid(&request.client_software_name) && is_valid(&request.client_software_version))
    {
        return error(ErrorCode::INVALID_REQUEST);
    }
    // KIP-1242: the client expects another cluster or broker at this address.
    let node = &call.node;
    if let Some(cluster_id) = &request.cluster_id
        && (**cluster_id != node.catalog.cluster_id || request.node_id != node.fixed.node_id)
    {
        return error(ErrorCode::REBOOTSTRAP_REQUIRED);
    }
    let features = [
        ("metadata.version", METADATA_VERSION_FIRST, METADATA_VERSION),
        ("group.version", 0, group_version(&call)),
    ];
    ApiVersionsResponse {
        api_keys: api_keys(),
        supported_features: features
            .iter()
            // Clients before version 4 do not understand a feature that may be off (KIP-1011).
            .map(|&(name, first, last)| SupportedFeatureKey {
                name: name.into(),
                min_version: if call.version() < 4 {
                    first.max(1)
                } else {
                    first
                },
                max_version: last,
            })
            .filter(|feature| feature.max_version > 0)
            .collect(),
        finalized_features_epoch: node.snapshot().version(),
        finalized_features: features
            .iter()
            .filter(|(_, _, last)| *last > 0)
            .map(|&(name, _, last)| FinalizedFeatureKey {
                name: name.into(),
                max_version_level: last,
                min_version_level: last,
            })
            .collect(),
        ..ApiVersionsResponse::default()
    }
}

fn group_version(call: &Call) -> i16 {
    if call.node.fixed.consumer_protocol {
        GROUP_VERSION
    } else {
        0
    }
}

fn api_keys() -> Vec<ApiVersion> {
    let keys = SERVED.iter().map(|(api, versions)| ApiVersion {
        api_key: *api as i16,
        // librdkafka turns compressions off when it does not see the old versions (KAFKA-18659).
        min_version: if *api == ApiKey::Produce {
            0
        } else {
            versions.first
        },
        max_version: versions.last,
    });
    keys.collect()
}

fn error(error_code: ErrorCode) -> ApiVersionsResponse {
    ApiVersionsResponse {
        error_code,
        ..ApiVersionsResponse::default()
    }
}

/// What Kafka accepts as the name or version of a client (KIP-511).
fn is_valid(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let bytes = name.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && bytes.iter().all(|&byte| is_inner(byte))
        }
        _ => false,
    }
}

/// Answers a version that is not known with version 0, which everybody can read, and with the
/// versions of this API, so that the client can ask again (KIP-511).
pub(super) fn refuse(call: &Call) -> Work {
    let mut response = error(ErrorCode::UNSUPPORTED_VERSION);
    response.api_keys = api_keys();
    response
        .api_keys
        .retain(|key| key.api_key == ApiKey::ApiVersions as i16);
    let encoded = frame::encode_response(
        &response,
        ApiKey::ApiVersions,
        0,
        call.header.correlation_id,
    );
    Box::pin(std::future::ready(match encoded {
        Ok(frame) => Answer::Send(frame, Reserved::default()),
        Err(error) => Answer::Close(error.to_string()),
    }))
}
