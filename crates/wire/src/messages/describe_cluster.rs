//! DescribeCluster (API 60).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct DescribeClusterRequest: 0..=2, flexible 0.. {
        include_cluster_authorized_operations: bool [0..],
        endpoint_type: i8 [1..] = 1,
        include_fenced_brokers: bool [2..],
    }

    pub struct DescribeClusterResponse: 0..=2, flexible 0.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..],
        endpoint_type: i8 [1..] = 1,
        cluster_id: ByteString [0..],
        controller_id: i32 [0..] = -1,
        brokers: Vec<DescribeClusterBroker> [0..],
        cluster_authorized_operations: i32 [0..] = i32::MIN,
    }

    pub struct DescribeClusterBroker {
        broker_id: i32 [0..],
        host: ByteString [0..],
        port: i32 [0..],
        rack: Option<ByteString> [0.., null 0..],
        is_fenced: bool [2..],
    }
}
