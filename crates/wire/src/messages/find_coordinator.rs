//! FindCoordinator (API 10).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct FindCoordinatorRequest: 0..=6, flexible 3.. {
        key: ByteString [0..=3],
        key_type: i8 [1..],
        coordinator_keys: Vec<ByteString> [4..],
    }

    pub struct FindCoordinatorResponse: 0..=6, flexible 3.. {
        throttle_time_ms: i32 [1.., ignorable],
        error_code: ErrorCode [0..=3],
        error_message: Option<ByteString> [1..=3, null 1..=3, ignorable] = Some(Default::default()),
        node_id: i32 [0..=3],
        host: ByteString [0..=3],
        port: i32 [0..=3],
        coordinators: Vec<FoundCoordinator> [4..],
    }

    pub struct FoundCoordinator {
        key: ByteString [4..],
        node_id: i32 [4..],
        host: ByteString [4..],
        port: i32 [4..],
        error_code: ErrorCode [4..],
        error_message: Option<ByteString> [4.., null 4.., ignorable] = Some(Default::default()),
    }
}
