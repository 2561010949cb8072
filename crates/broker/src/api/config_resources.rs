//! ListConfigResources (74): whose settings can be asked for (KIP-1142).

use kohort_wire::{ErrorCode, messages::*};

use super::{
    Call,
    describe_configs::{BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC},
};

const ALL: [i8; 5] = [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP];

pub(super) async fn handle(
    call: Call,
    request: ListConfigResourcesRequest,
) -> ListConfigResourcesResponse {
    // Version 0 asks for metrics subscriptions; there are none.
    let wanted = match call.version() {
        0 => vec![CLIENT_METRICS],
        _ if request.resource_types.is_empty() => ALL.to_vec(),
        _ => request.resource_types,
    };
    if wanted
        .iter()
        .any(|resource_type| !ALL.contains(resource_type))
    {
        return ListConfigResourcesResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION,
            ..ListConfigResourcesResponse::default()
        };
    }
    let snapshot = call.node.snapshot();
    let mut config_resources = Vec::new();
    let mut add = |resource_type, name: &str| {
        config_resources.push(ListedConfigResource {
            resource_name: name.into(),
            resource_type,
        });
    };
    for resource_type in ALL
        .into_iter()
        .filter(|resource_type| wanted.contains(resource_type))
    {
        match resource_type {
            TOPIC => snapshot.topics.keys().for_each(|name| add(TOPIC, name)),
            GROUP => snapshot.groups.keys().for_each(|name| add(GROUP, name)),
            BROKER | BROKER_LOGGER => add(resource_type, &call.node.fixed.node_id.to_string()),
            _ => {}
        }
    }
    ListConfigResourcesResponse {
        config_resources,
        ..ListConfigResourcesResponse::default()
    }
}
