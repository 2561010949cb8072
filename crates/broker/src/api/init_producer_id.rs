//! InitProducerId (22): an id for an idempotent producer.

use kohort_wire::{ErrorCode, messages::*};

use super::Call;

pub(super) async fn handle(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse {
    let failed = |error_code| InitProducerIdResponse {
        error_code,
        ..InitProducerIdResponse::default()
    };
    match request.transactional_id.as_deref() {
        // An idempotent producer; what it had before does not matter, it gets a new id.
        None => match call.node.catalog.new_producer_id().await {
            Ok(producer_id) => InitProducerIdResponse {
                producer_id,
                producer_epoch: 0,
                ..InitProducerIdResponse::default()
            },
            // Kafka's answer when no ids can be had just now; clients try again.
            Err(_) => failed(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
        },
        Some("") => failed(ErrorCode::INVALID_REQUEST),
        // There is no coordinator of transactions to be asked.
        Some(_) => failed(ErrorCode::NOT_COORDINATOR),
    }
}
