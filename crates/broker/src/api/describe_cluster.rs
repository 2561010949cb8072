//! DescribeCluster (60).

use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::{Call, authorized};

/// The endpoints of brokers, as opposed to controllers (KIP-919).
const BROKERS: i8 = 1;

pub(super) async fn handle(call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse {
    let node = &call.node;
    if request.endpoint_type != BROKERS {
        return DescribeClusterResponse {
            error_code: match request.endpoint_type {
                2 => ErrorCode::MISMATCHED_ENDPOINT_TYPE,
                _ => ErrorCode::UNSUPPORTED_ENDPOINT_TYPE,
            },
            error_message: Some("This endpoint is a broker's.".into()),
            ..DescribeClusterResponse::default()
        };
    }
    let (host, port) = node.endpoint(call.peer);
    DescribeClusterResponse {
        endpoint_type: request.endpoint_type,
        cluster_id: node.catalog.cluster_id.as_str().into(),
        controller_id: node.fixed.node_id,
        brokers: vec![DescribeClusterBroker {
            broker_id: node.fixed.node_id,
            host,
            port,
            rack: node.fixed.rack.as_deref().map(ByteString::from),
            is_fenced: false,
        }],
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            authorized::CLUSTER
        } else {
            authorized::NOT_ASKED
        },
        ..DescribeClusterResponse::default()
    }
}
