//! Heartbeat (API 12).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Keeps a membership of the classic protocol alive.
    pub struct HeartbeatRequest: 0..=4, flexible 4.. {
        group_id: ByteString [0..],
        generation_id: i32 [0..],
        member_id: ByteString [0..],
        /// The id of a static member (KIP-345).
        group_instance_id: Option<ByteString> [3.., null 3..],
    }

    /// Whether the member is still one; `REBALANCE_IN_PROGRESS` asks it to join again.
    pub struct HeartbeatResponse: 0..=4, flexible 4.. {
        throttle_time_ms: i32 [1.., ignorable],
        error_code: ErrorCode [0..],
    }
}
