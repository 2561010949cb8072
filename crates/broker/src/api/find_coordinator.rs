//! FindCoordinator (10): this broker coordinates every group.

use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::Call;

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

pub(super) async fn handle(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
    let keys = match call.version() {
        ..=3 => vec![request.key],
        _ => request.coordinator_keys,
    };
    let mut found: Vec<FoundCoordinator> = Vec::with_capacity(keys.len());
    for key in keys {
        found.push(find(&call, key, request.key_type).await);
    }
    match call.version() {
        ..=3 => {
            let found = found.pop().unwrap_or_default();
            FindCoordinatorResponse {
                error_code: found.error_code,
                error_message: found.error_message,
                node_id: found.node_id,
                host: found.host,
                port: found.port,
                ..FindCoordinatorResponse::default()
            }
        }
        _ => FindCoordinatorResponse {
            coordinators: found,
            error_message: None,
            ..FindCoordinatorResponse::default()
        },
    }
}

async fn find(call: &Call, key: ByteString, key_type: i8) -> FoundCoordinator {
    let refused = |key, code, message: &str| FoundCoordinator {
        key,
        node_id: -1,
        host: ByteString::default(),
        port: -1,
        error_code: code,
        error_message: Some(message.into()),
    };
    match key_type {
        GROUP => {}
        // The producer is to fail at once and say why, instead of asking until its patience ends.
        // librdkafka, which speaks version 2, asks again after every error but those of
        // authorization; newer versions come from clients that know a final error when they see
        // one, and show its message.
        TRANSACTION => {
            let message = "this broker has no transactions";
            let code = match call.version() {
                ..=2 => ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                _ => ErrorCode::INVALID_REQUEST,
            };
            return refused(key, code, message);
        }
        _ => {
            let message = "this broker has no coordinator of this kind";
            return refused(key, ErrorCode::INVALID_REQUEST, message);
        }
    }
    let node = &call.node;
    let fixed = &node.fixed;
    let topic = node
        .catalog
        .offsets_topic(fixed.offsets_partitions, fixed.offsets_segment_bytes)
        .await;
    if let Err(error) = topic {
        return refused(key, ErrorCode::COORDINATOR_NOT_AVAILABLE, &error.message);
    }
    let (host, port) = node.endpoint(call.peer);
    FoundCoordinator {
        key,
        node_id: fixed.node_id,
        host,
        port,
        error_code: ErrorCode::NONE,
        error_message: None,
    }
}
