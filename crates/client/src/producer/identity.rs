//! Under whose name a producer writes.

use kohort_wire::{ApiKey, ErrorCode, messages::*};

use crate::{
    Result, Subject,
    error::check,
    rpc::{Cluster, Destination},
};

/// The producer's id and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) id: i64,
    pub(super) epoch: i16,
}

/// A producer id, or the next epoch of the one there is (KIP-360).
pub(super) async fn identity(cluster: &Cluster, old: Option<Identity>) -> Result<Identity> {
    const API: ApiKey = ApiKey::InitProducerId;
    let request = |version: i16| {
        let old = old.filter(|_| version >= 3);
        InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: i32::MAX,
            producer_id: old.map_or(-1, |old| old.id),
            producer_epoch: old.map_or(-1, |old| old.epoch),
            ..Default::default()
        }
    };
    let checked = |response: &InitProducerIdResponse| {
        check(API, response.error_code, None, || Subject::Cluster)
    };
    let response = match cluster.ask(&Destination::Any, request, checked).await {
        Err(error)
            if old.is_some()
                && !error.is_retriable()
                && error.code() != Some(ErrorCode::CLUSTER_AUTHORIZATION_FAILED) =>
        {
            // Then a new one.
            let request = |_| InitProducerIdRequest {
                transactional_id: None,
                transaction_timeout_ms: i32::MAX,
                ..Default::default()
            };
            cluster.ask(&Destination::Any, request, checked).await?
        }
        response => response?,
    };
    Ok(Identity {
        id: response.producer_id,
        epoch: response.producer_epoch,
    })
}
