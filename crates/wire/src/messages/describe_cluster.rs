//! DescribeCluster (API 60).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Asks for the brokers of the cluster (KIP-700).
    pub struct DescribeClusterRequest: 0..=2, flexible 0.. {
        include_cluster_authorized_operations: bool [0..],
        /// 1 for brokers, 2 for controllers (KIP-919).
        endpoint_type: i8 [1..] = 1,
        /// Whether brokers that the controller has shut out are listed too.
        include_fenced_brokers: bool [2..],
    }

    /// The cluster: its id, its controller and its brokers.
    pub struct DescribeClusterResponse: 0..=2, flexible 0.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..],
        /// As in the request.
        endpoint_type: i8 [1..] = 1,
        cluster_id: ByteString [0..],
        /// The broker that takes a controller's requests; -1 when there is none.
        controller_id: i32 [0..] = -1,
        brokers: Vec<DescribeClusterBroker> [0..],
        cluster_authorized_operations: i32 [0..] = i32::MIN,
    }

    /// A broker, and where it is reached.
    pub struct DescribeClusterBroker {
        broker_id: i32 [0..],
        host: ByteString [0..],
        port: i32 [0..],
        rack: Option<ByteString> [0.., null 0..],
        /// Whether the controller has shut the broker out.
        is_fenced: bool [2..],
    }
}
