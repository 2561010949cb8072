//! FindCoordinator (API 10).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Asks which broker coordinates groups or transactions.
    pub struct FindCoordinatorRequest: 0..=6, flexible 3.. {
        /// The id of the group or transaction, up to version 3.
        key: ByteString [0..=3],
        /// 0 for a group, 1 for a transaction, 2 for a share group's partition.
        key_type: i8 [1..],
        /// The ids, from version 4 on (KIP-699).
        coordinator_keys: Vec<ByteString> [4..],
    }

    /// The coordinators. Up to version 3 there is one, in the fields of the message itself.
    pub struct FindCoordinatorResponse: 0..=6, flexible 3.. {
        throttle_time_ms: i32 [1.., ignorable],
        error_code: ErrorCode [0..=3],
        error_message: Option<ByteString> [1..=3, null 1..=3, ignorable] = Some(Default::default()),
        node_id: i32 [0..=3],
        host: ByteString [0..=3],
        port: i32 [0..=3],
        coordinators: Vec<FoundCoordinator> [4..],
    }

    /// The coordinator of a group or transaction.
    pub struct FoundCoordinator {
        /// The id of the group or transaction.
        key: ByteString [4..],
        /// The broker's id; -1 with an error.
        node_id: i32 [4..],
        host: ByteString [4..],
        port: i32 [4..],
        error_code: ErrorCode [4..],
        error_message: Option<ByteString> [4.., null 4.., ignorable] = Some(Default::default()),
    }
}
